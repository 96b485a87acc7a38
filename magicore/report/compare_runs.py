"""Two runs over the same problems: how far apart, what of it may be luck, and which problems made the difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from magicore.answers import equivalent
from magicore.config import RunConfig
from magicore.errors import InputError
from magicore.evaluate import Accuracy, Comparison, Cost, accuracy_of, compare, correctness, cost_of
from magicore.evaluate.paired import RESAMPLES
from magicore.report.run_files import RunFiles, labels, read_run
from magicore.report.tables import MethodRow, comparison_table, method_table

_SHOWN = 12
"""Ids that the terminal names of each list; ``--json`` has them all."""
_WITHOUT_EFFECT = frozenset({"concurrency", "cache", "budget", "prices", "device", "models", "reward_models"})


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """Run B against run A, the baseline, over the problems that both were graded on.

    Attributes:
        a, b: The runs' names.
        accuracy_a, accuracy_b: Each run over the problems compared, with its Wilson interval.
        comparison: B against A: difference, paired bootstrap interval, McNemar's exact p-value.
        fixed: Problems that A has wrong and B right, in A's order.
        broken: Problems that A has right and B wrong.
        only_a, only_b: Problems that only one of the runs was graded on; left out.
        cost_a, cost_b: What each run spent over all of its problems.
        settings: The settings that differ, A's value and B's.
        remarks: What a reader should know of either run.
    """

    a: str
    b: str
    accuracy_a: Accuracy
    accuracy_b: Accuracy
    comparison: Comparison
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    cost_a: Cost
    cost_b: Cost
    settings: Mapping[str, tuple[Any, Any]]
    remarks: tuple[str, ...]

    @property
    def tokens_ratio(self) -> float | None:
        """B's tokens for each of A's, reward models and judges included; ``None`` where either is unknown, or A's 0."""
        ours, theirs = self.cost_b.tokens, self.cost_a.tokens
        if ours is None or not theirs or self.cost_a.unmetered or self.cost_b.unmetered:
            return None
        return ours / theirs

    def row(self) -> dict[str, Any]:
        """All of it as JSON."""
        runs = ((self.a, self.accuracy_a, self.cost_a), (self.b, self.accuracy_b, self.cost_b))
        found = self.comparison
        return {
            **{
                key: {
                    "run": name,
                    "graded": right.graded,
                    "correct": right.correct,
                    "accuracy": right.value,
                    "accuracy_low": None if right.interval is None else right.interval.low,
                    "accuracy_high": None if right.interval is None else right.interval.high,
                    "tokens": cost.tokens,
                    "generation_tokens": cost.generation_tokens,
                    "reward_tokens": cost.reward_tokens,
                    "judge_tokens": cost.judge_tokens,
                    "calls": cost.calls,
                    "unmetered": cost.unmetered,
                }
                for key, (name, right, cost) in zip("ab", runs, strict=True)
            },
            "n": found.n,
            "difference": found.difference,
            "difference_low": found.interval.low,
            "difference_high": found.interval.high,
            "confidence": found.confidence,
            "resamples": found.resamples,
            "seed": found.seed,
            "p_value": found.p_value,
            "verdict": found.verdict,
            "fixed": list(self.fixed),
            "broken": list(self.broken),
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "tokens_ratio": self.tokens_ratio,
            "settings": {name: list(values) for name, values in self.settings.items()},
            "remarks": list(self.remarks),
        }


def compare_runs(
    a: str | Path, b: str | Path, *, resamples: int = RESAMPLES, seed: int = 0, confidence: float = 0.95
) -> RunComparison:
    """Compare two runs' directories, problem by problem.

    Args:
        a: The baseline's directory.
        b: The directory of the run that is compared with it.
        resamples, seed, confidence: Of the paired bootstrap; see :func:`magicore.evaluate.paired_bootstrap`.

    Raises:
        InputError: One has no results yet, or the two are not over the same problems; says how it shows.
    """
    if resamples < 1 or not 0 < confidence < 1:
        raise InputError(f"resamples are at least 1 and a confidence lies in (0, 1), got {resamples} and {confidence}")
    paths = [Path(a), Path(b)]
    names = labels(paths)
    if len(set(names)) < len(names):
        raise InputError(f"{a} and {b} are one directory; a run is not compared with itself")
    first, second = (read_run(path, name, chains=False) for path, name in zip(paths, names, strict=True))
    if (why := clash(first, second)) is not None:
        raise InputError(why)
    theirs, ours = right_or_wrong(first), right_or_wrong(second)
    shared = [name for name in theirs if name in ours]
    return RunComparison(
        a=first.label,
        b=second.label,
        accuracy_a=accuracy_of(theirs[name] for name in shared),
        accuracy_b=accuracy_of(ours[name] for name in shared),
        comparison=compare(ours, theirs, resamples=resamples, seed=seed, confidence=confidence),
        fixed=tuple(name for name in shared if ours[name] and not theirs[name]),
        broken=tuple(name for name in shared if theirs[name] and not ours[name]),
        only_a=tuple(name for name in theirs if name not in ours),
        only_b=tuple(name for name in ours if name not in theirs),
        cost_a=cost_of(first.plain_results()),
        cost_b=cost_of(second.plain_results()),
        settings=_differing(first.config, second.config),
        remarks=tuple(f"{run.label}: {remark}" for run in (first, second) for remark in run.remarks),
    )


def right_or_wrong(run: RunFiles) -> dict[str, bool]:
    """Problem id -> whether the run has it right, for graded problems."""
    return correctness(run.plain_results())


def clash(first: RunFiles, second: RunFiles) -> str | None:
    """Why two runs cannot be compared problem by problem, in one sentence; ``None`` if they can."""
    for run in (first, second):
        if not run.results:
            return f"{run.label} has no results yet, so there is nothing to compare"
        if not right_or_wrong(run):
            return f"no problem of {run.label} has a gold answer, so it cannot be compared"
    golds = {one.id: one for one in first.plain_results() if one.gold is not None}
    shared = [(golds[one.id], one) for one in second.plain_results() if one.gold is not None and one.id in golds]
    if not shared:
        own, other = next(iter(golds)), next(iter(right_or_wrong(second)))
        return (
            f"{first.label} and {second.label} have no graded problem in common (ids like {own!r} and {other!r}): "
            f"compare runs over the same problems{_of_data(first, second)}"
        )
    for ours, theirs in shared:
        if ours.gold != theirs.gold and not equivalent(ours.gold, theirs.gold, ours.kind):
            return (
                f"problem {ours.id!r} has the gold answer {_short(ours.gold)} in {first.label} and "
                f"{_short(theirs.gold)} in {second.label}: the runs are over different problems under the same ids"
                f"{_of_data(first, second)}"
            )
    return None


def run_comparison_tables(found: RunComparison) -> Iterator[Table | Text]:
    """The comparison for the terminal."""
    yield method_table(
        (
            MethodRow(method=name, accuracy=right, tokens=cost.tokens, calls=cost.calls)
            for name, right, cost in (
                (found.a, found.accuracy_a, found.cost_a),
                (found.b, found.accuracy_b, found.cost_b),
            )
        ),
        title=f"The {found.comparison.n:,} problems that both runs were graded on",
    )
    yield comparison_table({found.b: found.comparison}, found.a)
    yield Text("\n".join(_sentences(found)))


def _sentences(found: RunComparison) -> Iterator[str]:
    yield f"Fixed ({len(found.fixed):,}, wrong in {found.a} and right in {found.b}): {_ids(found.fixed)}"
    yield f"Broken ({len(found.broken):,}, right in {found.a} and wrong in {found.b}): {_ids(found.broken)}"
    ratio = found.tokens_ratio
    unknown = "unknown, since some calls came without token counts"
    yield f"Tokens of {found.b} for each of {found.a}: {unknown if ratio is None else f'{ratio:.2f}'}"
    for name, only in ((found.a, found.only_a), (found.b, found.only_b)):
        if only:
            yield f"Left out ({len(only):,}, only in {name}): {_ids(only)}"
    for name, (before, now) in found.settings.items():
        yield f"Setting {name}: {before!r} in {found.a}, {now!r} in {found.b}"
    yield from found.remarks
    how = found.comparison
    yield (
        f"{how.confidence:.0%} interval of the difference by paired bootstrap ({how.resamples:,} resamples, seed "
        f"{how.seed}); p by McNemar's exact test: {how.verdict}."
    )


def _ids(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more if names else "none"


def _differing(a: RunConfig, b: RunConfig) -> dict[str, tuple[Any, Any]]:
    names = [field.name for field in fields(RunConfig) if field.name not in _WITHOUT_EFFECT]
    pairs = {name: (getattr(a, name), getattr(b, name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _of_data(first: RunFiles, second: RunFiles) -> str:
    before, now = first.config.data, second.config.data
    return "" if before == now else f" (their data are {before or 'from Python'} and {now or 'from Python'})"


def _short(text: str | None) -> str:
    return repr(text if text is None or len(text) <= 60 else f"{text[:60]}...")
