"""Math-Shepherd (arXiv 2312.08935): a Mistral 7B that predicts ``+`` or ``-`` at a Cyrillic tag after every step.

Fixture: the real Mistral v1 vocabulary (``▁+`` 648, ``▁-`` 387, ``▁ки`` 12902; a tag glued to its step would be 1107).
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.family import Family, tagged
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAG = 12902
BEGIN = 1


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``question step ки\\nstep ки``, read at each tag itself."""
    text = f"{question} " + "\n".join(f"{step} ки" for step in steps)
    return tagged([BEGIN, *tokenizer.encode(text)], TAG, len(steps))


FAMILY = Family(
    name="math-shepherd",
    kind="process",
    source="model card of peiyi9979/math-shepherd-mistral-7b-prm; dinobby/MAgICoRe models.py",
    write=write,
    head=TokenPair(good=648, bad=387),
    activation="softmax",
    aggregation="product",
    aggregation_source="MAgICoRe (arXiv 2409.12147); the Math-Shepherd paper itself takes the minimum",
    context=32768,
    checkpoint="peiyi9979/math-shepherd-mistral-7b-prm",
    safe_revision="refs/pr/5",
    tokens={"▁+": 648, "▁-": 387, "▁ки": TAG},
    architectures=("LlamaForCausalLM", "MistralForCausalLM"),
)
load = factory(FAMILY)
