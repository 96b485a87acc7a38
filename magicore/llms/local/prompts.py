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
_KEPT_A_PASS = 2
_WORTH_REUSING = 16
_PASS_TOKENS = 8192
_PASS_COSTS = 64
"""What a pass costs beside its tokens, in tokens: so much padding is cheaper than another pass."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt that has been read up to its last token, which the first step of each of its chains reads.

    Attributes:
        tokens: Its token ids, at least one.
        states: Keys and values of every layer, of all tokens but the last.
    """

    tokens: tuple[int, ...]
    states: PromptStates

    @property
    def bytes_per_token(self) -> int:
        """What keys and values of one token take in memory; 0 for a prompt of one token, of which none are held."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.states) // max(len(self.tokens) - 1, 1)


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


@dataclass(frozen=True, kw_only=True)
class _Unread:
    """What is to be read: ``tokens``, of whose first ``common`` ones the ``states`` are there."""

    tokens: tuple[int, ...]
    common: int
    states: PromptStates

    @property
    def rest(self) -> int:
        return len(self.tokens) - self.common


class PromptReader:
    """Reads prompts, those that wait together in passes of about equal length.

    What a new prompt has in common with the beginning of one read lately (a system message, exemplars, the conversation
    so far) is not read again, unless ``reuse`` is off.
    """

    def __init__(self, loaded: LoadedModel, *, reuse: bool) -> None:
        self._loaded = loaded
        self._reuse = reuse
        self._kept: OrderedDict[tuple[int, ...], PromptStates] = OrderedDict()

    def read(self, prompts: Sequence[Sequence[int]]) -> list[Prompt]:
        """Read prompts of at least one token each. One that another begins with is not read by itself."""
        bodies = [tuple(tokens[:-1]) for tokens in prompts]
        within = _longest(bodies)
        read: dict[tuple[int, ...], PromptStates] = {}
        unread: list[_Unread] = []
        for body in dict.fromkeys(within.values()):
            found = self._with_beginning(body)
            if found.rest:
                unread.append(found)
            else:
                read[body] = found.states
        for together in _passes(unread):
            read |= self._pass(together)
        return [
            Prompt(tokens=tuple(tokens), states=_cut(read[within[body]], 0, len(body)))
            for tokens, body in zip(prompts, bodies, strict=True)
        ]

    def _pass(self, together: Sequence[_Unread]) -> dict[tuple[int, ...], PromptStates]:
        """Read several in one pass, padded at the right: what comes later has no part in what a token attends to."""
        device = self._loaded.device
        common = min(one.common for one in together)
        width = max(len(one.tokens) for one in together) - common
        cache = DynamicCache()
        begun = [_cut(one.states, 0, common) for one in together] if common else []
        for layer, rows in enumerate(zip(*begun, strict=True)):
            cache.update(torch.cat([keys for keys, _ in rows]), torch.cat([values for _, values in rows]), layer)
        rest = torch.zeros(len(together), width, dtype=torch.long)
        for row, one in enumerate(together):
            rest[row, : len(one.tokens) - common] = torch.tensor(one.tokens[common:])
        positions = torch.arange(common, common + width, device=device).expand(len(together), -1)
        forward(self._loaded, rest.to(device), positions, cache, mask=None)
        layers: list[Any] = cache.layers
        held = [(layer.keys, layer.values) for layer in layers]
        read = {one.tokens: _cut(held, row, len(one.tokens)) for row, one in enumerate(together)}
        if self._reuse:
            for one in together[-_KEPT_A_PASS:]:
                self._keep(one.tokens, [(keys.clone(), values.clone()) for keys, values in read[one.tokens]])
        return read

    def _with_beginning(self, tokens: tuple[int, ...]) -> _Unread:
        """With the longest beginning shared with a kept prompt."""
        best = 0
        found: tuple[int, ...] = ()
        for kept in self._kept:
            limit = min(len(kept), len(tokens))
            length = next((at for at in range(limit) if kept[at] != tokens[at]), limit)
            if length > best:
                best, found = length, kept
        if best < _WORTH_REUSING:
            return _Unread(tokens=tokens, common=0, states=())
        self._kept.move_to_end(found)
        return _Unread(tokens=tokens, common=best, states=self._kept[found])

    def _keep(self, tokens: tuple[int, ...], states: PromptStates) -> None:
        self._kept[tokens] = states
        self._kept.move_to_end(tokens)
        while len(self._kept) > 1 and sum(map(len, self._kept)) > _KEPT_TOKENS:
            self._kept.popitem(last=False)


def _longest(bodies: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """For each the longest that begins with it, maybe itself: in order, those that begin with it come behind it.

    The empty one, for which nothing is read, stands for itself.
    """
    within: dict[tuple[int, ...], tuple[int, ...]] = {}
    following: tuple[int, ...] = ()
    for body in sorted(set(bodies), reverse=True):
        within[body] = within[following] if body and following[: len(body)] == body else body
        following = body
    return within


def _passes(unread: Sequence[_Unread]) -> list[list[_Unread]]:
    """Those that want reading from about the same place on to about the same end, in passes that are not too large.

    What is read twice or is padding, so that one pass may be made, costs no more than the pass saved.
    """
    passes: list[list[_Unread]] = []
    for one in sorted(unread, key=lambda one: (one.common, len(one.tokens))):
        together = [*passes[-1], one] if passes else [one]
        width = max(len(each.tokens) for each in together) - min(each.common for each in together)
        size = width * len(together)
        waste = size - sum(each.rest for each in together)
        if passes and size <= _PASS_TOKENS and waste <= _PASS_COSTS:
            passes[-1] = together
        else:
            passes.append([one])
    return passes


def _cut(states: PromptStates, row: int, length: int) -> PromptStates:
    return [(keys[row : row + 1, :, :length], values[row : row + 1, :, :length]) for keys, values in states]


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
