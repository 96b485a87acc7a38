"""What every language model keeps to, whichever it is. A new one joins by one row of ``MODELS``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fake_endpoint import Answer, Body, completion, serving
from magicore.llms.balance import Balanced
from magicore.llms.base import Generation, LanguageModel, Request, Sampling, Traits, messages, traits
from magicore.llms.openai_compatible import OpenAICompatible
from magicore.llms.recorded import RecordedModel, RecordingModel
from magicore.llms.sampler import Sampler
from magicore.llms.scripted import ScriptedModel
from magicore.types import CallKey, Usage

Opened = Callable[[Path], AbstractContextManager[LanguageModel]]

REQUEST = Request(
    messages=messages(("system", "Be brief."), ("user", "What is 2 + 3?")),
    key=CallKey(problem="p", role="solver"),
    indices=(3, 4, 7),
    sampling=Sampling(max_tokens=12),
    logprobs=True,
)


def reply(_: Request, index: int) -> str:
    return f"Step 1: 2 + 3 = 5\nsample {index}"


@contextmanager
def scripted(_: Path) -> Iterator[LanguageModel]:
    yield ScriptedModel(reply, logprobs=True)


@contextmanager
def recording(folder: Path) -> Iterator[LanguageModel]:
    yield RecordingModel(ScriptedModel(reply, logprobs=True), folder / "record.jsonl")


@contextmanager
def recorded(folder: Path) -> Iterator[LanguageModel]:
    writer = RecordingModel(ScriptedModel(reply, logprobs=True), folder / "record.jsonl")
    for indices in (REQUEST.indices, tuple(range(8))):
        asyncio.run(writer.generate(replace(REQUEST, indices=indices)))
    asyncio.run(writer.aclose())
    yield RecordedModel(folder / "record.jsonl")


def answer(body: Body) -> Answer:
    scores = {"content": [{"token": "a", "logprob": -0.5}, {"token": " b", "logprob": -0.5}]}
    return completion(*["a b"] * body.get("n", 1), logprobs=scores)


@contextmanager
def endpoint(_: Path) -> Iterator[LanguageModel]:
    with serving(answer) as server:
        yield OpenAICompatible(name="openai:m@url", model="m", url=server.url)


@contextmanager
def balanced(_: Path) -> Iterator[LanguageModel]:
    with serving(answer) as one, serving(answer) as two:
        yield Balanced([OpenAICompatible(name="openai:m@urls", model="m", url=server.url) for server in (one, two)])


@contextmanager
def local(_: Path) -> Iterator[LanguageModel]:
    pytest.importorskip("torch")
    from magicore.llms.local import LocalModel
    from tiny_chat import tiny

    loaded = tiny()
    yield LocalModel(name="hf:tiny", fingerprint="1", load=lambda: loaded)


@contextmanager
def deterministic(_: Path) -> Iterator[LanguageModel]:
    pytest.importorskip("torch")
    from magicore.llms.local import LocalModel
    from tiny_chat import tiny

    loaded = tiny()
    yield LocalModel(name="hf:tiny", fingerprint="1", load=lambda: loaded, deterministic=True)


MODELS: dict[str, Opened] = {
    "scripted": scripted,
    "recording": recording,
    "recorded": recorded,
    "endpoint": endpoint,
    "balanced": balanced,
    "local": local,
    "deterministic": deterministic,
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LanguageModel]:
    with MODELS[request.param](tmp_path) as opened:
        yield opened


async def _ask(model: LanguageModel, *requests: Request) -> list[Generation]:
    try:
        return list(await asyncio.gather(*(model.generate(request) for request in requests)))
    finally:
        await model.aclose()
        await model.aclose()  # closing twice is no fault


def test_it_follows_the_protocol(model: LanguageModel) -> None:
    assert isinstance(model, LanguageModel)
    assert model.name
    assert (model.name, model.fingerprint) == (model.name, model.fingerprint)
    assert isinstance(traits(model), Traits)
    asyncio.run(model.aclose())


def test_indices_come_back_in_order_and_the_charge_adds_up(model: LanguageModel) -> None:
    [generation] = asyncio.run(_ask(model, REQUEST))
    completions = generation.completions
    assert [one.index for one in completions] == [3, 4, 7]
    total = sum((one.usage for one in completions), Usage())
    assert total.calls == 1
    assert total.unmetered == 0
    assert total.prompt > 0
    assert [one.usage.prompt > 0 for one in completions] == [True, False, False]
    assert total.completion > 0
    for one in completions:
        assert one.tokens is None or one.usage.completion == one.tokens
        assert one.stop in ("stop", "length")


def test_log_probabilities_come_when_asked_for_and_only_then(model: LanguageModel) -> None:
    with_scores, without = asyncio.run(
        _ask(model, REQUEST, replace(REQUEST, logprobs=False, key=replace(REQUEST.key, problem="p")))
    )
    for one in with_scores.completions:
        assert one.token_logprobs
        assert one.tokens is None or len(one.token_logprobs) == one.tokens
        assert all(value <= 0 for value in one.token_logprobs)
    if not isinstance(model, RecordedModel):
        assert all(one.token_logprobs is None for one in without.completions)


def test_nothing_asked_for_is_nothing_done(model: LanguageModel) -> None:
    [generation] = asyncio.run(_ask(model, replace(REQUEST, indices=())))
    assert generation == Generation(completions=())


def test_requests_at_the_same_time_do_not_mix(model: LanguageModel) -> None:
    parts = [replace(REQUEST, indices=(index,)) for index in range(8)]
    generations = asyncio.run(_ask(model, *parts))
    assert [[one.index for one in generation.completions] for generation in generations] == [[at] for at in range(8)]


def test_a_sampler_gets_exactly_what_it_asks_for(model: LanguageModel) -> None:
    async def run() -> list[int]:
        outcome = await Sampler(model).sample(replace(REQUEST, indices=tuple(range(8))))
        await model.aclose()
        assert outcome.failures == ()
        return [one.index for one in outcome.completions]

    assert asyncio.run(run()) == list(range(8))
