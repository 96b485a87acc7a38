"""Qwen2.5-Math-PRM (arXiv 2501.07301): a two-class head on ``<extra_0>`` after every step of the assistant's turn.

Fixture: the real Qwen vocabulary with ``<extra_0>`` as token 151651.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.chat import QWEN_MATH_SYSTEM, chatml
from reward_models.families.family import Family, tagged
from reward_models.families.heads import MlpHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAG = 151651


def write_with(system: str, tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """Three ChatML turns, the tag after each step; what follows the last tag is kept as published."""
    parts: list[str | int] = [part for step in steps for part in (step, TAG)]
    ids = [
        *chatml(tokenizer, "system", [system]),
        *chatml(tokenizer, "user", [question]),
        *chatml(tokenizer, "assistant", parts),
    ]
    return tagged(ids, TAG, len(steps))


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """With the system prompt of the model card."""
    return write_with(QWEN_MATH_SYSTEM, tokenizer, question, steps)


FAMILY = Family(
    name="qwen2.5-math-prm",
    kind="process",
    source="model card of Qwen/Qwen2.5-Math-PRM-7B; head as in vLLM models/qwen2_rm.py",
    write=write,
    head=MlpHead(outputs=2),
    activation="softmax",
    aggregation="product",
    aggregation_source="arXiv 2501.07301, best-of-N with the product of step scores",
    context=4096,
    checkpoint="Qwen/Qwen2.5-Math-PRM-7B",
    tokens={"<extra_0>": TAG},
    architectures=("Qwen2ForProcessRewardModel",),
)
load = factory(FAMILY)
load_72b = factory(FAMILY, "Qwen/Qwen2.5-Math-PRM-72B")
load_prm800k = factory(FAMILY, "Qwen/Qwen2.5-Math-7B-PRM800K")
