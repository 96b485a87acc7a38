"""A tiny random chat model on disk with every letter, and labelled solutions to train it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers.convert_slow_tokenizer import bytes_to_unicode

from tiny_chat import TEMPLATE


def tokenizer() -> Any:
    """One token a byte, and ``" +"`` and ``" -"`` as one token each."""
    letters = [*bytes_to_unicode().values(), "Ġ+", "Ġ-"]
    made = Tokenizer(
        models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[("Ġ", "+"), ("Ġ", "-")])
    )
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True) for name in ("<|end|>", "<|im_start|>", "<|im_end|>")])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = TEMPLATE
    return fast


def tiny_base(folder: Path) -> Path:
    """A random two-layer Llama with its tokenizer."""
    torch.manual_seed(3)
    words = tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.eos_token_id,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    network = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        network.lm_head.weight.mul_(4)  # so that it can be sure of a token
    network.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    """A JSON Lines file."""
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def labelled(file: Path, count: int = 24) -> Path:
    """Solutions whose right steps end on ``ok`` and whose wrong steps end on ``no``: learnt at once."""
    rows = []
    for at in range(count):
        good = at % 2 == 0
        steps = [f"Step 1: {at} ok", f"Step 2: {at} {'ok' if good else 'no'}"]
        row = {"id": f"p{at // 2}", "question": f"Q{at // 2}?", "answer": "1", "steps": steps}
        rows.append({**row, "step_labels": [1.0, float(good)], "outcome": good})
    return write_rows(file, rows)
