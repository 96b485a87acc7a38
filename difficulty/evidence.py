"""What a router sees of one problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from difficulty.calibration import RewardStats
from difficulty.errors import EvidenceError
from difficulty.ties import ABSTAINS, TOLERANCE, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The answer classes and scores of one problem's chains, in chain order, and what the other routers ask for.

    Attributes:
        classes: For each chain the index of its answer class, or ``None`` for a chain that abstains.
        o: Outcome scores in [0, 1]; ``None`` where missing.
        s: Aggregated process scores in [0, 1]; ``None`` where missing.
        stats: Mean and standard deviation of S = o + s over the calibration population; ``None`` where there is none.
        draw: Uniform in [0, 1), fixed by the run's seed and the problem's id, the same every round.
        self_verified: What the language model said when asked whether the majority answer is right.
        stated_confidence: The confidence in [0, 1] that the language model stated.
        coarse_correct: Whether the weighted-self-consistency answer is right (oracle router only).
        initial_majority: Majority class of the initial chains, numbered as in ``classes`` (-1: the abstaining chains).
            Only the ``published`` router reads it, because the published code never recomputes the majority.

    Raises:
        EvidenceError: Lengths differ, a class is negative, or a number is outside its range.
    """

    classes: Sequence[int | None]
    o: Sequence[float | None]
    s: Sequence[float | None]
    stats: RewardStats | None = None
    draw: float | None = None
    self_verified: bool | None = None
    stated_confidence: float | None = None
    coarse_correct: bool | None = None
    initial_majority: int | None = None

    def __post_init__(self) -> None:
        if not len(self.classes) == len(self.o) == len(self.s):
            raise EvidenceError(
                f"one class, one o and one s a chain: got {len(self.classes)}, {len(self.o)} and {len(self.s)}"
            )
        for index, answer_class in enumerate(self.classes):
            if answer_class is not None and answer_class < 0:
                raise EvidenceError(f"class of chain {index} is {answer_class}: pass None for a chain that abstains")
        for name, scores in (("o", self.o), ("s", self.s)):
            for index, score in enumerate(scores):
                if score is not None and not _in_unit_interval(score):
                    raise EvidenceError(f"{name} of chain {index} is {score}, outside [0, 1]; missing is None")
        if self.draw is not None and not 0 <= self.draw < 1:
            raise EvidenceError(f"draw is {self.draw}, outside [0, 1)")
        if self.stated_confidence is not None and not _in_unit_interval(self.stated_confidence):
            raise EvidenceError(f"stated_confidence is {self.stated_confidence}, outside [0, 1]")

    @property
    def combined(self) -> list[float | None]:
        """S = o + s of each chain, from 0 to 2; ``None`` for a chain that lacks o or s."""
        return [None if o is None or s is None else o + s for o, s in zip(self.o, self.s, strict=True)]

    @property
    def answered(self) -> bool:
        """Whether any chain belongs to a class."""
        return any(answer_class is not None for answer_class in self.classes)

    @property
    def scored(self) -> bool:
        """Whether any chain that belongs to a class has an S."""
        return any(
            answer_class is not None and combined is not None
            for answer_class, combined in zip(self.classes, self.combined, strict=True)
        )


def class_row(classes: Sequence[int | None]) -> IntArray:
    """(1, K) array of classes; -1 for a chain that abstains."""
    return np.array([[ABSTAINS if value is None else value for value in classes]], dtype=np.int64)


def score_row(scores: Sequence[float | None]) -> FloatArray:
    """(1, K) array of scores; NaN where missing."""
    return np.array([[np.nan if value is None else value for value in scores]], dtype=np.float64)


def _in_unit_interval(value: float) -> bool:
    return 0 <= value <= 1 + TOLERANCE
