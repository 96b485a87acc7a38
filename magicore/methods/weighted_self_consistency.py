"""Weighted self-consistency: the class of k chains with the largest sum of rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.runtime.runtime import Runtime
from magicore.types import Result
from magicore.voting import Weights


@dataclass(frozen=True, kw_only=True)
class WeightedSelfConsistency:
    """k chains, the largest class by the sum of S = o + s (MAgICoRe, section 3.1).

    Attributes:
        k: Chains.
        weights: What a chain weighs: ``S``, ``o``, ``s``, ``mean-S`` (the mean of S, not its sum) or ``logprob``.
    """

    name: ClassVar[str] = "weighted-self-consistency"

    k: int = 40
    weights: Weights = "S"

    def __post_init__(self) -> None:
        require_least({"k": 1}, self)

    @property
    def needs(self) -> frozenset[Need]:
        return needs_of(self.weights)

    @property
    def completions(self) -> tuple[int, int]:
        return self.k, self.k

    async def solve(self, rt: Runtime) -> Result:
        """Draw and score k chains and return the answer of the heaviest class."""
        chains = await draw_and_score(rt, self.k)
        return conclude(rt, self.name, chains, aggregation=self.name, weights=self.weights)


def needs_of(weights: Weights) -> frozenset[Need]:
    """The reward models that a kind of weight needs."""
    table: dict[Weights, frozenset[Need]] = {"o": frozenset({"orm"}), "s": frozenset({"prm"}), "logprob": frozenset()}
    return table.get(weights, frozenset({"orm", "prm"}))
