"""A language model behind the store: what was sampled before is read back, what is missing is asked for and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from magicore.errors import BudgetExceeded, LanguageModelError
from magicore.llms.base import LanguageModel, Request, traits
from magicore.llms.identity import content_key
from magicore.llms.sampler import SampleFailure, SampleOutcome, Sampler, repetition_note
from magicore.runtime.budget import Budget
from magicore.runtime.ledger import Ledger, current_ledger
from magicore.store.run_store import RunStore, StoredCompletion
from magicore.types import Completion


class StoredModel:
    """Samples from ``model`` unless the store already has the sample. Completions are stored before they are used.

    ``answered`` says whether this model has given anything yet, in this process or before.
    """

    def __init__(self, model: LanguageModel, store: RunStore, budget: Budget | None = None) -> None:
        self.model = model
        self._budget = budget or Budget()
        self.answered = False
        self._sampler = Sampler(model, received=self._keep)
        self._store = store
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
                asked = replace(request, indices=missing)
                outcome = await self._affordable(asked)
                repeats = repetition_note(outcome.completions, asked)
                self._store.put_notes(conversation, [note for note in outcome.notes if note != repeats])
            notes = self._store.get_notes(conversation)
        known |= {c.index: c for c in outcome.completions}
        ledger = current_ledger.get()
        for completion in known.values():
            self._budget.spend(self.name, completion.usage, None if ledger is None else ledger.account)
        completions = tuple(known[index] for index in request.indices if index in known)
        if repeats := repetition_note(completions, request):
            notes.append(repeats)
        return replace(outcome, completions=completions, notes=tuple(notes))

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
