"""The sampler: exactly what was asked for, or a typed failure; nothing that came is asked for again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magicore.errors import (
    AuthenticationFailed,
    BadReply,
    CapabilityError,
    ConnectionFailed,
    LanguageModelError,
    RateLimited,
)
from magicore.llms.base import Generation, Request, Sampling, Traits, messages
from magicore.llms.limiter import Limiter
from magicore.llms.profile import EndpointProfile
from magicore.llms.sampler import RetryPolicy, SampleOutcome, Sampler, repetition_note
from magicore.types import CallKey, Completion, Usage

REQUEST = Request(messages=messages(("user", "What is 2 + 3?")), key=CallKey(problem="p", role="solver"))

Rule = Callable[[Request, int], Sequence[int]]
"""The indices that a call answers; it may raise. The number counts calls from 1."""


class RuleModel:
    """A remote model that answers the indices its rule says, with a text of the index's own."""

    def __init__(self, rule: Rule, *, text: Callable[[int], str] = lambda index: f"sample {index}") -> None:
        self.name = "rule"
        self.fingerprint = ""
        self.traits = Traits(remote=True)
        self.profile = EndpointProfile()
        self.calls: list[tuple[int, ...]] = []
        self.in_flight = self.most_in_flight = 0
        self._rule = rule
        self._text = text

    async def generate(self, request: Request) -> Generation:
        self.calls.append(request.indices)
        self.in_flight += len(request.indices)
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
            indices = self._rule(request, len(self.calls))
        finally:
            self.in_flight -= len(request.indices)
        return Generation(completions=tuple(self._completion(index, first=not at) for at, index in enumerate(indices)))

    def _completion(self, index: int, *, first: bool) -> Completion:
        usage = Usage(prompt=5 * first, completion=2, calls=int(first))
        return Completion(index=index, text=self._text(index), stop="stop", tokens=2, usage=usage)

    async def aclose(self) -> None:
        """Nothing to close."""


class Waits:
    """Stands for ``asyncio.sleep`` and a clock: time passes only by waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def clock(self) -> float:
        return self.now


def sampled(model: RuleModel, k: int, **options: Any) -> tuple[SampleOutcome, Waits]:
    waits = Waits()
    limiter = options.pop("limiter", None) or Limiter(clock=waits.clock, sleep=waits.sleep)
    sampler = Sampler(model, sleep=waits.sleep, clock=waits.clock, limiter=limiter, **options)
    request = replace(REQUEST, indices=tuple(range(k)))
    return asyncio.run(sampler.sample(request)), waits


def everything(request: Request, _: int) -> Sequence[int]:
    return request.indices


def texts(outcome: SampleOutcome) -> list[str]:
    return [one.text for one in outcome.completions]


def test_a_good_endpoint_is_asked_in_blocks() -> None:
    model = RuleModel(everything)
    outcome, _ = sampled(model, 40)
    assert texts(outcome) == [f"sample {index}" for index in range(40)]
    assert model.calls == [tuple(range(16)), tuple(range(16, 32)), tuple(range(32, 40))]
    assert outcome == SampleOutcome(completions=outcome.completions)


def test_an_endpoint_that_ignores_n_is_topped_up_one_by_one() -> None:
    model = RuleModel(lambda request, _: request.indices[:1])
    outcome, waits = sampled(model, 5)
    assert texts(outcome) == [f"sample {index}" for index in range(5)]
    assert model.calls == [(0, 1, 2, 3, 4), (1, 2, 3, 4), (2,), (3,), (4,)]  # the second reply settles it
    assert (outcome.retries, waits.waits) == (0, [])
    assert model.profile.max_n == 1
    second, _ = sampled(model, 3)
    assert model.calls[5:] == [(0,), (1,), (2,)]
    assert len(second.completions) == 3


def test_only_what_is_missing_is_asked_for_again() -> None:
    model = RuleModel(lambda request, call: request.indices[:5] if call == 1 else request.indices)
    outcome, _ = sampled(model, 8)
    assert model.calls == [tuple(range(8)), (5, 6, 7)]
    assert len(outcome.completions) == 8
    assert model.profile.max_n is None


def test_a_failure_costs_only_itself() -> None:
    def rule(request: Request, _: int) -> Sequence[int]:
        if request.indices == (2,):
            raise LanguageModelError("broken", retryable=True)
        return request.indices

    model = RuleModel(rule)
    model.profile.max_n = 1
    outcome, _ = sampled(model, 4, retry=RetryPolicy(attempts=3))
    assert texts(outcome) == ["sample 0", "sample 1", "sample 3"]
    [failure] = outcome.failures
    assert (failure.index, failure.attempts, str(failure.error)) == (2, 3, "broken")
    assert outcome.retries == 2


def failing(times: int, error: LanguageModelError) -> Rule:
    def rule(request: Request, call: int) -> Sequence[int]:
        if call <= times:
            raise error
        return request.indices

    return rule


def test_waits_double_are_jittered_by_the_sample_and_end() -> None:
    error = LanguageModelError("busy", retryable=True)
    outcome, waits = sampled(RuleModel(failing(9, error)), 1, retry=RetryPolicy(attempts=5, first_s=1.0, longest_s=4.0))
    assert len(outcome.failures) == 1
    for wait, bound in zip(waits.waits, (1, 2, 4, 4), strict=True):
        assert bound / 2 <= wait <= bound
    _, again = sampled(RuleModel(failing(9, error)), 1, retry=RetryPolicy(attempts=5, first_s=1.0, longest_s=4.0))
    assert again.waits == waits.waits
    assert outcome.waited_s == pytest.approx(sum(waits.waits))


def test_retry_after_is_kept_to_and_slowing_down_is_no_failure() -> None:
    model = RuleModel(failing(8, RateLimited("slow down", retry_after=7.0)))
    outcome, waits = sampled(model, 1, retry=RetryPolicy(attempts=2))
    assert len(outcome.completions) == 1
    assert all(wait >= 7.0 for wait in waits.waits)
    assert outcome.retries == 8
    endless, _ = sampled(RuleModel(failing(99, RateLimited("slow down"))), 1, retry=RetryPolicy(slowdowns=4))
    assert endless.failures[0].attempts == 4


def test_what_will_not_pass_is_not_retried() -> None:
    outcome, waits = sampled(RuleModel(failing(9, AuthenticationFailed("no key"))), 3)
    assert [failure.attempts for failure in outcome.failures] == [1, 1, 1]
    assert isinstance(outcome.failures[0].error, AuthenticationFailed)
    assert waits.waits == []


def test_an_address_that_never_answered_is_given_up_soon() -> None:
    model = RuleModel(failing(99, ConnectionFailed("nobody there", sent=False)))
    assert sampled(model, 1)[0].failures[0].attempts == 2
    model.profile.answered = True
    assert sampled(model, 1)[0].failures[0].attempts == 6


def test_an_empty_reply_is_a_failure_and_not_asked_for_without_end() -> None:
    outcome, _ = sampled(RuleModel(lambda *_: ()), 2, retry=RetryPolicy(attempts=3))
    assert all(isinstance(failure.error, BadReply) for failure in outcome.failures)
    assert (len(outcome.failures), outcome.lost) == (2, 3)


def test_what_cannot_be_done_at_all_is_raised() -> None:
    def rule(request: Request, _: int) -> Sequence[int]:
        raise CapabilityError("gives no log-probabilities")

    model = RuleModel(rule)
    model.profile.max_n = 1
    with pytest.raises(CapabilityError):
        sampled(model, 3)
    assert model.in_flight == 0


def test_completions_are_handed_on_as_they_come() -> None:
    seen: list[tuple[int, ...]] = []

    async def received(_: Request, completions: Sequence[Completion]) -> None:
        seen.append(tuple(one.index for one in completions))

    model = RuleModel(lambda request, call: request.indices[:2] if call == 1 else request.indices)
    sampled(model, 4, received=received)
    assert seen == [(0, 1), (2, 3)]


def test_identical_samples_are_flagged_and_drawn_one_by_one_from_then_on() -> None:
    model = RuleModel(everything, text=lambda _: "the very same chain of reasoning, word for word")
    outcome, _ = sampled(model, 4)
    assert outcome.notes == ("3 of 4 solver samples repeat another one word for word",)
    assert model.profile.distinct is None  # once may be an accident
    sampled(model, 4)
    assert model.profile.distinct is False
    sampled(model, 2)
    assert model.calls == [(0, 1, 2, 3), (0, 1, 2, 3), (0,), (1,)]


def test_short_equal_answers_and_greedy_ones_prove_nothing() -> None:
    short = RuleModel(everything, text=lambda _: "5")
    for _ in range(3):
        sampled(short, 4)
    assert short.profile.distinct is None
    greedy = replace(REQUEST, indices=(0, 1), sampling=Sampling(temperature=0.0))
    same = tuple(Completion(index=at, text="x" * 50, stop="stop") for at in (0, 1))
    assert repetition_note(same, greedy) is None
    assert repetition_note(same, replace(greedy, sampling=Sampling())) is not None


def test_no_slot_is_held_through_a_wait() -> None:
    waits = Waits()
    limiter = Limiter(initial=1, maximum=1, clock=waits.clock, sleep=waits.sleep)
    held: list[int] = []

    async def sleep(seconds: float) -> None:
        held.append(limiter.in_flight)
        await waits.sleep(seconds)

    model = RuleModel(failing(3, LanguageModelError("busy", retryable=True)))
    sampler = Sampler(model, limiter=limiter, sleep=sleep, clock=waits.clock)
    asyncio.run(sampler.sample(REQUEST))
    assert held == [0, 0, 0]


def test_the_limit_holds_across_requests() -> None:
    model = RuleModel(everything)
    limiter = Limiter(initial=6, maximum=6)
    sampler = Sampler(model, limiter=limiter)

    async def run() -> list[SampleOutcome]:
        requests = [replace(REQUEST, indices=tuple(range(4))) for _ in range(10)]
        return await asyncio.gather(*map(sampler.sample, requests))

    assert all(len(outcome.completions) == 4 for outcome in asyncio.run(run()))
    assert model.most_in_flight == 4  # two of four would be eight


def test_cancelling_stops_all_parts() -> None:
    async def run() -> RuleModel:
        started = asyncio.Event()

        class Hanging(RuleModel):
            async def generate(self, request: Request) -> Generation:
                self.in_flight += 1
                started.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.in_flight -= 1
                raise AssertionError

        model = Hanging(everything)
        model.profile.max_n = 1
        task = asyncio.ensure_future(Sampler(model).sample(replace(REQUEST, indices=(0, 1, 2))))
        await started.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return model

    assert asyncio.run(run()).in_flight == 0


FAULTS = st.sampled_from(["all", "some", "one", "none", "busy", "slow down", "other indices"])


@given(st.lists(FAULTS, max_size=30), st.integers(1, 24))
def test_every_index_ends_in_exactly_one_place_and_none_is_paid_twice(faults: list[str], k: int) -> None:
    paid: list[int] = []

    def rule(request: Request, call: int) -> Sequence[int]:
        fault = faults[call - 1] if call <= len(faults) else "all"
        if fault == "busy":
            raise LanguageModelError("busy", retryable=True)
        if fault == "slow down":
            raise RateLimited("slow down", retry_after=1.0)
        kept = {"some": request.indices[: len(request.indices) // 2], "one": request.indices[:1], "none": ()}
        found = kept.get(fault, request.indices)
        paid.extend(found)
        return [*found, 999] if fault == "other indices" else found

    outcome, _ = sampled(RuleModel(rule), k, retry=RetryPolicy(attempts=3))
    delivered = [one.index for one in outcome.completions]
    failed = [failure.index for failure in outcome.failures]
    assert sorted(delivered + failed) == list(range(k))
    assert delivered == sorted(delivered)
    assert sorted(paid) == delivered
