"""Every family on a tiny random checkpoint against the plain computation: one sequence a forward, full logits, fp32."""

from __future__ import annotations

import inspect
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny
from reward_models.cache import MemoryScoreCache
from reward_models.families import (
    erprm,
    eurus_prm,
    internlm2_reward,
    math_psa,
    math_shepherd,
    qwen_math_prm,
    qwen_math_rm,
    reasonflux,
    rlhflow,
    sequence_classifier,
    skywork_o1,
    trl_prm,
    versa_prm,
)
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


Row = Callable[[Any, Callable[[torch.Tensor], torch.Tensor]], torch.Tensor]
"""(backbone, what the head does before its last row) -> a row whose logits on the batch span -2.94 to 2.94 or so."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One family: how its tiny checkpoint is made, and how the published code would read it."""

    load: Callable[..., Any]
    tokenizer: Callable[[Path], None]
    make: Callable[[Path, Row], Any]
    plain: Callable[[Any, Any, torch.Tensor, tuple[int, ...]], list[float]]


def same(states: torch.Tensor) -> torch.Tensor:
    return states


def pair(good: int, bad: int) -> Callable[..., list[float]]:
    """Full-vocabulary logits, two columns, softmax, the good one."""

    def plain(model: Any, _heads: Any, ids: torch.Tensor, reads: tuple[int, ...]) -> list[float]:
        logits = model(input_ids=ids).logits[0][:, [good, bad]]
        return logits.softmax(-1)[list(reads), 0].tolist()

    return plain


def causal(model: Callable[[], Any], good: int, bad: int) -> Callable[[Path, Row], Any]:
    def make(folder: Path, row: Row) -> tuple[Any, None]:
        made = model().eval()
        made.lm_head.weight[good] = made.lm_head.weight[bad] + row(made.model, same)
        tiny.save_model(made, folder)
        return made, None

    return make


def llama() -> Any:
    return tiny.LlamaForCausalLM(tiny.llama(128256))


def qwen() -> Any:
    return tiny.Qwen2ForCausalLM(tiny.qwen2())


def tied_qwen() -> Any:
    return tiny.Qwen2ForCausalLM(tiny.qwen2(tie_word_embeddings=True))


def mlp(outputs: int, architecture: str) -> Callable[[Path, Row], Any]:
    def make(folder: Path, row: Row) -> tuple[Any, Any]:
        model, heads = tiny.Qwen2Model(tiny.qwen2()).eval(), tiny.mlp_head(outputs)
        last = heads["score.2.weight"]
        last[-1] = (last[0] if outputs == 2 else 0) + row(model, lambda states: inner(heads, states))
        tiny.save_model(model, folder, architecture=architecture, heads=heads)
        return model, heads

    return make


def inner(heads: Any, states: torch.Tensor) -> torch.Tensor:
    return torch.relu(states @ heads["score.0.weight"].T + heads["score.0.bias"])


def mlp_logits(model: Any, heads: Any, ids: torch.Tensor) -> torch.Tensor:
    states = inner(heads, model(input_ids=ids).last_hidden_state[0])
    return states @ heads["score.2.weight"].T + heads["score.2.bias"]


def mlp_two(model: Any, heads: Any, ids: torch.Tensor, reads: tuple[int, ...]) -> list[float]:
    return mlp_logits(model, heads, ids).softmax(-1)[list(reads), 1].tolist()


def mlp_one(model: Any, heads: Any, ids: torch.Tensor, reads: tuple[int, ...]) -> list[float]:
    return mlp_logits(model, heads, ids).sigmoid()[list(reads), 0].tolist()


def make_skywork(folder: Path, row: Row) -> tuple[Any, Any]:
    model = qwen().eval()
    heads = {"v_head.summary.weight": row(model.model, same)[None], "v_head.summary.bias": torch.tensor([0.1])}
    tiny.save_model(model, folder, architecture="Qwen2ForPrmModel", heads=heads)
    return model.model, heads


def value_head(model: Any, heads: Any, ids: torch.Tensor, reads: tuple[int, ...]) -> list[float]:
    weight, bias = heads.values()
    states = model(input_ids=ids).last_hidden_state[0]
    return (states @ weight.T + bias).sigmoid()[list(reads), 0].tolist()


def make_small_reasonflux(folder: Path, row: Row) -> tuple[Any, Any]:
    model = qwen().eval()
    tiny.save_model(model, folder)
    heads = {"weight": row(model.model, same)[None], "bias": torch.tensor([-0.2])}
    torch.save(heads, folder / "reward_head.pt")
    return model.model, heads


def classifier(model: Callable[[], Any]) -> Callable[[Path, Row], Any]:
    def make(folder: Path, row: Row) -> tuple[Any, None]:
        made = model().eval()
        weight = made.score.weight
        weight[-1] = (weight[0] if len(weight) == 2 else 0) + row(made.model, same)
        tiny.save_model(made, folder)
        return made, None

    return make


def qwen3_classifier() -> Any:
    sizes = tiny.SIZES | {"head_dim": 16}
    config = tiny.Qwen3Config(vocab_size=152064, **sizes, num_labels=1, pad_token_id=151643)
    return tiny.Qwen3ForSequenceClassification(config)


def qwen_labeller() -> Any:
    return tiny.Qwen2ForTokenClassification(tiny.qwen2(num_labels=2))


def sequence_logit(model: Any, _heads: Any, ids: torch.Tensor, _reads: tuple[int, ...]) -> list[float]:
    return model(input_ids=ids).logits[0].sigmoid().tolist()


def token_labels(model: Any, _heads: Any, ids: torch.Tensor, reads: tuple[int, ...]) -> list[float]:
    return model(input_ids=ids).logits[0].softmax(-1)[list(reads), 1].tolist()


def make_internlm2(folder: Path, row: Row) -> tuple[Any, None]:
    return tiny.internlm2_checkpoint(folder, lambda backbone: row(backbone, same)), None


CASES = {
    "math-shepherd": Case(
        load=math_shepherd.load,
        tokenizer=tiny.mistral_tokenizer,
        make=causal(lambda: tiny.LlamaForCausalLM(tiny.llama(32000)), 648, 387),
        plain=pair(648, 387),
    ),
    "qwen2.5-math-prm": Case(
        load=qwen_math_prm.load,
        tokenizer=tiny.qwen_tokenizer,
        make=mlp(2, "Qwen2ForProcessRewardModel"),
        plain=mlp_two,
    ),
    "reasonflux-prm-7b": Case(
        load=reasonflux.load_7b,
        tokenizer=tiny.qwen_tokenizer,
        make=mlp(2, "Qwen2ForProcessRewardModel"),
        plain=mlp_two,
    ),
    "qwen2.5-math-rm": Case(
        load=qwen_math_rm.load,
        tokenizer=tiny.qwen_tokenizer,
        make=mlp(1, "Qwen2ForRewardModel"),
        plain=mlp_one,
    ),
    "internlm2-reward": Case(
        load=internlm2_reward.load,
        tokenizer=tiny.internlm2_tokenizer,
        make=make_internlm2,
        plain=sequence_logit,
    ),
    "rlhflow-prm": Case(
        load=rlhflow.load_prm,
        tokenizer=tiny.llama3_tokenizer,
        make=causal(llama, 10, 12),
        plain=pair(10, 12),
    ),
    "rlhflow-orm": Case(
        load=rlhflow.load_orm,
        tokenizer=tiny.llama3_tokenizer,
        make=causal(llama, 10, 12),
        plain=pair(10, 12),
    ),
    "skywork-o1-prm": Case(load=skywork_o1.load, tokenizer=tiny.qwen_tokenizer, make=make_skywork, plain=value_head),
    "versa-prm on Llama": Case(
        load=versa_prm.load,
        tokenizer=tiny.llama3_tokenizer,
        make=causal(llama, 10, 12),
        plain=pair(10, 12),
    ),
    "versa-prm on Qwen, tied": Case(
        load=versa_prm.load_qwen_prm800k,
        tokenizer=tiny.qwen_tokenizer,
        make=causal(tied_qwen, 10, 12),
        plain=pair(10, 12),
    ),
    "math-psa": Case(
        load=math_psa.load,
        tokenizer=tiny.qwen_tokenizer,
        make=causal(qwen, 488, 481),
        plain=pair(488, 481),
    ),
    "erprm": Case(
        load=erprm.load,
        tokenizer=tiny.llama3_tokenizer,
        make=causal(llama, 489, 482),
        plain=pair(489, 482),
    ),
    "reasonflux-prm-1.5b": Case(
        load=reasonflux.load_small,
        tokenizer=tiny.qwen_tokenizer,
        make=make_small_reasonflux,
        plain=value_head,
    ),
    "sequence-classification": Case(
        load=sequence_classifier.load,
        tokenizer=tiny.qwen_tokenizer,
        make=classifier(qwen3_classifier),
        plain=sequence_logit,
    ),
    "trl-prm": Case(
        load=trl_prm.load,
        tokenizer=tiny.qwen_tokenizer,
        make=classifier(qwen_labeller),
        plain=token_labels,
    ),
}


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
    family = inspect.getclosurevars(case.load).nonlocals["family"]
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
