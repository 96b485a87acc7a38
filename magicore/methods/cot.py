"""Chain of thought: the one sampled chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, draw_and_score
from magicore.methods.conclude import conclude
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class ChainOfThought:
    """One chain, its answer (Wei et al., 2022). At temperature 0 it is the greedy chain."""

    name: ClassVar[str] = "cot"
    needs: ClassVar[frozenset[Need]] = frozenset()
    completions: ClassVar[tuple[int, int]] = (1, 1)

    async def solve(self, rt: Runtime) -> Result:
        """Draw one chain and return its answer."""
        return conclude(rt, self.name, await draw_and_score(rt, 1), aggregation="cot")
