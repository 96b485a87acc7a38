"""What makes a family of reward models: its input format, where its scores are read, its head and its scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reward_models.errors import CheckpointError, StepCountError, TagInTextError
from reward_models.families.heads import Head
from reward_models.families.reading import Reading
from reward_models.families.tokens import TextTokenizer
from reward_models.types import Activation

Write = Callable[[TextTokenizer, str, Sequence[str]], Reading]
"""Question and texts to a reading: the steps of a process reward model (one raw score each, in order), or for an
outcome reward model the whole solution as the only text. Raises TagInTextError where the text imitates the tag."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of reward models.

    Attributes:
        name: Its name in the registry.
        kind: Whether it scores steps or whole solutions.
        source: Where format, positions and head are taken from.
        write: The input format.
        head: What is read.
        activation: What maps a raw score to [0, 1]: ``softmax`` for two alternatives, ``sigmoid`` for one logit. An
            unbounded score is mapped by ``sigmoid`` too, which keeps its order.
        context: The longest input in tokens: the length it was trained at or its authors state.
        aggregation: How its authors make one number of the steps'.
        aggregation_source: Who says so.
        checkpoint: The Hub id that the bare name stands for.
        safe_revision: A revision of it with safetensors weights, where the main one has none.
        tokens: Texts and the one id each must have; checked at loading, so that a wrong tokenizer is noticed.
        architectures: Those the checkpoint's configuration may name; empty means any decoder.
        adapt: What a checkpoint's ``reward_model.json`` declares, and its tokenizer, to the family as that checkpoint
            writes it: for models trained here on another vocabulary.
        version: Raised whenever ``write`` changes, so that cached scores are not mixed.
    """

    name: str
    kind: Literal["process", "outcome"]
    source: str
    write: Write
    head: Head
    activation: Activation
    context: int
    checkpoint: str
    aggregation: str = "last"
    aggregation_source: str = "one score a solution"
    safe_revision: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    architectures: tuple[str, ...] = ()
    adapt: Callable[[Family, Mapping[str, Any], TextTokenizer], Family] | None = None
    version: int = 1

    def adapted(self, declared: Mapping[str, Any] | None, tokenizer: TextTokenizer) -> Family:
        """The family for a checkpoint that declares its own format; itself where it declares none.

        Raises:
            CheckpointError: The checkpoint was trained as another family.
        """
        if declared is None:
            return self
        if declared.get("family") != self.name:
            raise CheckpointError(f"it was trained as {declared.get('family')}, not as {self.name}")
        return self if self.adapt is None else self.adapt(self, declared, tokenizer)

    def check_tokenizer(self, tokenizer: TextTokenizer) -> None:
        """Raise unless the tokenizer gives the ids that the family reads.

        Raises:
            CheckpointError: It does not.
        """
        for text, wanted in self.tokens.items():
            named = tokenizer.find(text)
            found = tokenizer.encode(text) if named is None else [named]
            if found[-1:] != [wanted]:
                raise CheckpointError(
                    f"the tokenizer encodes {text!r} as {found}, but {self.name} reads token {wanted}"
                )


def tagged(ids: Sequence[int], tag: int, steps: int) -> Reading:
    """A reading at every tag.

    Raises:
        TagInTextError: There are more tags than steps: the text itself holds some.
        StepCountError: There are fewer: a tag was merged with its neighbour.
    """
    reads = tuple(index for index, token in enumerate(ids) if token == tag)
    if len(reads) > steps:
        raise TagInTextError(f"the text itself holds the step tag (token {tag}) {len(reads) - steps} times")
    if len(reads) < steps:
        raise StepCountError(f"{len(reads)} step tags (token {tag}) were found for {steps} steps")
    return Reading(ids=tuple(ids), reads=reads)


def refuse(tokens: Sequence[int], ids: Sequence[int], what: str) -> None:
    """Raise if text was encoded to one of these special tokens.

    Raises:
        TagInTextError: It was.
    """
    if found := sorted(set(tokens) & set(ids)):
        raise TagInTextError(f"the {what} holds the model's own special token {found[0]}")
