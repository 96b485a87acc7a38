"""Arms of a study with their accuracy, cost, and what of their difference from a baseline may be luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from magicore.errors import InputError
from magicore.evaluate import Comparison, accuracy_of, compare_all
from magicore.evaluate.axes import AxisPoint, Spent
from magicore.evaluate.paired import RESAMPLES

NOT_COMPARED = "not compared"
BASELINE = "baseline"
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Luck:
    """How chance is judged.

    Attributes:
        seed: Of the bootstrap and of resampled subsets.
        resamples: Of the bootstrap.
        confidence: Of every interval; ``1 - confidence`` is the level of a shown difference.
    """

    seed: int = 0
    resamples: int = RESAMPLES
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.resamples < 1 or not 0 < self.confidence < 1:
            raise InputError(
                f"at least 1 resample and a confidence in (0, 1): got {self.resamples} and {self.confidence}"
            )

    @property
    def notes(self) -> dict[str, Any]:
        """For study.json."""
        return {"seed": self.seed, "resamples": self.resamples, "confidence": self.confidence}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One arm: problem id -> right or not, for graded problems whose answer is known.

    Attributes:
        right: As above.
        unknown: Graded problems for which the store does not hold what the arm needs; they are left out, never counted.
        spent: Its cost.
    """

    right: Mapping[str, bool]
    unknown: int = 0
    spent: Spent = field(default_factory=Spent)


def arm_rows(
    arms: Mapping[str, Scored], baseline: str, luck: Luck, *, column: str = "method"
) -> tuple[dict[str, Any], ...]:
    """One row an arm: Wilson interval, paired difference from the baseline, McNemar's exact p and Holm's, and cost.

    Each arm is compared over the problems that both it and the baseline have an answer for.

    Raises:
        InputError: the baseline is none of the arms.
    """
    if baseline not in arms:
        raise InputError(f"the baseline {baseline!r} is none of the arms: {', '.join(arms)}")
    compared = {name: arm.right for name, arm in arms.items() if set(arm.right) & set(arms[baseline].right)}
    found: Mapping[str, Comparison] = {}
    if baseline in compared:
        found = compare_all(compared, baseline, resamples=luck.resamples, seed=luck.seed, confidence=luck.confidence)
    return tuple(
        {column: name, **_row(arm, found.get(name), baseline, luck, is_baseline=name == baseline)}
        for name, arm in arms.items()
    )


def _row(arm: Scored, found: Comparison | None, baseline: str, luck: Luck, *, is_baseline: bool) -> dict[str, Any]:
    accuracy = accuracy_of(arm.right.values(), confidence=luck.confidence)
    row: dict[str, Any] = {
        "graded": accuracy.graded,
        "unknown": arm.unknown,
        "correct": accuracy.correct,
        "accuracy": accuracy.value,
        "accuracy_low": None if accuracy.interval is None else accuracy.interval.low,
        "accuracy_high": None if accuracy.interval is None else accuracy.interval.high,
        "baseline": baseline,
    }
    for name in ("n", "difference", "only_method", "only_baseline", "p_value", "p_adjusted"):
        row["compared" if name == "n" else name] = None if found is None else getattr(found, name)
    row["difference_low"] = None if found is None else found.interval.low
    row["difference_high"] = None if found is None else found.interval.high
    row["reading"] = BASELINE if is_baseline else NOT_COMPARED if found is None else found.verdict
    return row | arm.spent.row | luck.notes


def arm_points(arms: Mapping[str, Scored]) -> list[AxisPoint]:
    """The arms as points of accuracy against cost, those that are known for every problem."""
    points: list[AxisPoint] = []
    for name, arm in arms.items():
        value = accuracy_of(arm.right.values()).value
        if value is not None and not arm.unknown:
            points.append(AxisPoint(method=name, spent=arm.spent, accuracy=value))
    return points


def luck_remarks(rows: Sequence[Mapping[str, Any]], *, column: str = "method") -> list[str]:
    """A sentence on the arms of which no difference is shown, and one for each arm that is not known throughout."""
    remarks: list[str] = []
    undecided = [str(row[column]) for row in rows if row["reading"] == "no difference shown"]
    if len(undecided) > _NAMED:
        remarks.append(f"no difference shown from {rows[0]['baseline']} for {len(undecided)} of {len(rows) - 1} arms")
    elif undecided:
        remarks.append(f"no difference shown from {rows[0]['baseline']}: {', '.join(undecided)}")
    for row in rows:
        if row["unknown"]:
            of = row["unknown"] + row["graded"]
            remarks.append(f"{row[column]}: not known for {row['unknown']} of {of} problems, which are left out")
    return remarks


SHOWN = (
    "accuracy",
    "correct",
    "graded",
    "difference",
    "p_value",
    "p_adjusted",
    "reading",
    "tokens",
    "calls",
    "wall_s",
)
"""The columns of :func:`arm_rows` that a terminal has room for."""
