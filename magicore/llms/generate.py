"""A language model as reward models call one: for judges and other generative families."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

from magicore.errors import CapabilityError
from magicore.llms.base import Message, Request, Sampling
from magicore.llms.sampler import SampleOutcome
from magicore.types import CallKey, Completion, Usage
from reward_models import errors as reward_errors
from reward_models.base import Generate, Reply
from reward_models.base import Message as JudgeMessage
from reward_models.types import ScoringUsage


class Samples(Protocol):
    """A model behind a sampler, with or without a store."""

    @property
    def name(self) -> str: ...

    async def sample(self, request: Request) -> SampleOutcome: ...


class Books(Protocol):
    """Where a judge's tokens are booked, and the seed that its calls go by."""

    @property
    def seed(self) -> int: ...

    def book(self, role: str, model: str, usage: Usage) -> None: ...

    def warn(self, text: str) -> None: ...


class CurrentBooks(Protocol):
    """The books of the problem being worked on: a context variable."""

    def get(self) -> Books | None: ...


def generate_with(model: Samples, *, seed: int = 0, ledger: CurrentBooks | None = None) -> Generate:
    """The callable a judge is given.

    Its calls have the role ``judge`` and are told apart by their messages. Log-probabilities are given where the model
    has them, else left out (``Reply.logprobs`` is ``None``); a prefill is required. Fewer replies than ``n`` come back
    when some could not be had. ``seed`` is that of calls outside a problem; inside one its books say it.

    Raises (the callable):
        reward_models.errors.CapabilityError: The model cannot continue a reply that is begun for it.
        LanguageModelError: No reply could be had.
    """

    async def generate(
        messages: Sequence[JudgeMessage],
        *,
        prefill: str | None = None,
        stop: Sequence[str] = (),
        max_tokens: int = 1024,
        temperature: float = 0.0,
        top_logprobs: int = 0,
        n: int = 1,
    ) -> list[Reply]:
        turns = tuple(Message(role=turn["role"], content=turn["content"]) for turn in messages)
        books = ledger.get() if ledger is not None else None
        request = Request(
            messages=turns,
            key=CallKey(problem=_digest(turns), role="judge"),
            indices=tuple(range(n)),
            sampling=Sampling(temperature=temperature, top_p=None, max_tokens=max_tokens, stop=tuple(stop)),
            prefill=prefill,
            top_logprobs=top_logprobs,
            logprobs_required=False,
            seed=seed if books is None else books.seed,
        )
        try:
            outcome = await model.sample(request)
        except CapabilityError as error:
            raise reward_errors.CapabilityError(str(error)) from error
        if books is not None:
            for completion in outcome.completions:
                books.book("judge", model.name, completion.usage)
            for note in outcome.notes:
                books.warn(note)
        if outcome.failures and not outcome.completions:
            raise outcome.failures[0].error
        return [_reply(completion) for completion in outcome.completions]

    return generate


def _reply(completion: Completion) -> Reply:
    rows = completion.top_logprobs
    usage = completion.usage
    return Reply(
        text=completion.text,
        logprobs=None if rows is None else tuple(dict(row) for row in rows),
        stop=completion.stop,
        usage=ScoringUsage(prompt_tokens=usage.prompt, completion_tokens=usage.completion, calls=usage.calls),
    )


def _digest(turns: Sequence[Message]) -> str:
    text = json.dumps([[turn["role"], turn["content"]] for turn in turns], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
