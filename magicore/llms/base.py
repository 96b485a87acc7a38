"""The one protocol of language models, and the request it takes.

A model samples: given one :class:`Request` it returns the completions it could get, one for each index asked for, or
fewer. It raises :class:`~magicore.errors.LanguageModelError` when it could get none. Topping up what is missing,
retrying, limiting, storing and counting are wrappers around it (``sampler``, ``limiter``, ``stored``), so a provider
stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict, runtime_checkable

from magicore.types import CallKey, Completion


class Message(TypedDict):
    """One chat message, as every OpenAI-compatible endpoint takes it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling parameters. ``None`` leaves a parameter to the endpoint's default; temperature 0 is greedy."""

    temperature: float | None = 0.8
    top_p: float | None = 0.95
    max_tokens: int = 1000
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """Ask for ``len(indices)`` samples of one conversation.

    Attributes:
        messages: The conversation so far.
        key: Which call this is.
        indices: The sample indices wanted (0..k-1 at first; the missing ones when topping up).
        sampling: The sampling parameters.
        prefill: Text that the reply must begin with; the completion's text then continues it and does not repeat it.
        logprobs: Whether the log-probability of each generated token is asked for.
        top_logprobs: How many alternatives a position are asked for (0: none).
        logprobs_required: Whether a reply without the log-probabilities asked for is of no use. It is by default, and a
            model that cannot give them raises :class:`~magicore.errors.CapabilityError`; otherwise the reply is taken
            without them.
        seed: The run's seed; a model derives one for each sample with :func:`sample_seed`.
    """

    messages: tuple[Message, ...]
    key: CallKey
    indices: tuple[int, ...] = (0,)
    sampling: Sampling = field(default_factory=Sampling)
    prefill: str | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    logprobs_required: bool = True
    seed: int = 0

    @property
    def wants_logprobs(self) -> bool:
        """Whether log-probabilities of any kind are asked for."""
        return self.logprobs or self.top_logprobs > 0


@dataclass(frozen=True, kw_only=True)
class Generation:
    """What one request brought: completions in index order, and notes on what the endpoint would not do.

    ``lost`` counts replies on the way to these that never came or could not be read: what they cost is not known.
    """

    completions: tuple[Completion, ...]
    notes: tuple[str, ...] = ()
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What can be said of a model before it is asked.

    Attributes:
        remote: Whether its calls go to a server, so that they may cost money, fail and be retried.
        max_n: The most samples to ask for in one request; ``None``: as many as are wanted.
        concurrency: The most samples to have in flight; ``None``: found by trying (see ``limiter``).
        by_problem: Whether its answers depend on the problem's id and not on the messages alone, so that equal
            questions must not share samples.
    """

    remote: bool = False
    max_n: int | None = None
    concurrency: int | None = None
    by_problem: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """A language model under one name.

    ``name`` is the model as the user named it; ``fingerprint`` changes whenever its samples may (revision, weights).
    Optional attribute, read with :func:`traits`: ``traits``.
    """

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    async def generate(self, request: Request) -> Generation: ...

    async def aclose(self) -> None: ...


def traits(model: LanguageModel) -> Traits:
    """What the model says of itself; the default where it says nothing."""
    found: Traits = getattr(model, "traits", Traits())
    return found


def messages(*turns: tuple[str, str]) -> tuple[Message, ...]:
    """``messages(("system", "..."), ("user", "..."))``."""
    return tuple(Message(role=role, content=content) for role, content in turns)


def last_user_text(conversation: Sequence[Message]) -> str:
    """The content of the last user message; empty if there is none."""
    return next((message["content"] for message in reversed(conversation) if message["role"] == "user"), "")
