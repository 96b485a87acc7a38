"""ReasonFlux-PRM (arXiv 2506.18896): the 7B is a Qwen2.5-Math-PRM without a system prompt of its own, the 1.5B a
language model with a reward head beside it.

Fixture: the real Qwen vocabulary; ``reward_head.pt`` is read weights-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reward_models.families import qwen_math_prm
from reward_models.families.build import factory
from reward_models.families.chat import QWEN_MATH_SYSTEM
from reward_models.families.family import Family
from reward_models.families.heads import LinearHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer


def write_steps(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """As Qwen2.5-Math-PRM; with no system message given, Qwen2.5-Math's template writes this one."""
    return qwen_math_prm.write_with(QWEN_MATH_SYSTEM, tokenizer, question, steps)


def write_whole(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """Question and solution as plain text, read at the last token."""
    ids = tokenizer.encode(f"{question}{steps[0]}")
    return Reading(ids=tuple(ids), reads=(len(ids) - 1,))


SEVEN_B = replace(
    qwen_math_prm.FAMILY,
    name="reasonflux-prm-7b",
    source="Gen-Verse/ReasonFlux ReasonFlux_PRM/utils/rm_utils.py",
    write=write_steps,
    aggregation="mean",
    aggregation_source="ReasonFlux-PRM averages step rewards",
    checkpoint="Gen-Verse/ReasonFlux-PRM-7B",
)
SMALL = Family(
    name="reasonflux-prm-1.5b",
    kind="outcome",
    source="Gen-Verse/ReasonFlux ReasonFlux_PRM/utils/rm_utils.py",
    write=write_whole,
    head=LinearHead(weight="weight", bias="bias", file="reward_head.pt"),
    activation="sigmoid",
    context=2048,
    checkpoint="Gen-Verse/ReasonFlux-PRM-1.5B",
    architectures=("Qwen2ForCausalLM",),
)
load_7b = factory(SEVEN_B)
load_small = factory(SMALL)
