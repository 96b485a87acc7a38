"""What a router sees of one problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from difficulty.calibration import RewardStats


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
    """

    classes: Sequence[int | None]
    o: Sequence[float | None]
    s: Sequence[float | None]
    stats: RewardStats | None = None
    draw: float | None = None
    self_verified: bool | None = None
    stated_confidence: float | None = None
    coarse_correct: bool | None = None

    def __post_init__(self) -> None:
        if not len(self.classes) == len(self.o) == len(self.s):
            raise ValueError(
                f"one class, one o and one s a chain: got {len(self.classes)}, {len(self.o)} and {len(self.s)}"
            )
