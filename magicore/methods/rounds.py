"""What the multi-agent methods share: rounds that are scored at the end, and what is kept where a call fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from magicore.errors import LanguageModelError
from magicore.roles import Agent, open_agent
from magicore.runtime.runtime import Runtime, collect
from magicore.types import Chain, Review, Round, ScoredChain

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A round before its chains are scored: ``kept`` are the chains carried on."""

    chains: tuple[Chain, ...]
    kept: tuple[Chain, ...]
    reviews: tuple[Review, ...] = ()


async def score_rounds(rt: Runtime, drafts: Sequence[Draft]) -> tuple[Round, ...]:
    """The rounds with their chains scored, all in one batch, by whichever reward models the run has."""
    scored = iter(await rt.score([chain for draft in drafts for chain in draft.chains]))
    return tuple(
        Round(
            number=number,
            chains=tuple(islice(scored, len(draft.chains))),
            kept=tuple(chain.id for chain in draft.kept),
            reviews=draft.reviews,
        )
        for number, draft in enumerate(drafts)
    )


def scored_as(rounds: Sequence[Round], chains: Sequence[Chain]) -> list[ScoredChain]:
    """The scored forms of ``chains``, in their order."""
    known = {scored.chain.id: scored for round in rounds for scored in round.chains}
    return [known[chain.id] for chain in chains]


def left_out(rt: Runtime, done: Sequence[T | LanguageModelError], what: str) -> list[T]:
    """What succeeded; what failed is warned about."""
    failures = [item for item in done if isinstance(item, LanguageModelError)]
    if failures:
        rt.warn(f"{len(failures)} of {len(done)} {what} failed: {failures[0]}")
    return [item for item in done if not isinstance(item, LanguageModelError)]


async def open_agents(rt: Runtime, personas: Sequence[str | None]) -> list[Agent]:
    """One agent a persona, each with its first solution; those that failed are left out and warned about.

    Raises:
        LanguageModelError: all of them failed.
    """
    done = await collect([open_agent(rt, number, persona=persona) for number, persona in enumerate(personas)])
    first = done[0]
    if isinstance(first, LanguageModelError) and all(isinstance(item, LanguageModelError) for item in done):
        raise first
    return left_out(rt, done, "first solutions")


async def each_agent(
    rt: Runtime, agents: Sequence[Agent], step: Callable[[Agent], Awaitable[Agent]], what: str
) -> list[Agent]:
    """The agents after a step that all take at once; one whose call fails stays as it was, and that is warned about."""
    done = await collect([step(agent) for agent in agents])
    left_out(rt, done, what)
    return [agent if isinstance(new, LanguageModelError) else new for agent, new in zip(agents, done, strict=True)]


def first_draft(agents: Sequence[Agent]) -> Draft:
    """Round 0: the agents' first solutions."""
    chains = tuple(agent.chain for agent in agents)
    return Draft(chains=chains, kept=chains)


def next_draft(before: Sequence[Agent], after: Sequence[Agent], reviews: Sequence[Review] = ()) -> Draft:
    """A round in which agents wrote anew: its new chains, and everyone's latest."""
    known = {agent.chain.id for agent in before}
    return Draft(
        chains=tuple(agent.chain for agent in after if agent.chain.id not in known),
        kept=tuple(agent.chain for agent in after),
        reviews=tuple(reviews),
    )


def shown_solutions(agents: Sequence[Agent], reader: Agent) -> str:
    """The latest solutions of all agents but ``reader``, each under its agent's number, counted from 1."""
    return "\n\n".join(
        f"Agent {agent.number + 1}'s solution:\n{agent.chain.text.strip()}"
        for agent in agents
        if agent.number != reader.number
    )
