"""Mean and standard deviation of the combined score S = o + s over a calibration population.

The population is fixed once over the initial chains; later rounds never move mu and sigma. sigma is the population
standard deviation (ddof 0). Statistics of several shards come from their numbers put together, never from merged
moments, so they equal those of one run bit for bit, whatever the order.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, get_args

from difficulty.errors import CalibrationError

Population = Literal["batch", "first", "running", "fixed"]

FILE_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RewardStats:
    """Mean and standard deviation of S.

    Attributes:
        mu: Mean of S, in units of S (0 to 2).
        sigma: Population standard deviation of S (ddof 0), same units.
        n: How many chains they were computed over.
        population: Which chains: ``batch`` (every initial chain of the batch that has both scores, the paper's
            reading), ``first`` (the first chain of each problem, the published code's), ``running`` (an estimate over
            the chains seen so far), ``fixed`` (given by the user).
        orm: Name of the outcome reward model that gave o, where known.
        prm: Name of the process reward model that gave s, where known.
        aggregation: How step scores became s (``prod``, ``min`` ...), where known.

    Raises:
        CalibrationError: A number is not finite, sigma is negative, n is below 1 or the population is unknown.
    """

    mu: float
    sigma: float
    n: int
    population: Population
    orm: str | None = None
    prm: str | None = None
    aggregation: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mu) and math.isfinite(self.sigma)):
            raise CalibrationError(f"mu and sigma must be finite numbers: got {self.mu} and {self.sigma}")
        if self.sigma < 0:
            raise CalibrationError(f"sigma is a standard deviation and cannot be negative: got {self.sigma}")
        if self.n < 1:
            raise CalibrationError(f"statistics need at least one scored chain: got n = {self.n}")
        if self.population not in get_args(Population):
            raise CalibrationError(
                f"unknown population {self.population!r}: it is one of {', '.join(get_args(Population))}"
            )


@dataclass(frozen=True, kw_only=True)
class CalibrationSample:
    """The scores of a population, kept as numbers so that shards can be put together before anything is computed.

    Attributes:
        values: S of every chain that has one, in any order.
        missing: How many chains had none.
    """

    values: tuple[float, ...]
    missing: int = 0

    @classmethod
    def of(cls, combined: Iterable[float | None]) -> Self:
        """Gather S values; ``None`` marks a chain without S.

        Raises:
            CalibrationError: A value is not finite. Missing is ``None``, not NaN.
        """
        values: list[float] = []
        missing = 0
        for value in combined:
            if value is None:
                missing += 1
            elif math.isfinite(value):
                values.append(float(value))
            else:
                raise CalibrationError(f"a combined score is {value}: pass None for a chain without one")
        return cls(values=tuple(values), missing=missing)

    def merge(self, *others: CalibrationSample) -> CalibrationSample:
        """This sample with those of other shards; the statistics do not depend on the order."""
        samples = (self, *others)
        return CalibrationSample(
            values=tuple(value for sample in samples for value in sample.values),
            missing=sum(sample.missing for sample in samples),
        )

    def stats(
        self,
        *,
        population: Population = "batch",
        orm: str | None = None,
        prm: str | None = None,
        aggregation: str | None = None,
    ) -> RewardStats:
        """Mean and population standard deviation in two passes of correctly rounded summation (``math.fsum``).

        Raises:
            CalibrationError: No chain has an S.
        """
        n = len(self.values)
        if n == 0:
            raise CalibrationError(
                f"no calibration: none of the {self.missing} chains has both an outcome and a process score; "
                "give statistics from a calibration file, or find out why the chains are unscored"
            )
        mu = math.fsum(self.values) / n
        sigma = math.sqrt(math.fsum((value - mu) ** 2 for value in self.values) / n)
        return RewardStats(mu=mu, sigma=sigma, n=n, population=population, orm=orm, prm=prm, aggregation=aggregation)


def batch_stats(
    combined: Iterable[float | None],
    *,
    orm: str | None = None,
    prm: str | None = None,
    aggregation: str | None = None,
) -> RewardStats:
    """Statistics over every initial chain of the batch, abstaining ones included (the paper's reading).

    Args:
        combined: S = o + s of each chain, all problems together; ``None`` for a chain that lacks o or s.
        orm: Name of the outcome reward model, recorded.
        prm: Name of the process reward model, recorded.
        aggregation: How step scores became s, recorded.

    Raises:
        CalibrationError: No chain has an S, or a value is not finite.
    """
    return CalibrationSample.of(combined).stats(orm=orm, prm=prm, aggregation=aggregation)


def first_chain_stats(
    problems: Iterable[Sequence[float | None]],
    *,
    orm: str | None = None,
    prm: str | None = None,
    aggregation: str | None = None,
) -> RewardStats:
    """Statistics over the first chain of each problem, as the published MAgICoRe code has it; for reproduction.

    A first chain without S is left out, as is a problem without chains. (The published code gives an unparsed chain
    s = 0 instead: pass scores from :func:`difficulty.published_scores` to have that.)

    Args:
        problems: For each problem S of its chains in order; ``None`` for a chain without one.
        orm: Name of the outcome reward model, recorded.
        prm: Name of the process reward model, recorded.
        aggregation: How step scores became s, recorded.

    Raises:
        CalibrationError: No first chain has an S, or a value is not finite.
    """
    sample = CalibrationSample.of(chains[0] for chains in problems if len(chains) > 0)
    return sample.stats(population="first", orm=orm, prm=prm, aggregation=aggregation)


@dataclass(frozen=True, kw_only=True)
class RunningStats:
    """A streaming estimate of mean and standard deviation, for routing before the whole batch is scored.

    It depends on which chains came first, so two orders may route a problem differently, and it is declared as
    ``running`` in all it yields. Values are frozen: :meth:`add` returns the next estimate. (Welford's update.)

    Attributes:
        n: Chains seen that have an S.
        mean: Their mean.
        squares: Sum of squared deviations from the mean.
        missing: Chains seen without an S.
    """

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    missing: int = 0

    def add(self, combined: Iterable[float | None]) -> RunningStats:
        """The estimate after these chains too; ``None`` marks a chain without S.

        Raises:
            CalibrationError: A value is not finite.
        """
        sample = CalibrationSample.of(combined)
        n, mean, squares = self.n, self.mean, self.squares
        for value in sample.values:
            n += 1
            away = value - mean
            mean += away / n
            squares += away * (value - mean)
        return RunningStats(n=n, mean=mean, squares=squares, missing=self.missing + sample.missing)

    def stats(
        self, *, orm: str | None = None, prm: str | None = None, aggregation: str | None = None
    ) -> RewardStats | None:
        """The estimate so far, or ``None`` before any chain with an S was seen."""
        if self.n == 0:
            return None
        sigma = math.sqrt(max(self.squares, 0.0) / self.n)
        return RewardStats(
            mu=self.mean, sigma=sigma, n=self.n, population="running", orm=orm, prm=prm, aggregation=aggregation
        )


def save_calibration(stats: RewardStats, path: str | os.PathLike[str]) -> None:
    """Write a calibration.json: ``{mu, sigma, n, population, orm, prm, aggregation, version}``.

    The file appears whole or not at all. Numbers read back equal to the bit.

    Raises:
        CalibrationError: The file cannot be written.
    """
    target = Path(path)
    record = {
        "mu": stats.mu,
        "sigma": stats.sigma,
        "n": stats.n,
        "population": stats.population,
        "orm": stats.orm,
        "prm": stats.prm,
        "aggregation": stats.aggregation,
        "version": FILE_VERSION,
    }
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CalibrationError(f"cannot write calibration file {target}: {error.strerror or error}") from error


def load_calibration(path: str | os.PathLike[str]) -> RewardStats:
    """Read a calibration.json; unknown keys are ignored.

    Only mu and sigma must be there: without n and population they count as given by the user
    (``fixed``, n = 1).

    Raises:
        CalibrationError: The file is missing, unreadable, not JSON, of a later version, or lacks a field.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise CalibrationError(f"cannot read calibration file {source}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CalibrationError(f"calibration file {source} is not UTF-8 text") from error
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CalibrationError(f"calibration file {source} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise CalibrationError(f"calibration file {source} must hold one JSON object with mu and sigma")
    version = record.get("version", FILE_VERSION)
    if version != FILE_VERSION:
        raise CalibrationError(
            f"calibration file {source} has version {version!r}; this release reads version {FILE_VERSION}"
        )
    try:
        return _stats_of(record)
    except CalibrationError as error:
        raise CalibrationError(f"calibration file {source}: {error}") from error


def _stats_of(record: Mapping[str, object]) -> RewardStats:
    n = record.get("n", 1)
    if not isinstance(n, int) or isinstance(n, bool):
        raise CalibrationError(f"n must be a whole number: got {n!r}")
    population = record.get("population", "fixed")
    for known in get_args(Population):
        if population == known:
            return RewardStats(
                mu=_number(record, "mu"),
                sigma=_number(record, "sigma"),
                n=n,
                population=known,
                orm=_text(record, "orm"),
                prm=_text(record, "prm"),
                aggregation=_text(record, "aggregation"),
            )
    raise CalibrationError(f"unknown population {population!r}: it is one of {', '.join(get_args(Population))}")


def _number(record: Mapping[str, object], key: str) -> float:
    value = record.get(key)
    if value is None:
        raise CalibrationError(f"{key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalibrationError(f"{key} must be a number: got {value!r}")
    try:
        return float(value)
    except OverflowError as error:
        raise CalibrationError(f"{key} must be a finite number") from error


def _text(record: Mapping[str, object], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise CalibrationError(f"{key} must be text or null: got {value!r}")
    return value
