"""A language model behind the store: what was sampled before is read back, what is missing is asked for and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from magicore.errors import BudgetExceeded, LanguageModelError
from magicore.llms.base import LanguageModel, Request, traits
from magicore.llms.calls import Call, CallWatcher
from magicore.llms.identity import content_key
from magicore.llms.profile import EndpointProfile
from magicore.llms.sampler import SampleFailure, SampleOutcome, Sampler, repetition_note
from magicore.runtime.budget import Budget
from magicore.runtime.ledger import Ledger, current_ledger
from magicore.store.run_store import FailedCall, RunStore, StoredCompletion
from magicore.types import Completion


class StoredModel:
    """Samples from ``model`` unless the store already has the sample. Completions are stored before they are used.

    Calls that brought nothing are noted in the store, and what an endpoint shows of itself is remembered there.
    ``answered`` says whether this model has given anything yet, in this process or before. ``watcher`` is told of every
    call.
    """

    def __init__(
        self,
        model: LanguageModel,
        store: RunStore,
        budget: Budget | None = None,
        watcher: CallWatcher | None = None,
    ) -> None:
        self.model = model
        self._budget = budget or Budget()
        self._watcher = watcher
        self.answered = False
        self._store = store
        self._profile: EndpointProfile | None = getattr(model, "profile", None)
        if self._profile is not None:
            self._profile.recall(store.get_state(self._profile_name) or {})
            self._remembered = self._profile.known()
        self._sampler = Sampler(model, received=self._keep, watcher=self)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def name(self) -> str:
        return self.model.name

    async def sample(self, request: Request) -> SampleOutcome:
        """All the samples asked for, or typed failures; see :meth:`magicore.llms.sampler.Sampler.sample`."""
        keys = {index: self._key(request, index) for index in request.indices}
        conversation = self._key(request, -1)
        lock = self._locks.setdefault(conversation, asyncio.Lock())
        async with lock:  # equal conversations asked at the same time are paid for once
            stored = self._store.get_completions(list(keys.values()))
            known = {c.index: c for c in stored if c is not None}
            missing = tuple(index for index in request.indices if index not in known)
            if known:
                self.answered = True
            outcome = SampleOutcome(completions=())
            if missing:
                outcome = await self._affordable(replace(request, indices=missing))
                self._store.put_notes(self.name, outcome.endpoint_notes)
                self._remember()
        known |= {c.index: c for c in outcome.completions}
        ledger = current_ledger.get()
        if ledger is not None:
            ledger.tried(request.key.role, self.name, outcome.retries, outcome.waited_s, outcome.lost)
        for completion in known.values():
            self._budget.spend(self.name, completion.usage, None if ledger is None else ledger.account)
        completions = tuple(known[index] for index in request.indices if index in known)
        repeats = repetition_note(completions, request)
        return replace(outcome, completions=completions, notes=() if repeats is None else (repeats,))

    async def _affordable(self, request: Request) -> SampleOutcome:
        """As many samples as the budget has room for; the others fail with :class:`BudgetExceeded`."""
        ledger = current_ledger.get()
        account = None if ledger is None else ledger.account
        try:
            room = self._budget.reserve(request, self.name, account)
        except BudgetExceeded as error:
            return _unaffordable(request.indices, error, ledger)
        try:
            outcome = await self._sampler.sample(replace(request, indices=request.indices[: room.n]))
        finally:
            self._budget.release(room)
        if room.n == len(request.indices):
            return outcome
        no_room = BudgetExceeded("the budget has no room for more samples", model=self.name)
        rest = _unaffordable(request.indices[room.n :], no_room, ledger)
        return replace(outcome, failures=(*outcome.failures, *rest.failures))

    async def _keep(self, request: Request, completions: Sequence[Completion]) -> None:
        """Store what one call brought, before anyone uses it."""
        call = request.key
        rows = [
            StoredCompletion(self._key(request, c.index), self.name, call.problem, call.role, c) for c in completions
        ]
        self._store.put_completions(rows)
        self.answered = True

    def calling(self, model: str, samples: int) -> None:
        """A call goes out."""
        if self._watcher is not None:
            self._watcher.calling(model, samples)

    def called(self, call: Call) -> None:
        """A call has ended; one that brought nothing, or less than was sent, is noted."""
        error = call.error
        if error is not None or call.lost:
            row = FailedCall(
                model=call.model,
                problem=call.key.problem,
                role=call.key.role,
                error="ConnectionFailed" if error is None else type(error).__name__,
                samples=call.asked,
                lost=call.lost,
                prompt=getattr(error, "prompt", None),
                completion=getattr(error, "completion", None),
                waited_s=call.retry_in or 0.0,
            )
            self._store.put_failed_call(row)
        if self._watcher is not None:
            self._watcher.called(call)

    @property
    def _profile_name(self) -> str:
        return f"profile:{self.name}"

    def _remember(self) -> None:
        """Keep what the endpoint has shown of itself, where that is new."""
        if self._profile is not None and (known := self._profile.known()) != self._remembered:
            self._store.put_state(self._profile_name, known)
            self._remembered = known

    def _key(self, request: Request, index: int) -> str:
        fingerprint = self.model.fingerprint
        if traits(self.model).by_problem:
            fingerprint = f"{fingerprint}/{request.key.problem}"
        return content_key(self.name, fingerprint, request, index)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()


def _unaffordable(indices: Sequence[int], error: BudgetExceeded, ledger: Ledger | None) -> SampleOutcome:
    if ledger is not None:
        ledger.over_budget = True
    failures = tuple(SampleFailure(index=index, error=error, attempts=0) for index in indices)
    return SampleOutcome(completions=(), failures=failures)


def first_failure(outcome: SampleOutcome) -> LanguageModelError | None:
    """The error of the first sample that could not be had, if any."""
    return outcome.failures[0].error if outcome.failures else None
