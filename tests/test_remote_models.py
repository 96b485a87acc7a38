"""Families on servers by name, from text to typed scores, with the real Mistral vocabulary."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny
from fake_engines import FakeGeneration, FakeSglang, FakeVllm, logits, pair, sigmoid
from fake_servers import Respond, serving
from reward_models.errors import CheckpointError, RewardModelError, ScoringServerError
from reward_models.families import eurus_prm, math_shepherd
from reward_models.families.tokens import TextTokenizer
from reward_models.names import ModelName
from reward_models.remote import model as remote_model
from reward_models.remote.model import RemoteProcessModel
from reward_models.steps import join_steps
from reward_models.types import Solution, Step

TAG = math_shepherd.TAG


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint's folder with a tokenizer and nothing else: a client needs no weights."""
    found = tmp_path_factory.mktemp("shepherd")
    tiny.mistral_tokenizer(found)
    return found


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> TextTokenizer:
    return remote_model._tokenizer(str(folder), None, ModelName(provider="math-shepherd"))


@pytest.fixture
def opened(folder: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Opens models whose tokenizer is read only once, and closes them."""
    monkeypatch.setattr(remote_model, "_tokenizer", lambda *_: tokenizer)
    models = []

    def load(url: str, kind: str = "vllm", **options: Any) -> RemoteProcessModel:
        name = ModelName(provider="math-shepherd", name=str(folder), urls=(f"{kind}+{url}",))
        model = math_shepherd.load(name, **options)
        assert isinstance(model, RemoteProcessModel)
        models.append(model)
        return model

    yield load
    for model in models:
        model.engine.close()  # type: ignore[attr-defined]


def solution(*texts: str, question: str = "What is 2 + 3?") -> Solution:
    text, steps = join_steps(texts)
    return Solution(question=question, text=text, steps=steps, id="s")


GOOD = [solution("First, 2 + 3 = 5.", "So the answer is 5."), solution("It is 6."), solution("So 5", "тогда 5", "5.")]


def reads(model: RemoteProcessModel, one: Solution) -> list[list[int]]:
    reading = math_shepherd.write(model.tokenizer, one.question, [step.text.strip() for step in one.steps])
    return [list(reading.ids[: at + 1]) for at in reading.reads]


@pytest.mark.parametrize(
    ("kind", "fake", "raw"),
    [
        ("vllm", FakeVllm(tag=TAG), lambda ids: logits(ids, 1)[0]),
        ("vllm", FakeVllm(pooling="ALL"), lambda ids: logits(ids, 1)[0]),
        ("vllm", FakeGeneration(), lambda ids: pair(ids, 648, 387)),
        ("sglang", FakeSglang(), lambda ids: pair(ids, 648, 387)),
    ],
)
def test_scores_are_the_servers_numbers_at_the_tags(kind: str, fake: Respond, raw: Any, opened: Any) -> None:
    with serving(fake) as server:
        model, other = opened(server.url, kind), opened(server.url, kind)

        async def later() -> Any:
            try:
                return await other.ascore(GOOD)
            finally:
                await other.engine.aclose()

        for scores in (model.score(GOOD), asyncio.run(later())):
            for one, found in zip(GOOD, scores, strict=True):
                expected = [raw(ids) for ids in reads(model, one)]
                assert [entry.raw for entry in found.scores] == pytest.approx(expected, abs=1e-9)
                assert [entry.value for entry in found.scores] == pytest.approx(
                    [sigmoid(number) for number in expected]
                )
                assert found.steps == one.steps
                assert (found.activation, found.aggregation) == ("softmax", "product")
                assert found.tokens == len(reads(model, one)[-1])


def test_what_was_scored_is_not_asked_for_again(opened: Any) -> None:
    with serving(FakeVllm(tag=TAG)) as server:
        model = opened(server.url)
        first = model.score([*GOOD, *GOOD])
        before = len(server.calls)
        assert model.score(GOOD) == first[:3] == first[3:]
        assert len(server.calls) == before
        assert sum(len(call.body["input"]) for call in server.calls if call.body) == 9  # three, and twice the self-test


def poisoned() -> dict[str, Solution]:
    text, steps = join_steps([f"Step {at}: {at} + 1 = {at + 1}." for at in range(500)])
    whole = "Then 1 + 1 = 2. " * 6500
    return {
        "tag": solution("2 + 3 = 5 ки", "So 5."),
        "tag in question": solution("2 + 3 = 5", question="What is ки ки?"),
        "empty step": solution("2 + 3 = 5.", "   ", "So 5."),
        "no step": Solution(question="q", text=""),
        "500 steps": Solution(question="q", text=text, steps=steps),
        "100k characters": Solution(question="q", text=whole, steps=(Step(text=whole, start=0, end=len(whole)),)),
        "surrogate": solution("2 + 3 = \ud83d", "So 5."),
        "control": solution("a\x00b\x1b[31m", "So 5."),
    }


@pytest.mark.parametrize("which", list(poisoned()))
def test_poisoned_inputs_give_one_entry_a_step(which: str, opened: Any) -> None:
    with serving(FakeVllm(tag=TAG)) as server:
        model = opened(server.url)
        given = poisoned()[which]
        bad, good = model.score([given, GOOD[0]])
        sent = [ids for call in server.calls if call.body for ids in call.body["input"]]
    assert len(bad.scores) == len(bad.steps) == len(given.steps)
    codes = [entry.unscored.code if entry.unscored else None for entry in bad.scores]
    expected = {
        "tag": ["tag_in_text"] * 2,
        "tag in question": ["tag_in_text"],
        "empty step": [None, "empty_step", None],
        "no step": [],
        "100k characters": ["past_context"],
        "surrogate": ["unreadable"] * 2,
        "control": [None] * 2,
    }
    if which == "500 steps":
        scored = codes.count(None)
        assert codes == [None] * scored + ["past_context"] * (500 - scored)
        assert 0 < scored < 500
    else:
        assert codes == expected[which]
    assert None not in [entry.value for entry in good.scores]
    assert all(len(ids) <= 4096 for ids in sent)


def test_the_context_is_no_longer_than_the_servers(opened: Any) -> None:
    with serving(FakeVllm(tag=TAG, limit=40)) as server:
        assert opened(server.url).context == 40
        assert opened(server.url, context=30).context == 30
        long = solution(*(f"{at} + 1 = {at + 1}." for at in range(20)))
        (cut,) = opened(server.url).score([long])
        (windowed,) = opened(server.url, windowed=True).score([long])
    assert {entry.unscored.code for entry in cut.scores if entry.unscored} == {"past_context"}
    assert None not in [entry.value for entry in windowed.scores]


def test_a_wrong_server_costs_no_score(opened: Any) -> None:
    with (
        serving(FakeVllm(tag=TAG, fault="short")) as server,
        pytest.raises(RewardModelError, match="the server answered"),
    ):
        opened(server.url).score(GOOD)


def test_another_familys_tokenizer_is_refused(tmp_path: Path) -> None:
    tiny.internlm2_tokenizer(tmp_path)
    with serving(FakeVllm()) as server, pytest.raises(CheckpointError, match="math-shepherd reads token"):
        math_shepherd.load(ModelName(provider="math-shepherd", name=str(tmp_path), urls=(f"vllm+{server.url}",)))
    with (
        serving(FakeVllm()) as server,
        pytest.raises(CheckpointError, match="tokenizer names another folder or Hub id"),
    ):
        math_shepherd.load(ModelName(provider="math-shepherd", name=str(tmp_path / "no"), urls=(f"vllm+{server.url}",)))


def test_no_server() -> None:
    name = ModelName(provider="eurus-prm", name="x", urls=("vllm+http://127.0.0.1:1",))
    with pytest.raises(RewardModelError, match="its reference model has to be on a server too"):
        eurus_prm.load(name)


def test_unreachable(folder: Path) -> None:
    name = ModelName(provider="math-shepherd", name=str(folder), urls=("vllm+http://127.0.0.1:1",))
    with pytest.raises(ScoringServerError, match="is the server running"):
        math_shepherd.load(name)
