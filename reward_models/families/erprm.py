"""erPRM, entropy-regularised process rewards (arXiv 2412.11006): Math-Shepherd's format on Llama 3.1.

Fixture: the real Llama 3 vocabulary (`` +`` 489, `` -`` 482, `` ки`` 116624).
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.family import Family, tagged
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAG = 116624


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``question step ки\\nstep ки``, read at each tag itself."""
    text = f"{question} " + "\n".join(f"{step} ки" for step in steps)
    return tagged([tokenizer.special("<|begin_of_text|>"), *tokenizer.encode(text)], TAG, len(steps))


FAMILY = Family(
    name="erprm",
    kind="process",
    source="hanningzhang/ER-PRM; format of Math-Shepherd",
    write=write,
    head=TokenPair(good=489, bad=482),
    activation="softmax",
    aggregation="min",
    aggregation_source="as in the Math-Shepherd paper, whose format it shares",
    context=8192,
    checkpoint="sdiazlor/llama3.1-math-prm",
    tokens={" +": 489, " -": 482, " ки": TAG},
    architectures=("LlamaForCausalLM",),
)
load = factory(FAMILY)
