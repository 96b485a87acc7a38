"""Math-PSA (openr, arXiv 2410.09671): `` +`` or `` -`` at five line feeds after every step, on Qwen2.5.

Fixture: the real Qwen vocabulary (`` +`` 488, `` -`` 481, tag 76325).
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.family import Family, tagged
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAG = 76325


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``question step \\n\\n\\n\\n\\nstep \\n\\n\\n\\n\\n``, read at each tag itself."""
    text = f"{question} " + "".join(f"{step} \n\n\n\n\n" for step in steps)
    return tagged(tokenizer.encode(text), TAG, len(steps))


FAMILY = Family(
    name="math-psa",
    kind="process",
    source="openreasoner/openr reason/inference and prm code",
    write=write,
    head=TokenPair(good=488, bad=481),
    activation="softmax",
    aggregation="last",
    aggregation_source="openr evaluates last and min; last is its default",
    context=4096,
    checkpoint="openreasoner/Math-psa",
    tokens={" +": 488, " -": 481, " \n\n\n\n\n": TAG},
    architectures=("Qwen2ForCausalLM",),
)
load = factory(FAMILY)
