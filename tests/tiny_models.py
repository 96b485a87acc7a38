"""Tiny random checkpoints of every family, in its true architecture and with its true token ids."""

from __future__ import annotations

import atexit
import base64
import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForTokenClassification,
    Qwen2Model,
    Qwen3Config,
    Qwen3ForSequenceClassification,
)

from reward_models.families.tokens import TextTokenizer
from reward_models.local.load import load_tokenizer

__all__ = [  # model classes that tests take from here
    "LlamaForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen2ForTokenClassification",
    "Qwen2Model",
    "Qwen3Config",
    "Qwen3ForSequenceClassification",
]

QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_PATTERN = QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
Tensors = dict[str, torch.Tensor]


def package_file(package: str, path: str) -> Path:
    """A tokenizer's vocabulary in an installed package; the test is skipped without it."""
    module = pytest.importorskip(package)
    file = Path(module.__file__).parent / path
    if not file.exists():
        pytest.skip(f"{package} has no {path}")
    return file


def mistral_tokenizer(folder: Path) -> None:
    """The real Mistral v1 vocabulary, as Math-Shepherd ships it: a sentencepiece model and a short configuration."""
    pytest.importorskip("sentencepiece")
    model = package_file("mistral_common", "data/tokenizer.model.v1")
    (folder / "tokenizer.model").write_bytes(model.read_bytes())
    settings = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def _bytes_to_letters() -> dict[int, str]:
    """The printable alphabet of byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}


def byte_pairs(ranks: dict[bytes, int], pattern: str) -> Tokenizer:
    """A tiktoken vocabulary as a Hugging Face tokenizer: merges are the pairs that build each token in rank order."""
    letters = _bytes_to_letters()
    spell = {token: "".join(letters[byte] for byte in token) for token in ranks}
    merges = []
    for token, rank in ranks.items():
        found = [
            (max(ranks[token[:at]], ranks[token[at:]]), at)
            for at in range(1, len(token))
            if ranks.get(token[:at], rank) < rank and ranks.get(token[at:], rank) < rank
        ]
        merges += [(rank, *key, spell[token[: key[1]]], spell[token[key[1] :]]) for key in sorted(found)]
    merges.sort()
    tokenizer = Tokenizer(
        models.BPE(
            vocab={spell[token]: rank for token, rank in ranks.items()},
            merges=[(left, right) for *_, left, right in merges],
            ignore_merges=True,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def read_ranks(file: Path) -> dict[bytes, int]:
    pairs = (line.split() for line in file.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def special(names: list[str]) -> list[AddedToken]:
    return [AddedToken(name, special=True, normalized=False) for name in names]


def qwen_tokenizer(folder: Path) -> None:
    """The real Qwen vocabulary; special tokens from 151643 on, ``<extra_0>`` at 151651."""
    tokenizer = byte_pairs(read_ranks(package_file("qwen_tokenizer", "resources/qwen.tiktoken")), QWEN_PATTERN)
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|special_{i}|>" for i in range(5)), "<extra_0>"]
    tokenizer.add_special_tokens(special(names))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHATML
    fast.save_pretrained(folder)


def llama3_tokenizer(folder: Path) -> None:
    """The real Llama 3 vocabulary; special tokens from 128000 on."""
    tokenizer = byte_pairs(read_ranks(package_file("llama_models", "llama3/tokenizer.model")), LLAMA_PATTERN)
    names = ["<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(4))]
    names += ["<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>"]
    tokenizer.add_special_tokens(special(names))
    from tokenizers.processors import TemplateProcessing

    bos = "<|begin_of_text|>"
    tokenizer.post_processor = TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, 128000)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token="<|eot_id|>", pad_token="<|end_of_text|>"
    )
    fast.chat_template = (
        "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
        "{{ m.content }}<|eot_id|>{% endfor %}"
    )
    fast.save_pretrained(folder)


def internlm2_tokenizer(folder: Path) -> None:
    """The documented InternLM2 ids: the pieces of the two public token vectors, bytes, and the special tokens.

    The whole vocabulary is not in any package, so this one is a stand-in with the true ids.
    """
    letters = _bytes_to_letters()
    vocabulary = {letters[byte]: 2000 + byte for byte in range(256)} | {letters[10]: 364}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [
        {
            "id": number,
            "content": name,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for name, number in (
            ("<s>", 1),
            ("</s>", 2),
            ("<|reward|>", 92527),
            ("<|im_end|>", 92542),
            ("<|im_start|>", 92543),
        )
    ]
    state["model"]["vocab"] |= {token["content"]: token["id"] for token in state["added_tokens"]}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    fast.save_pretrained(folder)


@functools.cache
def tokenizer_folder(make: Callable[[Path], None]) -> Path:
    """A folder with a tokenizer, made once a test run: building a large vocabulary takes seconds."""
    folder = Path(tempfile.mkdtemp(prefix="magicore-tokenizer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make(folder)
    return folder


@functools.cache
def words(folder: str | Path) -> TextTokenizer:
    """A folder's tokenizer, read once a test run."""
    return load_tokenizer(str(folder))


SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
}
_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}


def llama(vocabulary: int, **more: Any) -> LlamaConfig:
    return LlamaConfig(vocab_size=vocabulary, **SIZES, **_ROPE, **more)


def qwen2(**more: Any) -> Qwen2Config:
    return Qwen2Config(vocab_size=152064, **SIZES, **_ROPE, **more)


def save_model(
    model: torch.nn.Module, folder: Path, *, architecture: str | None = None, heads: Tensors | None = None
) -> None:
    """Write weights and configuration; heads that transformers has no class for are added to the weights."""
    model.config.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = [architecture or type(model).__name__]
    (folder / "config.json").write_text(json.dumps(config))
    prefix = "model." if type(model).__name__.endswith("Model") else ""
    tied = "lm_head.weight" if model.config.tie_word_embeddings else None
    tensors = {prefix + key: value.detach().contiguous() for key, value in model.state_dict().items() if key != tied}
    save_file(tensors | (heads or {}), folder / "model.safetensors", metadata={"format": "pt"})


def spread(weight: torch.Tensor, by: float) -> None:
    """Scale a head in place, so that probabilities lie between .05 and .95."""
    with torch.no_grad():
        weight.mul_(by)


def mlp_head(outputs: int, *, size: int = 32) -> Tensors:
    scale = 1 / size**0.5
    return {
        "score.0.weight": torch.randn(size, size) * scale,
        "score.0.bias": torch.randn(size) * scale,
        "score.2.weight": torch.randn(outputs, size) * 2 * scale,
        "score.2.bias": torch.randn(outputs) * scale,
    }


def internlm2_checkpoint(
    folder: Path, row: Callable[[Any], torch.Tensor] | None = None
) -> LlamaForSequenceClassification:
    """A reward model under InternLM2's own names and layout; returns the Llama it was made from."""
    config = llama(92544, pad_token_id=2, num_labels=1)
    model = LlamaForSequenceClassification(config).eval()
    if row is not None:
        model.score.weight[0] = row(model.model)
    heads, groups, width = 4, 2, 8
    names = {
        "self_attn.o_proj": "attention.wo",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "feed_forward.w1",
        "mlp.up_proj": "feed_forward.w3",
        "mlp.down_proj": "feed_forward.w2",
        "embed_tokens": "tok_embeddings",
    }
    tensors: Tensors = {}
    for key, value in model.state_dict().items():
        if "_proj" in key and key.split(".")[-2] in {"q_proj", "k_proj", "v_proj"}:
            continue
        renamed = functools.reduce(lambda text, pair: text.replace(*pair), names.items(), key)
        tensors["v_head.weight" if key == "score.weight" else renamed] = value.contiguous()
    for index, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        q = attention.q_proj.weight.detach().view(groups, heads // groups, width, -1)
        k = attention.k_proj.weight.detach().view(groups, 1, width, -1)
        v = attention.v_proj.weight.detach().view(groups, 1, width, -1)
        tensors[f"model.layers.{index}.attention.wqkv.weight"] = (
            torch.cat((q, k, v), dim=1).reshape(-1, 32).contiguous()
        )
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    fields = {key: value for key, value in SIZES.items() if key != "initializer_range"}
    fields |= {"model_type": "internlm2", "architectures": ["InternLM2ForRewardModel"], "vocab_size": 92544}
    fields |= {"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "bias": False, "reward_token_id": 92527}
    fields |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "hidden_act": "silu"}
    fields |= {"auto_map": {"AutoModel": "modeling_internlm2.InternLM2ForRewardModel"}}
    (folder / "config.json").write_text(json.dumps(fields))
    return model
