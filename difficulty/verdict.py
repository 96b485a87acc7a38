"""What a router decided about one problem."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Easy or hard, and the numbers behind it. Whatever the router, the numbers are those the evidence allows.

    Attributes:
        router: Name of the router that decided.
        easy: Answer by aggregation (true) or refine (false).
        condition_1: Whether condition 1 holds; ``None`` where it could not be judged.
        condition_2: Whether condition 2 holds; ``None`` where it could not be judged.
        z: Mean z of the majority's chains, in standard deviations.
        confidence_orm: Confidence of the outcome reward over the answer classes, in [0, 1].
        confidence_prm: Confidence of the process reward over the answer classes, in [0, 1].
        majority: The majority class; ``None`` where every chain abstains.
    """

    router: str
    easy: bool
    condition_1: bool | None = None
    condition_2: bool | None = None
    z: float | None = None
    confidence_orm: float | None = None
    confidence_prm: float | None = None
    majority: int | None = None

    @property
    def hard(self) -> bool:
        """The opposite of ``easy``."""
        return not self.easy
