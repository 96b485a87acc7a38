"""Tiny random chat models of true architectures, with a tokenizer of one token a character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from magicore.llms.local.loading import LoadedModel, prepare

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CPU = torch.device("cpu")
SMALL: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": 98,
}
ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SMALL)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SMALL, head_dim=8)),
    "mistral, sliding": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**SMALL, sliding_window=6)),
    "gemma3, mixed": lambda: transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(
            **SMALL, head_dim=8, sliding_window=6, layer_types=["sliding_attention", "full_attention"]
        )
    ),
}


def byte_tokenizer(template: str | None = TEMPLATE) -> Any:
    """One token a printable character, a line end, and the three of ChatML."""
    letters = [*(chr(at) for at in range(33, 127)), "Ġ", "Ċ"]
    tokenizer = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<|end|>", "<|im_start|>", "<|im_end|>")])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    fast.chat_template = template
    return fast


def tiny(architecture: str = "llama", *, sharpness: float = 12.0) -> LoadedModel:
    """A random network whose next tokens are neither certain nor uniform."""
    torch.manual_seed(7)
    network = ARCHITECTURES[architecture]().eval()
    with torch.no_grad():
        network.get_output_embeddings().weight.mul_(sharpness)
    network.set_attn_implementation("sdpa")
    return prepare(network, byte_tokenizer(), CPU)
