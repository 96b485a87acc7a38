"""From a conversation to a prompt's tokens, and from those to its keys and values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import DynamicCache

from magicore.errors import CapabilityError
from magicore.llms.base import Message
from magicore.llms.local.loading import LoadedModel
from magicore.llms.local.slots import PromptStates

_KEPT_TOKENS = 4096
_WORTH_REUSING = 16


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt that has been read.

    Attributes:
        tokens: Its token ids.
        states: Keys and values of every layer.
        logits: Float32, ``[vocabulary]``: what follows its last token.
    """

    tokens: tuple[int, ...]
    states: PromptStates
    logits: torch.Tensor

    @property
    def bytes_per_token(self) -> int:
        """What keys and values of one token take in memory."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.states) // len(self.tokens)


def prompt_tokens(tokenizer: Any, messages: Sequence[Message], prefill: str | None) -> list[int]:
    """The conversation in the model's own chat template, up to where the reply begins, with ``prefill`` begun.

    A model without a template gets the messages' texts, apart by blank lines. One whose template has no place for a
    system message gets it at the head of the first user message.

    Raises:
        CapabilityError: The template cannot hold the conversation.
    """
    turns: list[Message] = list(messages)
    if not tokenizer.chat_template:
        text = "\n\n".join(turn["content"] for turn in turns) + "\n\n" + (prefill or "")
        return _ids(tokenizer(text)["input_ids"])
    try:
        return _templated(tokenizer, turns, prefill)
    except TemplateError as error:
        if turns and turns[0]["role"] == "system" and len(turns) > 1:
            first = Message(role=turns[1]["role"], content=f"{turns[0]['content'].strip()}\n\n{turns[1]['content']}")
            try:
                return _templated(tokenizer, [first, *turns[2:]], prefill)
            except TemplateError:
                pass
        raise CapabilityError(f"the model's chat template cannot hold this conversation ({error})") from None


def _templated(tokenizer: Any, turns: list[Message], prefill: str | None) -> list[int]:
    text: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return _ids(tokenizer(text + (prefill or ""), add_special_tokens=False)["input_ids"])


def _ids(found: Any) -> list[int]:
    return [int(token) for token in found]


class PromptReader:
    """Reads prompts, one at a time at its exact length, so that nothing is spent on padding.

    What a new prompt has in common with the beginning of one read lately (a system message, exemplars, the conversation
    so far) is not read again, unless ``reuse`` is off.
    """

    def __init__(self, loaded: LoadedModel, *, reuse: bool) -> None:
        self._loaded = loaded
        self._reuse = reuse
        self._kept: OrderedDict[tuple[int, ...], PromptStates] = OrderedDict()

    def read(self, tokens: Sequence[int]) -> Prompt:
        """Read a prompt of at least one token."""
        device = self._loaded.device
        common, states = self._common_beginning(tokens) if self._reuse else (0, ())
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(states):
            cache.update(keys[:, :, :common], values[:, :, :common], layer)
        rest = torch.tensor([tokens[common:]], device=device)
        positions = torch.arange(common, len(tokens), device=device)[None]
        logits = forward(self._loaded, rest, positions, cache, mask=None)[0].float()
        held: list[Any] = cache.layers
        read = tuple((layer.keys, layer.values) for layer in held)
        if self._reuse:
            self._keep(tuple(tokens), read)
        return Prompt(tokens=tuple(tokens), states=read, logits=logits)

    def _common_beginning(self, tokens: Sequence[int]) -> tuple[int, PromptStates]:
        """The longest beginning shared with a kept prompt. At least one token is always left to read."""
        best, states = 0, ()
        found: tuple[int, ...] | None = None
        for kept in self._kept:
            limit = min(len(kept), len(tokens) - 1)
            length = next((at for at in range(limit) if kept[at] != tokens[at]), limit)
            if length > best:
                best, found = length, kept
        if found is None or best < _WORTH_REUSING:
            return 0, states
        self._kept.move_to_end(found)
        return best, self._kept[found]

    def _keep(self, tokens: tuple[int, ...], states: PromptStates) -> None:
        self._kept[tokens] = states
        self._kept.move_to_end(tokens)
        while len(self._kept) > 1 and sum(map(len, self._kept)) > _KEPT_TOKENS:
            self._kept.popitem(last=False)


def forward(loaded: LoadedModel, tokens: torch.Tensor, positions: torch.Tensor, cache: Any, mask: Any) -> torch.Tensor:
    """One pass; the logits after the last position of each row, ``[rows, vocabulary]``."""
    output = loaded.model(
        input_ids=tokens,
        position_ids=positions,
        attention_mask=mask,
        use_cache=True,
        logits_to_keep=1,
        **{loaded.cache_argument: cache},
    )
    logits: torch.Tensor = output.logits[:, -1]
    return logits
