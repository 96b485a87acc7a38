"""Chat formats, pinned: what the families were trained on, not what a tokenizer's template says today."""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.family import refuse
from reward_models.families.tokens import TextTokenizer

QWEN_MATH_SYSTEM = r"Please reason step by step, and put your final answer within \boxed{}."


def chatml(tokenizer: TextTokenizer, role: str, parts: Sequence[str | int]) -> list[int]:
    """One turn of ChatML (Qwen, InternLM2): ``<|im_start|>role\\n...<|im_end|>\\n``.

    Args:
        tokenizer: Its special tokens are looked up by name.
        role: system, user or assistant.
        parts: Content: texts, and ids of special tokens between them. Tokenisation never crosses a special token, so
            the pieces give the ids of the whole.
    """
    start, end = tokenizer.special("<|im_start|>"), tokenizer.special("<|im_end|>")
    special = {start, end} | {part for part in parts if isinstance(part, int)}
    ids: list[int] = [start]
    text = f"{role}\n"
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        ids += _plain(tokenizer, text, special)
        ids.append(part)
        text = ""
    ids += _plain(tokenizer, text, special)
    return [*ids, end, *tokenizer.encode("\n")]


def llama3(tokenizer: TextTokenizer, role: str, content: str) -> list[int]:
    """One turn of the Llama 3 format: ``<|start_header_id|>role<|end_header_id|>\\n\\ncontent<|eot_id|>``."""
    names = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    start, end, stop = (tokenizer.special(name) for name in names)
    text = _plain(tokenizer, f"\n\n{content.strip()}", {start, end, stop})
    return [start, *tokenizer.encode(role), end, *text, stop]


def _plain(tokenizer: TextTokenizer, text: str, special: set[int]) -> list[int]:
    ids = tokenizer.encode(text) if text else []
    refuse(sorted(special), ids, "text")
    return ids
