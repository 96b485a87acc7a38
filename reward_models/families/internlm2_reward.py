"""InternLM2-reward (arXiv 2403.17297): one unbounded score at an appended reward token.

Loaded as ``LlamaForSequenceClassification`` after :mod:`reward_models.local.internlm2` has renamed and regrouped its
weights; no remote code. Fixture: the two token vectors of the public model cards.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.chat import chatml
from reward_models.families.family import Family, refuse
from reward_models.families.heads import LinearHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

REWARD_TOKEN = 92527
BEGIN = 1


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``<s>``, a user and an assistant turn, then the reward token, at which the score is read."""
    turns = [*chatml(tokenizer, "user", [question]), *chatml(tokenizer, "assistant", [steps[0]])]
    refuse([REWARD_TOKEN], turns, "text")
    ids = (BEGIN, *turns, REWARD_TOKEN)
    return Reading(ids=ids, reads=(len(ids) - 1,))


FAMILY = Family(
    name="internlm2-reward",
    kind="outcome",
    source="InternLM/xtuner modeling_internlm2_reward (get_score); model card of internlm/internlm2-7b-reward",
    write=write,
    head=LinearHead(weight="score.weight"),
    activation="sigmoid",
    context=32768,
    checkpoint="internlm/internlm2-7b-reward",
    tokens={"<|im_start|>": 92543, "<|im_end|>": 92542},
    architectures=("InternLM2ForRewardModel", "LlamaForSequenceClassification"),
)
load = factory(FAMILY)
load_small = factory(FAMILY, "internlm/internlm2-1_8b-reward")
load_20b = factory(FAMILY, "internlm/internlm2-20b-reward")
