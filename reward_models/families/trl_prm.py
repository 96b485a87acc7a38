"""Process reward models trained by TRL's PRMTrainer: two labels a token, read at the separator after every step.

Fixture: any decoder; every piece is tokenised apart, so a separator never merges with its step.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.families.build import factory
from reward_models.families.family import Family
from reward_models.families.heads import LinearHead
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

SEPARATOR = "\n"


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """BOS where the tokenizer has one, the question, then each step and the separator, read at its last token."""
    ids = [*tokenizer.start, *tokenizer.encode(question)]
    separator = tokenizer.encode(SEPARATOR)
    reads = []
    for step in steps:
        ids += [*tokenizer.encode(step), *separator]
        reads.append(len(ids) - 1)
    return Reading(ids=tuple(ids), reads=tuple(reads))


FAMILY = Family(
    name="trl-prm",
    kind="process",
    source="huggingface/trl trl/experimental/prm/prm_trainer.py",
    write=write,
    head=LinearHead(weight="score.weight", bias="score.bias", optional_bias=True, outputs=2),
    activation="softmax",
    aggregation="min",
    aggregation_source="none stated by TRL; as in the Math-Shepherd paper, the data set of its examples",
    context=4096,
    checkpoint="trl-lib/Qwen2-0.5B-Reward-Math-Sheperd",
)
load = factory(FAMILY)
