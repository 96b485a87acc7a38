"""Skywork-o1-Open-PRM: a value head read at a line feed appended to every step.

Fixture: the real Qwen vocabulary (line feed 198; the tokenizer's beginning-of-sequence token is ``<|im_start|>``).
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.family import Family
from reward_models.families.heads import LinearHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

LINE_FEED = 198


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``<|im_start|>question\\n``, then each step and one line-feed token, tokenised apart, read at the latter."""
    ids = [tokenizer.special("<|im_start|>"), *tokenizer.encode(f"{question}\n")]
    reads = []
    for step in steps:
        ids += [*tokenizer.encode(step), LINE_FEED]
        reads.append(len(ids) - 1)
    return Reading(ids=tuple(ids), reads=tuple(reads))


FAMILY = Family(
    name="skywork-o1-prm",
    kind="process",
    source="SkyworkAI/skywork-o1-prm-inference model_utils/io_utils.py",
    write=write,
    head=LinearHead(weight="v_head.summary.weight", bias="v_head.summary.bias"),
    activation="sigmoid",
    aggregation="last",
    aggregation_source="none stated by the authors; RyanLiu112/compute-optimal-tts evaluates last, min and mean",
    context=4096,
    checkpoint="Skywork/Skywork-o1-Open-PRM-Qwen-2.5-7B",
    tokens={"\n": LINE_FEED},
    architectures=("Qwen2ForPrmModel",),
)
load = factory(FAMILY)
load_small = factory(FAMILY, "Skywork/Skywork-o1-Open-PRM-Qwen-2.5-1.5B")
