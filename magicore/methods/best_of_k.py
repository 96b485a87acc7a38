"""Best of k: the answer of the chain with the largest reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from magicore.methods.base import Need, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.methods.weighted_self_consistency import needs_of
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class BestOfK:
    """k chains, the answer of the one with the largest o (variants: s, S)."""

    name: ClassVar[str] = "best-of-k"

    k: int = 40
    weights: Literal["o", "s", "S"] = "o"

    def __post_init__(self) -> None:
        require_least({"k": 1}, self)

    @property
    def needs(self) -> frozenset[Need]:
        return needs_of(self.weights)

    @property
    def completions(self) -> tuple[int, int]:
        return self.k, self.k

    async def solve(self, rt: Runtime) -> Result:
        """Draw and score k chains and return the best one's answer."""
        return conclude(rt, self.name, await draw_and_score(rt, self.k), aggregation=self.name, weights=self.weights)
