"""Two methods on the same problems: how far apart they are, and what of it may be luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from magicore.errors import InputError
from magicore.evaluate.accuracy import Interval

RESAMPLES = 10_000
_CELLS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A method against a baseline over the problems that both were graded on.

    Attributes:
        n: Problems compared.
        unpaired: Problems that only one of the two was graded on; they are left out.
        accuracy: The method's accuracy.
        baseline: The baseline's accuracy.
        difference: ``accuracy - baseline``.
        interval: Paired bootstrap percentile interval of the difference.
        only_method: Problems that the method alone has right.
        only_baseline: Problems that the baseline alone has right.
        p_value: McNemar's exact two-sided p-value.
        p_adjusted: The same after Holm's correction over the table; ``None`` outside a table.
        confidence: Of the interval; ``1 - confidence`` is the level that :attr:`shown` uses.
        resamples: Bootstrap resamples.
        seed: Of the bootstrap.
    """

    n: int
    unpaired: int
    accuracy: float
    baseline: float
    difference: float
    interval: Interval
    only_method: int
    only_baseline: int
    p_value: float
    p_adjusted: float | None = None
    confidence: float = 0.95
    resamples: int = RESAMPLES
    seed: int = 0

    @property
    def shown(self) -> bool:
        """Whether a difference is shown: the p-value, adjusted where it was, is below ``1 - confidence``."""
        return (self.p_value if self.p_adjusted is None else self.p_adjusted) < 1 - self.confidence

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``no difference shown``."""
        if not self.shown:
            return "no difference shown"
        return "better" if self.difference > 0 else "worse"


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """Percentile interval of ``mean(first) - mean(second)``, problems drawn with replacement in pairs.

    Args:
        first: One value a problem (true and false count as 1 and 0).
        second: The other method's values, in the same order.
        resamples: How often the problems are drawn.
        seed: Equal seeds give equal intervals.
        confidence: Share of the resamples inside the interval.

    Raises:
        ValueError: No values, or not as many of both, or no resample, or a confidence outside (0, 1).
    """
    if not first or len(first) != len(second):
        raise ValueError(f"as many values of both are needed, at least one: got {len(first)} and {len(second)}")
    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError(f"resamples of at least 1 and a confidence in (0, 1), got {resamples} and {confidence!r}")
    gaps = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    draw = np.random.default_rng(seed)
    means = np.empty(resamples)
    rows = max(1, _CELLS // len(gaps))
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        means[start : start + count] = gaps[draw.integers(len(gaps), size=(count, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar's test: a binomial test of the discordant pairs at one half.

    Args:
        only_first: Problems that the first alone has right.
        only_second: Problems that the second alone has right.

    Returns:
        The p-value in (0, 1]; 1 where there is no discordant pair.

    Raises:
        ValueError: A count is negative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"counts are at least 0, got {only_first} and {only_second}")
    if only_first == only_second:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): adjusted p-values in the order given.

    Sorted upwards, the i-th of m (from 0) is multiplied by m - i, capped at 1, and is never below the one before it.

    Raises:
        ValueError: A value lies outside [0, 1].
    """
    if any(not 0 <= value <= 1 for value in p_values):
        raise ValueError("p-values lie in [0, 1]")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def compare(
    method: Mapping[str, bool],
    baseline: Mapping[str, bool],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> Comparison:
    """Compare two methods problem by problem.

    Args:
        method: Problem id -> whether the method has it right (see :func:`magicore.evaluate.correctness`).
        baseline: The same of the baseline.
        resamples, seed, confidence: As in :func:`paired_bootstrap`.

    Raises:
        InputError: The two have no graded problem in common.
    """
    shared = [name for name in method if name in baseline]
    if not shared:
        raise InputError("the two runs have no graded problem in common; compare runs over the same problems")
    ours, theirs = [method[name] for name in shared], [baseline[name] for name in shared]
    pairs = list(zip(ours, theirs, strict=True))
    only_method, only_baseline = pairs.count((True, False)), pairs.count((False, True))
    return Comparison(
        n=len(shared),
        unpaired=len(method) + len(baseline) - 2 * len(shared),
        accuracy=sum(ours) / len(shared),
        baseline=sum(theirs) / len(shared),
        difference=(sum(ours) - sum(theirs)) / len(shared),
        interval=paired_bootstrap(ours, theirs, resamples=resamples, seed=seed, confidence=confidence),
        only_method=only_method,
        only_baseline=only_baseline,
        p_value=mcnemar_exact(only_method, only_baseline),
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def compare_all(
    methods: Mapping[str, Mapping[str, bool]],
    baseline: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Comparison]:
    """Compare every other method with the baseline, p-values adjusted by Holm over the table.

    Raises:
        InputError: ``baseline`` is not among the methods, or shares no graded problem with one of them.
    """
    if baseline not in methods:
        raise InputError(f"the baseline {baseline!r} is none of the methods compared: {', '.join(methods)}")
    found = {
        name: compare(right, methods[baseline], resamples=resamples, seed=seed, confidence=confidence)
        for name, right in methods.items()
        if name != baseline
    }
    adjusted = holm([comparison.p_value for comparison in found.values()])
    return {
        name: replace(comparison, p_adjusted=value)
        for (name, comparison), value in zip(found.items(), adjusted, strict=True)
    }
