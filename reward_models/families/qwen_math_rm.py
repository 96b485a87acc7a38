"""Qwen2.5-Math-RM-72B (arXiv 2409.12122): one unbounded score at the last token of the chat.

Fixture: the real Qwen vocabulary; the last token is the line feed after ``<|im_end|>``.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.chat import QWEN_MATH_SYSTEM, chatml
from reward_models.families.family import Family
from reward_models.families.heads import MlpHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """System, user and assistant turns, read at the last token."""
    turns = (("system", QWEN_MATH_SYSTEM), ("user", question), ("assistant", steps[0]))
    ids = [token for role, content in turns for token in chatml(tokenizer, role, [content])]
    return Reading(ids=tuple(ids), reads=(len(ids) - 1,))


FAMILY = Family(
    name="qwen2.5-math-rm",
    kind="outcome",
    source="QwenLM/Qwen2.5-Math README; head as in vLLM models/qwen2_rm.py",
    write=write,
    head=MlpHead(outputs=1),
    activation="sigmoid",
    context=4096,
    checkpoint="Qwen/Qwen2.5-Math-RM-72B",
    tokens={"<|im_start|>": 151644, "<|im_end|>": 151645},
    architectures=("Qwen2ForRewardModel",),
)
load = factory(FAMILY)
