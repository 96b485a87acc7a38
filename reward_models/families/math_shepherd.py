"""Math-Shepherd (arXiv 2312.08935): a Mistral 7B that predicts ``+`` or ``-`` at a Cyrillic tag after every step.

Models trained here on another vocabulary keep the text of the format; there the tag may be several tokens, which are
written apart from their step, and the ids are those that the checkpoint declares.

Fixture: the real Mistral v1 vocabulary (``▁+`` 648, ``▁-`` 387, ``▁ки`` 12902; a tag glued to its step would be 1107).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from reward_models.errors import CheckpointError, TagInTextError
from reward_models.families.build import factory
from reward_models.families.family import Family, tagged
from reward_models.families.heads import TokenPair
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer

TAG = 12902
TAG_TEXT = "ки"
BEGIN = 1


def write(tokenizer: TextTokenizer, question: str, steps: Sequence[str]) -> Reading:
    """``question step ки\\nstep ки``, read at each tag itself."""
    text = f"{question} " + "\n".join(f"{step} ки" for step in steps)
    return tagged([BEGIN, *tokenizer.encode(text)], TAG, len(steps))


def write_apart(tokenizer: TextTokenizer, question: str, steps: Sequence[str], *, tag: Sequence[int]) -> Reading:
    """The same text, question, steps and tags tokenised apart, read at each tag's last token."""
    if TAG_TEXT in question or any(TAG_TEXT in step for step in steps):
        raise TagInTextError(f"the text itself holds the step tag {TAG_TEXT!r}")
    ids = [*tokenizer.start, *tokenizer.encode(question)]
    reads = []
    for number, step in enumerate(steps):
        ids += [*tokenizer.encode(f"\n{step}" if number else f" {step}"), *tag]
        reads.append(len(ids) - 1)
    return Reading(ids=tuple(ids), reads=tuple(reads))


def declare(tokenizer: TextTokenizer) -> dict[str, Any]:
    """The ids of tag, ``+`` and ``-`` in a vocabulary, for a checkpoint trained on it.

    Raises:
        CheckpointError: ``+`` or ``-`` is no single token.
    """
    good, bad = tokenizer.encode(" +"), tokenizer.encode(" -")
    if len(good) != 1 or len(bad) != 1:
        raise CheckpointError(f"the tokenizer has no single token for ' +' and ' -': {good}, {bad}; use head trl-prm")
    return {"family": "math-shepherd", "tag": tokenizer.encode(f" {TAG_TEXT}"), "good": good[0], "bad": bad[0]}


def adapt(family: Family, declared: Mapping[str, Any], tokenizer: TextTokenizer) -> Family:
    """The family with the ids that a checkpoint declares.

    Raises:
        CheckpointError: The tokenizer has other ids.
    """
    if declare(tokenizer) != dict(declared):
        raise CheckpointError("its tokenizer is another than it was trained with: the ids of tag, + and - differ")
    return replace(
        family,
        write=partial(write_apart, tag=tuple(declared["tag"])),
        head=TokenPair(good=declared["good"], bad=declared["bad"]),
        tokens={},
        architectures=(),
    )


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
    adapt=adapt,
)
load = factory(FAMILY)
