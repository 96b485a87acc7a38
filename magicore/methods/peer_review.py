"""Multi-agent peer review (Xu et al., arXiv 2311.08152): agents review each other's solutions and revise their own.

1. Each of ``agents`` agents solves the question.
2. Every agent reviews every other agent's solution step by step, with a confidence from 1 to 10; all reviews at once.
3. Every agent, in its own conversation, reads the reviews that its solution received and the others' solutions, and
   writes its solution anew; all agents at once. Back to 2, ``rounds`` times in all.
4. The majority of the latest answers.

Departure from the published code: an agent's reviews of one round do not see each other, so that they can be written at
once; in its conversation they then stand one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from magicore.llms.base import Message
from magicore.methods.base import Need, require_least
from magicore.methods.conclude import conclude
from magicore.methods.debate import debate_once
from magicore.methods.rounds import (
    each_agent,
    first_draft,
    left_out,
    next_draft,
    open_agents,
    score_rounds,
    scored_as,
)
from magicore.roles import Agent, Exchange, after, ask_review, check_personas, revise
from magicore.runtime.runtime import Runtime, collect
from magicore.types import Result, Review


@dataclass(frozen=True, kw_only=True)
class PeerReview:
    """The method's configuration; defaults are the paper's.

    Attributes:
        agents: How many solve and review.
        rounds: Rounds of review and revision.
        exchange: What an agent revises from: ``both``, the ``reviews`` it received only, or the others' ``solutions``
            only (nobody reviews; this is a debate).
        confidence: ``verbal`` asks each reviewer for a confidence; ``none`` does not.
        personas: Personas of the first agents, if any.
    """

    name: ClassVar[str] = "peer-review"
    needs: ClassVar[frozenset[Need]] = frozenset()

    agents: int = 3
    rounds: int = 1
    exchange: Literal["both", "reviews", "solutions"] = "both"
    confidence: Literal["verbal", "none"] = "verbal"
    personas: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_least({"agents": 1, "rounds": 1}, self)

    @property
    def completions(self) -> tuple[int, int]:
        reviews = 0 if self.exchange == "solutions" else self.agents * (self.agents - 1)
        total = self.agents + self.rounds * (reviews + self.agents)
        return total, total

    async def solve(self, rt: Runtime) -> Result:
        """Steps 1 to 4."""
        agents = await open_agents(rt, check_personas(rt, self.personas, self.agents, "agents"))
        drafts = [first_draft(agents)]
        for number in range(1, self.rounds + 1):
            reviews: Sequence[Review] = ()
            if self.exchange == "solutions":
                new = await debate_once(rt, agents, round=number)
            else:
                exchanges = await self._review(rt, agents, round=number)
                reviews = [exchange.review for exchange in exchanges]
                new = await self._revise(rt, agents, exchanges, round=number)
            drafts.append(next_draft(agents, new, reviews))
            agents = new
        rounds = await score_rounds(rt, drafts)
        latest = scored_as(rounds, [agent.chain for agent in agents])
        return conclude(rt, self.name, latest, aggregation="self-consistency", rounds=rounds)

    async def _review(self, rt: Runtime, agents: Sequence[Agent], *, round: int) -> list[Exchange]:
        """Step 2, in the order of reviewers and then of the reviewed."""
        rating = rt.engine.prompts.phrases.get("rating", "") if self.confidence == "verbal" else ""
        pairs = [(one, other) for one in agents for other in agents if one.number != other.number]
        done = await collect(
            [
                ask_review(
                    rt,
                    one,
                    rt.turn("peer-reviewer", solution=other.chain.text.strip(), rating=rating),
                    other.chain,
                    round=round,
                    index=other.number,
                )
                for one, other in pairs
            ]
        )
        return left_out(rt, done, f"reviews of round {round}")

    async def _revise(
        self, rt: Runtime, agents: Sequence[Agent], exchanges: Sequence[Exchange], *, round: int
    ) -> list[Agent]:
        """Step 3."""

        async def step(agent: Agent) -> Agent:
            own = [exchange for exchange in exchanges if exchange.review.instance == agent.number]
            return await revise(rt, after(agent, own), self._turn(rt, agent, agents, exchanges), round=round)

        return await each_agent(rt, agents, step, f"revisions of round {round}")

    def _turn(self, rt: Runtime, agent: Agent, agents: Sequence[Agent], exchanges: Sequence[Exchange]) -> Message:
        """What the agent is told: of each other agent its solution and its review, as the variant has it."""
        reviews = {
            exchange.review.instance: exchange.review.text.strip()
            for exchange in exchanges
            if exchange.review.chain == agent.chain.id
        }
        parts: list[str] = []
        for other in agents:
            if other.number == agent.number:
                continue
            if self.exchange == "both":
                parts.append(f"Agent {other.number + 1}'s solution:\n{other.chain.text.strip()}")
            if other.number in reviews:
                parts.append(f"Agent {other.number + 1}'s review of your solution:\n{reviews[other.number]}")
        return rt.turn("peer-revision", received="\n\n".join(parts) or "(nothing)")
