"""Self-consistency: the majority of k chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class SelfConsistency:
    """k chains, the largest answer class by count (Wang et al., 2022)."""

    name: ClassVar[str] = "self-consistency"
    needs: ClassVar[frozenset[Need]] = frozenset()

    k: int = 40

    def __post_init__(self) -> None:
        require_least({"k": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return self.k, self.k

    async def solve(self, rt: Runtime) -> Result:
        """Draw k chains and return the majority's answer."""
        return conclude(rt, self.name, await draw_and_score(rt, self.k), aggregation="self-consistency")
