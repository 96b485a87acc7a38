"""Exactly the samples that were asked for, or a typed failure for each that could not be had.

A model may give fewer samples than asked for, fail for a while, or fail for good. The sampler asks again for what is
missing and for nothing else: a failure costs only the samples it concerns, and what has come is kept.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from magicore.errors import BadReply, ConnectionFailed, LanguageModelError, RateLimited
from magicore.llms.base import Generation, LanguageModel, Request, Traits, traits
from magicore.llms.calls import Call, CallWatcher
from magicore.llms.identity import request_seed
from magicore.llms.limiter import Limiter
from magicore.llms.profile import EndpointProfile
from magicore.types import Completion, Usage

REMOTE_MAX_N = 16
"""The most samples in one request to a server: they share the charge for the prompt; a broken reply loses no more."""
_REFUSALS_AT_FIRST = 2


@dataclass(frozen=True, kw_only=True)
class SampleFailure:
    """A sample that could not be had: the last error, and how many calls were made for it."""

    index: int
    error: LanguageModelError
    attempts: int


@dataclass(frozen=True, kw_only=True)
class SampleOutcome:
    """What came of a request: completions and failures in the order of the indices, each index in one of the two.

    Attributes:
        completions: The samples that came.
        failures: The samples that did not.
        notes: What the user should know of these samples: that some repeat each other.
        endpoint_notes: What the user should know of the endpoint: parameters that it refuses. They come with whichever
            request finds it out, and concern them all.
        retries: Calls that were made again after a failure.
        waited_s: Seconds spent waiting before them.
        lost: Calls whose reply never came or could not be read: what they cost is not known.
    """

    completions: tuple[Completion, ...]
    failures: tuple[SampleFailure, ...] = ()
    notes: tuple[str, ...] = ()
    endpoint_notes: tuple[str, ...] = ()
    retries: int = 0
    waited_s: float = 0.0
    lost: int = 0


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How often and after how long a call is made again.

    The n-th retry waits between half and all of ``first_s * 2**(n - 1)``, at most ``longest_s``, and never less than
    the endpoint asked for. ``attempts`` counts calls that brought nothing (one that brings some of the samples is no
    failure); being asked to slow down is no failure of the call, so it may happen ``slowdowns`` times.
    """

    attempts: int = 6
    slowdowns: int = 30
    first_s: float = 0.5
    longest_s: float = 60.0

    def wait(self, attempt: int, error: LanguageModelError, draw: random.Random) -> float:
        """Seconds before the retry that follows failed attempt number ``attempt`` (from 1)."""
        bound = min(self.longest_s, self.first_s * 2.0 ** (attempt - 1))
        asked = error.retry_after if isinstance(error, RateLimited) else None
        pause = bound * (0.5 + 0.5 * draw.random())
        return pause if asked is None else asked + pause * 0.1


@dataclass
class _Progress:
    """What one request has brought so far."""

    completions: dict[int, Completion] = field(default_factory=dict)
    failures: dict[int, SampleFailure] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    retries: int = 0
    waited_s: float = 0.0
    lost: int = 0


class _Retry(Exception):
    """A call failed and is to be made again after a pause."""

    def __init__(self, error: LanguageModelError, pause: float) -> None:
        super().__init__()
        self.error = error
        self.pause = pause


Received = Callable[[Request, Sequence[Completion]], Awaitable[None]]


class Sampler:
    """Draws samples from a model; see the module's text.

    Args:
        model: The model.
        retry: How failures are retried.
        watcher: Is told of every call.
        limiter: How many samples are in flight; shared between samplers of one endpoint. By default one is made:
            adaptive for a server, as wide as the model asks for otherwise.
        received: Awaited with the completions of each call as soon as they are there.
        sleep, clock: For tests.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        retry: RetryPolicy | None = None,
        limiter: Limiter | None = None,
        received: Received | None = None,
        watcher: CallWatcher | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._traits = traits(model)
        self._retry = retry or RetryPolicy()
        self._limiter = limiter or _limiter_for(self._traits, clock)
        self._profile: EndpointProfile = getattr(model, "profile", None) or EndpointProfile()
        self._received = received
        self._watcher = watcher
        self._sleep = sleep
        self._clock = clock

    async def sample(self, request: Request) -> SampleOutcome:
        """Every sample of the request, or the reason why not.

        Raises:
            CapabilityError: The model cannot do what was asked, whichever sample.
        """
        progress = _Progress()
        await self._gather(
            [self._part(replace(request, indices=part), progress) for part in self._parts(request.indices)]
        )
        completions = tuple(progress.completions[at] for at in request.indices if at in progress.completions)
        repeats = repetition_note(completions, request)
        return SampleOutcome(
            completions=completions,
            failures=tuple(progress.failures[at] for at in request.indices if at in progress.failures),
            notes=() if repeats is None else (repeats,),
            endpoint_notes=tuple(progress.notes),
            retries=progress.retries,
            waited_s=progress.waited_s,
            lost=progress.lost,
        )

    def _parts(self, indices: Sequence[int]) -> list[tuple[int, ...]]:
        """The indices in requests, none larger than the model gives at once.

        Which indices share a request does not depend on which are there already, so that a run that goes on after an
        interruption asks what it would have asked.
        """
        most = self._traits.max_n or (REMOTE_MAX_N if self._traits.remote else max(indices, default=0) + 1)
        most = min(most, self._profile.max_n or most)
        if self._profile.distinct is False:
            most = 1
        blocks: dict[int, list[int]] = {}
        for index in indices:
            blocks.setdefault(index // most, []).append(index)
        return [tuple(block) for block in blocks.values()]

    async def _part(self, request: Request, progress: _Progress) -> None:
        """One request until all its samples are there or given up."""
        draw = random.Random(request_seed(self.model.name, self.model.fingerprint, request))
        attempt = 0
        while True:
            attempt += 1
            try:
                generation = await self._call(request, attempt, draw)
            except _Retry as again:
                progress.lost += again.error.lost
                progress.retries += 1
                progress.waited_s += again.pause
                await self._sleep(again.pause)
                continue
            except LanguageModelError as error:
                progress.lost += error.lost
                for index in request.indices:
                    progress.failures[index] = SampleFailure(index=index, error=error, attempts=attempt)
                return
            progress.lost += generation.lost
            for note in generation.notes:
                progress.notes.setdefault(note)
            for completion in generation.completions:
                progress.completions[completion.index] = completion
            missing = tuple(index for index in request.indices if index not in progress.completions)
            if missing:
                rest = [replace(request, indices=part) for part in self._parts(missing)]
                await self._gather([self._part(part, progress) for part in rest])
            return

    async def _call(self, request: Request, attempt: int, draw: random.Random) -> Generation:
        """One call in its slots, watched.

        Raises:
            _Retry: It failed and is to be made again.
            LanguageModelError: It failed for good.
        """
        waiting, asked = self._clock(), len(request.indices)
        async with self._limiter.slots(asked):
            call = Call(
                model=self.model.name,
                key=request.key,
                asked=asked,
                attempt=attempt,
                began=time.time(),
                queued_s=self._clock() - waiting,
            )
            if self._watcher is not None:
                self._watcher.calling(call.model, asked)
            started = self._clock()
            try:
                generation = await self._generate(request, started)
            except LanguageModelError as error:
                pause = self._retry.wait(attempt, error, draw) if self._may_retry(error, attempt) else None
                self._tell(replace(call, seconds=self._clock() - started, lost=error.lost, error=error, retry_in=pause))
                if pause is None:
                    raise
                raise _Retry(error, pause) from error
            seconds = self._clock() - started
            completions = generation.completions
            self._tell(
                replace(
                    call,
                    seconds=seconds,
                    given=len(completions),
                    lost=generation.lost,
                    cut=sum(one.stop == "length" for one in completions),
                    usage=sum((one.usage for one in completions), Usage()),
                )
            )
        tokens = sum(one.tokens or len(one.text) // 4 for one in completions)
        self._limiter.succeeded(len(completions), tokens, seconds)
        return generation

    async def _generate(self, request: Request, started: float) -> Generation:
        """What the model brings, stored. An empty reply is a failure, so that it is not asked for again without end."""
        try:
            generation = await self.model.generate(request)
        except RateLimited as error:
            self._limiter.throttled(started, error.retry_after)
            raise
        wanted = set(request.indices)
        completions = tuple(one for one in generation.completions if one.index in wanted)
        if not completions:
            raise BadReply("answered without a single completion", model=self.model.name)
        if self._received is not None:
            await self._received(request, completions)
        self._profile.answered = True
        self._profile.learn_count(len(request.indices), len(completions))
        if request.sampling.temperature != 0:
            self._profile.learn_samples([f"{one.thinking or ''}\n{one.text}" for one in completions])
        return replace(generation, completions=completions)

    def _tell(self, call: Call) -> None:
        if self._watcher is not None:
            self._watcher.called(call)

    def _may_retry(self, error: LanguageModelError, attempt: int) -> bool:
        if isinstance(error, ConnectionFailed) and not error.lost and not self._profile.answered:
            return attempt < _REFUSALS_AT_FIRST  # most likely a wrong address: say so soon
        most = self._retry.slowdowns if isinstance(error, RateLimited) else self._retry.attempts
        return error.retryable and attempt < most

    async def _gather(self, parts: Sequence[Awaitable[None]]) -> None:
        if len(parts) == 1:
            await parts[0]
            return
        tasks = [asyncio.ensure_future(part) for part in parts]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def repetition_note(completions: Sequence[Completion], request: Request) -> str | None:
    """Says how many samples repeat another one word for word, where they should differ; ``None`` if none does."""
    if request.sampling.temperature == 0 or len(completions) < 2:
        return None
    distinct = len({(one.thinking, one.text) for one in completions})
    repeats = len(completions) - distinct
    if not repeats:
        return None
    return f"{repeats} of {len(completions)} {request.key.role} samples repeat another one word for word"


def _limiter_for(known: Traits, clock: Callable[[], float]) -> Limiter:
    if known.concurrency is not None:
        return Limiter(initial=known.concurrency, maximum=known.concurrency, clock=clock)
    if not known.remote:
        return Limiter(initial=2**20, maximum=2**20, clock=clock)
    return Limiter(clock=clock)
