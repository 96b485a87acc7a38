"""Self-consistency weighted by the process reward model alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, draw_and_score, require_least
from magicore.methods.conclude import conclude
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class SelfConsistencyPRM:
    """k chains, the largest class by the sum of s (Math-Shepherd's SC + reward model)."""

    name: ClassVar[str] = "sc+prm"
    needs: ClassVar[frozenset[Need]] = frozenset({"prm"})

    k: int = 40

    def __post_init__(self) -> None:
        require_least({"k": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return self.k, self.k

    async def solve(self, rt: Runtime) -> Result:
        """Draw and score k chains and return the answer of the class with the largest sum of s."""
        return conclude(rt, self.name, await draw_and_score(rt, self.k), aggregation=self.name)
