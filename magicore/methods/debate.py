"""Multi-agent debate (Du et al., 2023): agents answer, read the others' answers, and answer again.

1. Each of ``agents`` agents solves the question.
2. In each further round every agent reads the latest solutions of the others, in its own conversation, and writes its
   solution anew; all agents at once.
3. The majority of the latest answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from magicore.methods.base import Need, require_least
from magicore.methods.conclude import conclude
from magicore.methods.rounds import (
    each_agent,
    first_draft,
    next_draft,
    open_agents,
    score_rounds,
    scored_as,
    shown_solutions,
)
from magicore.roles import Agent, check_personas, revise
from magicore.runtime.runtime import Runtime
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class Debate:
    """The method's configuration; defaults are the paper's.

    Attributes:
        agents: How many debate.
        rounds: Rounds, the first answers among them.
        personas: Personas of the first agents, if any.
    """

    name: ClassVar[str] = "debate"
    needs: ClassVar[frozenset[Need]] = frozenset()

    agents: int = 3
    rounds: int = 2
    personas: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_least({"agents": 1, "rounds": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        return self.agents * self.rounds, self.agents * self.rounds

    async def solve(self, rt: Runtime) -> Result:
        """Steps 1 to 3."""
        agents = await open_agents(rt, check_personas(rt, self.personas, self.agents, "agents"))
        drafts = [first_draft(agents)]
        for number in range(1, self.rounds):
            new = await debate_once(rt, agents, round=number)
            drafts.append(next_draft(agents, new))
            agents = new
        rounds = await score_rounds(rt, drafts)
        latest = scored_as(rounds, [agent.chain for agent in agents])
        return conclude(rt, self.name, latest, aggregation="self-consistency", rounds=rounds)


async def debate_once(rt: Runtime, agents: list[Agent], *, round: int) -> list[Agent]:
    """Every agent reads the others' latest solutions and writes its own anew."""

    async def step(agent: Agent) -> Agent:
        turn = rt.turn("debate", solutions=shown_solutions(agents, agent))
        return await revise(rt, agent, turn, round=round)

    return await each_agent(rt, agents, step, f"new solutions of round {round}")
