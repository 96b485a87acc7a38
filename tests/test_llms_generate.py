"""A language model as a judge calls it: what it asks for, what it gets, where the tokens are booked."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from magicore.errors import AuthenticationFailed, CapabilityError, RequestRefused
from magicore.llms.base import Generation, LanguageModel, Request
from magicore.llms.generate import generate_with
from magicore.llms.sampler import SampleOutcome, Sampler
from magicore.llms.scripted import ScriptedModel, ScriptedReply
from magicore.types import Usage
from reward_models import errors as reward_errors
from reward_models.types import ScoringUsage


class Model:
    """A model behind a sampler, as the runtime gives it; remembers the requests."""

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.requests: list[Request] = []
        self._sampler = Sampler(model)

    async def sample(self, request: Request) -> SampleOutcome:
        self.requests.append(request)
        return await self._sampler.sample(request)


class Books:
    """What was booked and warned about."""

    seed = 5

    def __init__(self) -> None:
        self.booked: list[tuple[str, str, Usage]] = []
        self.warnings: list[str] = []

    def book(self, role: str, model: str, usage: Usage) -> None:
        self.booked.append((role, model, usage))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


MESSAGES = [{"role": "user", "content": "Is it right?"}]
VERDICT = ScriptedReply(text="yes indeed", top_logprobs=((("yes", -0.2), ("no", -1.7)), (("indeed", -0.1),)))


def ask(model: Model, books: Books | None = None, **options: Any) -> list[Any]:
    ledger: ContextVar[Books | None] = ContextVar("ledger", default=books)
    generate = generate_with(model, seed=3, ledger=ledger)

    async def run() -> list[Any]:
        return list(await generate(MESSAGES, **options))

    return asyncio.run(run())


def test_what_is_asked_and_what_comes_back() -> None:
    model, books = Model(ScriptedModel(lambda *_: VERDICT)), Books()
    [first, second] = ask(model, books, top_logprobs=2, n=2, max_tokens=7, stop=["END"], temperature=0.3)
    assert first.text == "yes indeed"
    assert first.stop == "stop"
    assert first.logprobs == ({"yes": -0.2, "no": -1.7}, {"indeed": -0.1})
    assert first.usage == ScoringUsage(prompt_tokens=3, completion_tokens=2, calls=1)
    assert second.usage == ScoringUsage(completion_tokens=2)
    [request] = model.requests
    assert (request.key.role, request.indices, request.seed) == ("judge", (0, 1), 5)
    assert (request.sampling.temperature, request.sampling.max_tokens, request.sampling.stop) == (0.3, 7, ("END",))
    assert [(role, usage.total) for role, _, usage in books.booked] == [("judge", 5), ("judge", 2)]


def test_the_seed_is_the_problem_s_where_there_is_one() -> None:
    for books, seed in ((Books(), 5), (None, 3)):
        model = Model(ScriptedModel(lambda *_: VERDICT))
        ask(model, books)
        assert model.requests[0].seed == seed


def test_without_log_probabilities_the_text_is_there_all_the_same() -> None:
    [reply] = ask(Model(ScriptedModel(lambda *_: "yes")), top_logprobs=2)
    assert (reply.text, reply.logprobs) == ("yes", None)


def test_calls_are_told_apart_by_their_messages() -> None:
    model = Model(ScriptedModel(lambda *_: "yes"))
    generate = generate_with(model)

    async def run() -> None:
        await generate(MESSAGES)
        await generate(MESSAGES)
        await generate([{"role": "user", "content": "Another?"}])

    asyncio.run(run())
    first, again, other = (request.key.problem for request in model.requests)
    assert first == again != other


def test_a_prefill_that_cannot_be_had_is_the_reward_models_error() -> None:
    class NoPrefill(ScriptedModel):
        async def generate(self, request: Request) -> Generation:
            raise CapabilityError("does not continue a reply")

    with pytest.raises(reward_errors.CapabilityError, match="does not continue a reply"):
        ask(Model(NoPrefill(lambda *_: "")), prefill="The answer is")


def test_some_replies_are_better_than_none_and_none_is_an_error() -> None:
    def script(_: Request, index: int) -> str:
        if index == 0:
            raise RequestRefused("filtered")
        return "no"

    assert [reply.text for reply in ask(Model(ScriptedModel(script)), n=3)] == ["no", "no"]

    def refused(_: Request, __: int) -> str:
        raise AuthenticationFailed("no key")

    with pytest.raises(AuthenticationFailed, match="no key"):
        ask(Model(ScriptedModel(refused)))
