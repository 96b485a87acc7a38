"""Self-reflection: one chain, one pass of finding mistakes and revising.

1. The solver solves the question.
2. In the same conversation it looks for mistakes and writes the solution again. That answer counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need
from magicore.methods.conclude import conclude
from magicore.methods.rounds import each_agent, first_draft, next_draft, open_agents, score_rounds, scored_as
from magicore.roles import Agent, revise
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class SelfReflection:
    """The method has no options."""

    name: ClassVar[str] = "self-reflection"
    needs: ClassVar[frozenset[Need]] = frozenset()
    completions: ClassVar[tuple[int, int]] = (2, 2)

    async def solve(self, rt: Runtime) -> Result:
        """Solve, then reflect. A reflection that fails leaves the first answer, with a warning."""

        async def reflect(agent: Agent) -> Agent:
            return await revise(rt, agent, rt.turn("reflection"), round=1)

        first = await open_agents(rt, [None])
        last = await each_agent(rt, first, reflect, "reflections")
        rounds = await score_rounds(rt, [first_draft(first), next_draft(first, last)])
        return conclude(rt, self.name, scored_as(rounds, [last[0].chain]), aggregation="cot", rounds=rounds)
