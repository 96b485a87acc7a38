"""InternLM2 as Llama: the same network with other names, its query, key and value rows regrouped.

InternLM/InternLM tools/convert2llama.py does the same for language models; here for the reward models, whose value head
becomes the classifier's row. Rotary embeddings agree, so no row is permuted within a head.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from reward_models.families.heads import Head, LinearHead
from reward_models.local.checkpoint import Checkpoint

_NAMES = {
    "attention.wo": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w3": "mlp.up_proj",
    "feed_forward.w2": "mlp.down_proj",
}
_TOP = {
    "model.tok_embeddings.weight": "model.embed_tokens.weight",
    "model.norm.weight": "model.norm.weight",
    "v_head.weight": "score.weight",
    "output.weight": "lm_head.weight",
}


def is_internlm2(config: dict[str, Any]) -> bool:
    """Whether a configuration is InternLM2's own."""
    return config.get("model_type") == "internlm2"


def native_head(head: Head) -> Head:
    """The family's head under the name it has in InternLM2's own files."""
    return replace(head, weight="v_head.weight") if isinstance(head, LinearHead) else head


def llama_config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the same network as a LlamaForSequenceClassification."""
    same = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
        "rms_norm_eps",
        "hidden_act",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "torch_dtype",
        "dtype",
    )
    kept = {key: config[key] for key in same if key in config}
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": float(config.get("rope_theta", 10000.0))}
    scaling = config.get("rope_scaling") or {}
    if scaling.get("type"):
        rope |= {"rope_type": scaling["type"], "factor": scaling["factor"]}
    return kept | {
        "architectures": ["LlamaForSequenceClassification"],
        "model_type": "llama",
        "num_key_value_heads": config.get("num_key_value_heads") or config["num_attention_heads"],
        "attention_bias": bool(config.get("bias", False)),
        "tie_word_embeddings": False,
        "rope_parameters": rope,
        "num_labels": 1,
        "id2label": {"0": "reward"},
        "label2id": {"reward": 0},
        "reward_token_id": config.get("reward_token_id", 92527),
    }


def llama_tensors(name: str, tensor: Tensor, config: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The Llama tensors that one InternLM2 tensor becomes."""
    if name in _TOP:
        yield _TOP[name], tensor
        return
    prefix, _, kind = name.removeprefix("model.").partition(".")[2].partition(".")
    stem, _, suffix = kind.rpartition(".")
    where = f"model.layers.{prefix}"
    if stem != "attention.wqkv":
        yield f"{where}.{_NAMES[stem]}.{suffix}", tensor
        return
    heads = config["num_attention_heads"]
    groups = config.get("num_key_value_heads") or heads
    width = config["hidden_size"] // heads
    parts = tensor.view(groups, heads // groups + 2, width, *tensor.shape[1:])
    for part, projection in ((parts[:, :-2], "q_proj"), (parts[:, -2], "k_proj"), (parts[:, -1], "v_proj")):
        yield f"{where}.self_attn.{projection}.{suffix}", part.reshape(-1, *tensor.shape[1:]).contiguous()


def convert(source: Checkpoint, target: Path) -> None:
    """Write the checkpoint as a LlamaForSequenceClassification, one layer group a file.

    The result serves on vLLM and SGLang as an ordinary sequence classifier, and loads here without converting again.
    """
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps(llama_config(source.config), indent=2), encoding="utf-8")
    for file in source.folder.iterdir():
        if file.suffix in {".model", ".txt", ".jinja"} or file.name in {"tokenizer.json", "special_tokens_map.json"}:
            shutil.copyfile(file, target / file.name)
    _write_tokenizer_config(source.folder, target)
    index: dict[str, str] = {}
    batch: dict[str, Tensor] = {}
    size, files = 0, 0

    def flush() -> None:
        nonlocal size, files, batch
        files += 1
        file = f"model-{files:05d}.safetensors"
        save_file(batch, target / file, metadata={"format": "pt"})
        index.update(dict.fromkeys(batch, file))
        batch, size = {}, 0

    for name, tensor in source.tensors():
        for new, values in llama_tensors(name, tensor, source.config):
            batch[new] = values.contiguous()
            size += values.nbytes
        if size > 1 << 31:
            flush()
    if batch:
        flush()
    (target / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index}, indent=2), encoding="utf-8"
    )


def _write_tokenizer_config(source: Path, target: Path) -> None:
    """The tokenizer's settings without the remote class."""
    path = source / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    settings.pop("auto_map", None)
    settings["tokenizer_class"] = "LlamaTokenizer"
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
