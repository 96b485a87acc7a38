"""Every family that reads token ids: how its tiny random checkpoint is made, and how the published code would read it.

The parity and the poison tests go by this table, and ``tests/FAMILIES.md`` names its rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import tiny_models as tiny
from reward_models.families import (
    erprm,
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

Row = Callable[[Any, Callable[[torch.Tensor], torch.Tensor]], torch.Tensor]
"""(backbone, what the head does before its last row) -> a row whose logits on the batch span -2.94 to 2.94 or so."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One family: how its tiny checkpoint is made, and how the published code would read it."""

    load: Callable[..., Any]
    tokenizer: Callable[[Path], None]
    make: Callable[[Path, Row], Any]
    plain: Callable[[Any, Any, torch.Tensor, tuple[int, ...]], list[float]]

    @property
    def family(self) -> Family:
        found: Family = inspect.getclosurevars(self.load).nonlocals["family"]
        return found


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
