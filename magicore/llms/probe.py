"""Find out what an endpoint does, with five small calls: ``magicore probe MODEL``."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from magicore.errors import LanguageModelError
from magicore.llms.base import Generation, LanguageModel, Request, Sampling, messages
from magicore.llms.profile import EndpointProfile
from magicore.llms.sampler import RetryPolicy
from magicore.types import CallKey, Completion, Usage

SAMPLES = 4
_PROMPT = "Describe a lighthouse, its keeper and the weather of one night in a few long sentences."
_TOKENS = 96
_FEW_TOKENS = 8


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What was found.

    Attributes:
        profile: The endpoint's habits.
        usage: What finding out has cost.
        seconds: How long the first call took.
        notes: What it said it would not do.
    """

    profile: EndpointProfile
    usage: Usage
    seconds: float
    notes: tuple[str, ...] = ()


async def probe(model: LanguageModel) -> Probe:
    """Ask for several samples at once, for the same seed twice and another one, and for too few tokens.

    Raises:
        LanguageModelError: It answers nothing.
    """
    profile: EndpointProfile = getattr(model, "profile", None) or EndpointProfile()
    started = time.perf_counter()
    generation = await _ask(model, tuple(range(SAMPLES)), logprobs=True)
    seconds = time.perf_counter() - started
    completions, notes = list(generation.completions), generation.notes
    _several(profile, completions)
    one = await _ask(model, (SAMPLES,))
    same = await _ask(model, (SAMPLES,))
    other = await _ask(model, (SAMPLES + 1,))
    cut = await _ask(model, (0,), tokens=_FEW_TOKENS)
    _seeds(profile, *(_text(found.completions[0]) for found in (one, same, other)))
    for found in (one, same, other, cut):
        completions += found.completions
        notes += found.notes
    return Probe(
        profile=profile,
        usage=sum((completion.usage for completion in completions), Usage()),
        seconds=seconds,
        notes=tuple(dict.fromkeys(notes)),
    )


async def _ask(
    model: LanguageModel, indices: tuple[int, ...], *, tokens: int = _TOKENS, logprobs: bool = False
) -> Generation:
    request = Request(
        messages=messages(("user", _PROMPT)),
        key=CallKey(problem="probe", role="probe"),
        indices=indices,
        sampling=Sampling(temperature=1.0, top_p=None, max_tokens=tokens),
        logprobs=logprobs,
        logprobs_required=False,
    )
    policy, draw = RetryPolicy(attempts=4, slowdowns=6), random.Random(0)
    attempt = 1
    while True:
        try:
            return await model.generate(request)
        except LanguageModelError as error:
            if not error.retryable or attempt >= policy.attempts:
                raise
            await asyncio.sleep(policy.wait(attempt, error, draw))
            attempt += 1


def _several(profile: EndpointProfile, completions: Sequence[Completion]) -> None:
    """What one reply to a request for several samples shows."""
    profile.answered = True
    profile.n = len(completions) == SAMPLES
    if not profile.n:
        profile.max_n = len(completions)
    texts = {_text(completion) for completion in completions}
    if len(completions) > 1:
        profile.distinct = len(texts) > 1
    if profile.logprobs is None:
        profile.logprobs = any(completion.token_logprobs for completion in completions)


def _seeds(profile: EndpointProfile, one: str, same: str, other: str) -> None:
    """Whether equal seeds gave equal samples, and another one another."""
    profile.seeds = "seed" not in profile.refused and one == same and one != other


def _text(completion: Completion) -> str:
    return f"{completion.thinking or ''}\n{completion.text}"
