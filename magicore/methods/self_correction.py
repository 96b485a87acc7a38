"""Self-correction: answer, critique, corrected answer, in one conversation.

1. The solver solves the question.
2. It criticises its solution.
3. It mends what it found and writes the solution again. That answer counts; of several agents, the majority.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, require_least
from magicore.methods.conclude import conclude
from magicore.methods.rounds import (
    Draft,
    each_agent,
    first_draft,
    next_draft,
    open_agents,
    score_rounds,
    scored_as,
)
from magicore.roles import Agent, after, ask_review, check_personas, revise
from magicore.runtime.runtime import Runtime
from magicore.types import Result, Review


@dataclass(frozen=True, kw_only=True)
class SelfCorrection:
    """The method's configuration.

    Attributes:
        agents: How many correct themselves, each alone; the majority of their answers counts.
        personas: Personas of the first agents, if any.
    """

    name: ClassVar[str] = "self-correction"
    needs: ClassVar[frozenset[Need]] = frozenset()

    agents: int = 1
    personas: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_least({"agents": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return 3 * self.agents, 3 * self.agents

    async def solve(self, rt: Runtime) -> Result:
        """Steps 1 to 3. An agent whose critique or correction fails keeps its first answer, with a warning."""
        critiques: dict[int, Review] = {}

        async def correct(agent: Agent) -> Agent:
            exchange = await ask_review(rt, agent, rt.turn("critique"), agent.chain, round=1)
            critiques[agent.number] = exchange.review
            return await revise(rt, after(agent, [exchange]), rt.turn("correction"), round=1)

        first = await open_agents(rt, check_personas(rt, self.personas, self.agents, "agents"))
        last = await each_agent(rt, first, correct, "corrections")
        reviews = [critiques[agent.number] for agent in first if agent.number in critiques]
        drafts: list[Draft] = [first_draft(first), next_draft(first, last, reviews)]
        rounds = await score_rounds(rt, drafts)
        latest = scored_as(rounds, [agent.chain for agent in last])
        return conclude(rt, self.name, latest, aggregation="self-consistency", rounds=rounds)
