"""Every family on a tiny random checkpoint against the plain computation: one sequence a forward, full logits, fp32."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny
from family_cases import CASES, Row
from reward_models.cache import MemoryScoreCache
from reward_models.families import eurus_prm, internlm2_reward
from reward_models.families.family import Family
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer
from reward_models.local import load
from reward_models.names import ModelName
from reward_models.types import Solution, Step

QUESTION = "Natalia sold clips to 48 friends in April, and half as many in May. How many in all?"
STEPS = (
    "Step 1: In May she sold 48 / 2 = 24 clips.",
    "Step 2: Altogether 48 + 24 = 72.",
    "Step 3: The answer is $\\boxed{72}$.",
    "Step 2: Half of 48 is 21,\nso that makes 69.",
    "We add: 48 + 42 = 90. The answer is 90.",
)


def solution(*texts: str, name: str | None = None) -> Solution:
    steps, at = [], 0
    for text in texts:
        steps.append(Step(text=text + "\n", start=at, end=at + len(text) + 1))
        at += len(text) + 1
    return Solution(question=QUESTION, text="".join(step.text for step in steps), steps=tuple(steps), id=name)


def batch() -> list[Solution]:
    """Chains that share beginnings, a duplicate, one that begins another, a second question, in a shuffled order."""
    a, b, c, d, e = STEPS
    chains = [
        solution(a, b, c),
        solution(a, b),
        solution(a, d, c),
        solution(e),
        solution(a, b, c),
        solution(d, e, a, b),
    ]
    other = Solution(question="What is 7 * 8?", text=f"{e}\n{b}\n", steps=solution(e, b).steps)
    chains.append(other)
    random.Random(3).shuffle(chains)
    return chains


@pytest.fixture(autouse=True)
def one_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a vocabulary of 150,000 tokens takes seconds: each is read once."""
    monkeypatch.setattr(load, "load_tokenizer", tiny.words)


def values(scores: list[Any]) -> list[list[float]]:
    return [[s.value for s in one.scores] if hasattr(one, "scores") else [one.value] for one in scores]


def readings(family: Family, tokenizer: TextTokenizer) -> list[Reading]:
    """The batch as the family writes it."""
    whole = family.kind == "outcome"
    return [
        family.write(tokenizer, one.question, [one.text.strip()] if whole else [s.text.strip() for s in one.steps])
        for one in batch()
    ]


def spanning_row(family: Family, tokenizer: TextTokenizer) -> Row:
    """The direction in which the batch's states differ most, level at their mean, scaled to a largest logit of 2.94."""

    def row(backbone: Any, features: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        found = [
            features(backbone(input_ids=torch.tensor([r.ids])).last_hidden_state[0, list(r.reads)])
            for r in readings(family, tokenizer)
        ]
        states = torch.cat(found).unique(dim=0)
        mean = states.mean(0)
        direction = torch.linalg.svd(states - mean, full_matrices=False).Vh[0]
        direction = direction - mean * (direction @ mean) / (mean @ mean)
        return direction * math.log(19) / (states @ direction).abs().max()

    return row


@torch.inference_mode()
@pytest.mark.parametrize("name", CASES)
def test_a_family_equals_the_plain_computation(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    torch.manual_seed(11)
    words = str(tiny.tokenizer_folder(case.tokenizer))
    family = case.family
    model, heads = case.make(tmp_path, spanning_row(family, tiny.words(words)))
    loaded = case.load(ModelName(provider=family.name, name=str(tmp_path)), device="cpu", dtype="fp32", tokenizer=words)
    written = readings(family, loaded.tokenizer)
    expected = [case.plain(model, heads, torch.tensor([r.ids]), r.reads) for r in written]
    flat = [value for row in expected for value in row]
    assert 0.03 < min(flat) < 0.3 and 0.7 < max(flat) < 0.97

    engine, close = loaded.engine, [pytest.approx(row, abs=1e-5) for row in expected]
    assert values(loaded.score(batch())) == close
    assert engine.tokens_computed < sum(len(reading.ids) for reading in written)
    assert values(loaded.score(batch())) == close and loaded.usage.calls == 1, "the second time all come from the cache"
    for budget, share in ((64, True), (4096, False), (100, False)):
        engine.budget, engine.share, loaded.cache = budget, share, MemoryScoreCache()
        assert values(loaded.score(batch()[::-1])) == close[::-1]
    engine.decoder, loaded.cache = None, MemoryScoreCache()  # the forward pass of transformers, padded
    assert values(loaded.score(batch())) == close


@torch.inference_mode()
def test_eurus_is_the_log_ratio_of_two_models(tmp_path: Path) -> None:
    torch.manual_seed(5)
    models = []
    for part in ("policy", "reference"):
        (tmp_path / part).mkdir()
        model = tiny.Qwen2ForCausalLM(tiny.qwen2()).eval()
        tiny.save_model(model, tmp_path / part)
        models.append(model)
    loaded = eurus_prm.load(
        ModelName(provider="eurus-prm", name=str(tmp_path / "policy")),
        reference=str(tmp_path / "reference"),
        beta=0.05,
        device="cpu",
        dtype="fp32",
        tokenizer=str(tiny.tokenizer_folder(tiny.qwen_tokenizer)),
    )
    for one, scores in zip(batch(), loaded.score(batch()), strict=True):
        reading = loaded.family.write(loaded.tokenizer, one.question, [s.text.strip() for s in one.steps])
        ids = torch.tensor([reading.ids])
        ratio = torch.zeros(len(reading.ids) - 1)
        for sign, model in zip((1, -1), models, strict=True):
            log_probs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
            ratio += sign * log_probs.gather(1, ids[0, 1:, None])[:, 0]
        at = reading.reads[0]
        for count, score in zip(reading.counts, scores.scores, strict=True):
            raw = 0.05 * ratio[at : at + count].sum().item()
            assert score.raw == pytest.approx(raw, abs=1e-5)
            assert score.value == pytest.approx(1 / (1 + math.exp(-raw)), abs=1e-5)
            at += count
        assert at == len(reading.ids) - 1


def test_internlm2_conversion_can_be_written_and_loaded_again(tmp_path: Path) -> None:
    from reward_models.local.checkpoint import Checkpoint
    from reward_models.local.internlm2 import convert

    torch.manual_seed(2)
    (tmp_path / "source").mkdir()
    tiny.internlm2_checkpoint(tmp_path / "source")
    convert(Checkpoint.open(str(tmp_path / "source")), tmp_path / "target")
    config = json.loads((tmp_path / "target" / "config.json").read_text())
    assert config["architectures"] == ["LlamaForSequenceClassification"] and "auto_map" not in config
    options = {"device": "cpu", "dtype": "fp32", "tokenizer": str(tiny.tokenizer_folder(tiny.internlm2_tokenizer))}
    scores = [
        internlm2_reward.load(ModelName(provider="internlm2-reward", name=str(tmp_path / part)), **options).score(
            batch()
        )
        for part in ("source", "target")
    ]
    assert [s.raw for s in scores[0]] == pytest.approx([s.raw for s in scores[1]], abs=1e-6)
