"""The values that flow through a run: frozen, keyword-only, passed forward and never written back.

``Problem`` -> ``Chain`` -> ``ScoredChain`` -> (``Round``) -> ``Result``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from difficulty import Verdict
from magicore.answers.kinds import Kind
from reward_models.types import OutcomeScore, Solution, Step, StepScores

StopReason = Literal["stop", "length", "filter", "error"]
"""Why a completion ended: by itself or at a stop string, at the token limit, by a content filter, by a failure."""

ResultStop = Literal["done", "accepted", "iterations", "budget", "failed"]
"""Why a method ended: nothing more to do, a meta-reviewer accepted, rounds used up, budget used up, an error."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A question to answer. ``answer`` is the gold answer where known; ``extra`` holds unknown input keys."""

    id: str
    question: str
    kind: Kind
    answer: str | None = None
    options: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CallKey:
    """Which call of which problem this is, apart from the sample index.

    Attributes:
        problem: The problem's id.
        role: ``solver``, ``reviewer``, ``refiner``, ``meta-reviewer``, ``author``, ``judge`` ...
        instance: Which of several equal actors (agent 0, 1, 2; reviewer 0, 1).
        round: 0 for first chains, t for the t-th refinement round.
        parent: The id of the chain that is reviewed or refined, if any.
    """

    problem: str
    role: str
    instance: int = 0
    round: int = 0
    parent: str | None = None

    def chain_id(self, index: int) -> str:
        """``problem/role/instance/round/index``."""
        return f"{self.problem}/{self.role}/{self.instance}/{self.round}/{index}"


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens and calls. ``unmetered`` counts calls whose server gave no usage: their tokens are unknown, not 0.

    ``cached`` are the prompt tokens that the server had read before. They are part of ``prompt``, and no part of what
    is equal in two equal runs.
    """

    prompt: int = 0
    completion: int = 0
    reasoning: int = 0
    calls: int = 0
    unmetered: int = 0
    cached: int = field(default=0, compare=False)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            reasoning=self.reasoning + other.reasoning,
            calls=self.calls + other.calls,
            unmetered=self.unmetered + other.unmetered,
            cached=self.cached + other.cached,
        )

    @property
    def total(self) -> int:
        """Prompt and completion tokens together (reasoning tokens are part of the completion)."""
        return self.prompt + self.completion


@dataclass(frozen=True, kw_only=True)
class RoleUsage:
    """What one role spent on one model."""

    role: str
    model: str
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One sampled completion.

    Attributes:
        index: Which sample of its call key this is.
        text: The visible text, without an inline thinking block.
        thinking: The reasoning, from a reasoning field or an inline ``<think>`` block.
        stop: Why it ended.
        tokens: Tokens generated for this completion, thinking included; ``None`` where the server did not say.
        token_logprobs: Natural log-probability of each generated token, where asked for and given.
        top_logprobs: For each token its most likely alternatives, ``((token, log-probability), ...)``.
        usage: This completion's share of its request: shares of one request add up to what the server charged. The
            prompt and the call are booked on the request's first completion.
        seed: The seed that was sent with its request; ``None`` where none was. A model that samples here needs none:
            each sample's random state comes from its content key.
    """

    index: int
    text: str
    stop: StopReason
    thinking: str | None = None
    tokens: int | None = None
    token_logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] | None = None
    usage: Usage = field(default_factory=Usage)
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Chain:
    """One solution: a completion read as steps and an answer. A refinement is a new chain with a ``parent``."""

    id: str
    problem: str
    role: str
    round: int
    index: int
    text: str
    stop: StopReason
    parent: str | None = None
    thinking: str | None = None
    steps: tuple[Step, ...] = ()
    answer: str | None = None
    answer_text: str | None = None
    no_answer: str | None = None
    tokens: int | None = None
    token_logprobs: tuple[float, ...] | None = None
    top_logprobs: tuple[tuple[float, ...], ...] | None = None

    def solution(self, question: str) -> Solution:
        """The chain as a reward model sees it."""
        return Solution(
            question=question,
            text=self.text,
            steps=self.steps,
            id=self.id,
            token_logprobs=self.token_logprobs,
            top_logprobs=self.top_logprobs,
            stop=self.stop,
            thinking=self.thinking,
        )


@dataclass(frozen=True, kw_only=True)
class ScoredChain:
    """A chain and its scores. ``o`` and ``s`` lie in [0, 1]; ``None`` is missing, with the reason in ``orm``/``prm``.

    ``aggregation`` names how ``s`` was made from the scored steps.
    """

    chain: Chain
    orm: OutcomeScore | None = None
    prm: StepScores | None = None
    o: float | None = None
    s: float | None = None
    aggregation: str | None = None

    @property
    def combined(self) -> float | None:
        """S = o + s; missing where either is missing."""
        return None if self.o is None or self.s is None else self.o + self.s


@dataclass(frozen=True, kw_only=True)
class Review:
    """What a reviewer wrote about one chain, and what could be read of it."""

    chain: str
    role: str
    round: int
    text: str
    instance: int = 0
    decision: Literal["right", "wrong"] | None = None
    confidence: float | None = None
    justification: str | None = None
    suggestions: str | None = None
    answer: str | None = None
    stop: StopReason = "stop"


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of a method: what was written, which chains were kept, and how the kept chains were routed.

    Round 0 is the first sampling. ``chains`` are the new chains of this round, ``kept`` the ids carried on.
    """

    number: int
    chains: tuple[ScoredChain, ...]
    kept: tuple[str, ...]
    reviews: tuple[Review, ...] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True, kw_only=True)
class ClassVotes:
    """One answer class in the final vote."""

    answer: str
    count: int
    weight: float | None


@dataclass(frozen=True, kw_only=True)
class Abstention:
    """A chain that took no part in the vote, and why."""

    chain: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What ended a problem without a result."""

    type: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """What every method returns (methods.md, section 7). ``answer`` is canonical, ``answer_text`` as written."""

    id: str
    kind: Kind
    method: str
    answer: str | None = None
    answer_text: str | None = None
    gold: str | None = None
    correct: bool | None = None
    chain: str | None = None
    verdict: Verdict | None = None
    votes: tuple[ClassVotes, ...] = ()
    abstained: tuple[Abstention, ...] = ()
    rounds: tuple[Round, ...] = ()
    stop: ResultStop = "done"
    error: Failure | None = None
    usage: tuple[RoleUsage, ...] = ()
    warnings: tuple[str, ...] = ()
