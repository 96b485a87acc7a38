"""One agent and its conversation: it solves, is told something, and writes its solution anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magicore.llms.base import Message
from magicore.roles.review_text import parse_review
from magicore.roles.reviewer import read_review
from magicore.runtime.runtime import Runtime
from magicore.types import Chain, Completion, Review

PEER_SCALE = (1, 10)
"""The confidence scale of peer review."""


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent after it has written a solution.

    Attributes:
        number: Which of several, from 0.
        role: ``solver``, or ``author`` in MARS.
        conversation: Its messages so far, the latest solution last.
        chain: Its latest solution.
    """

    number: int
    role: str
    conversation: tuple[Message, ...]
    chain: Chain


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One question to an agent and its reply, and the review that this is."""

    messages: tuple[Message, Message]
    review: Review


async def open_agent(rt: Runtime, number: int = 0, *, role: str = "solver", persona: str | None = None) -> Agent:
    """An agent with its first solution.

    Raises:
        LanguageModelError: the solution could not be had.
    """
    opening = rt.messages(role, persona=persona)
    chain = (await rt.chains(role, opening, instance=number))[0]
    return Agent(number=number, role=role, conversation=(*opening, _said(chain.text)), chain=chain)


async def revise(rt: Runtime, agent: Agent, turn: Message, *, round: int) -> Agent:
    """The agent after it was told ``turn`` and has written its solution anew: a chain whose parent is the last one.

    Raises:
        LanguageModelError: the new solution could not be had.
    """
    messages = (*agent.conversation, turn)
    chains = await rt.chains(agent.role, messages, instance=agent.number, round=round, parent=agent.chain.id)
    chain = chains[0]
    return Agent(number=agent.number, role=agent.role, conversation=(*messages, _said(chain.text)), chain=chain)


async def ask_review(rt: Runtime, agent: Agent, turn: Message, chain: Chain, *, round: int, index: int = 0) -> Exchange:
    """What the agent says, in its conversation, of a chain (another agent's, or its own). ``index`` tells the reviews
    of one agent in one round apart.

    Raises:
        LanguageModelError: the review could not be had.
    """
    messages = (*agent.conversation, turn)
    completions = await rt.complete(
        "reviewer", messages, indices=(index,), instance=agent.number, round=round, parent=chain.id
    )
    return Exchange(
        messages=(turn, _said(completions[0].text)),
        review=_peer_review(rt, agent, chain, completions[0], round),
    )


def after(agent: Agent, exchanges: Sequence[Exchange]) -> Agent:
    """The agent with these exchanges in its conversation."""
    told = tuple(message for exchange in exchanges for message in exchange.messages)
    return Agent(number=agent.number, role=agent.role, conversation=(*agent.conversation, *told), chain=agent.chain)


def _peer_review(rt: Runtime, agent: Agent, chain: Chain, completion: Completion, round: int) -> Review:
    fields = parse_review(completion.text, scale=PEER_SCALE)
    return read_review(rt.problem, chain, completion, fields, "reviewer", agent.number, round, fields.confidence)


def _said(text: str) -> Message:
    return Message(role="assistant", content=text)
