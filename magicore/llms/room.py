"""Whether a request can fit a model's context at all, told before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from magicore.errors import ContextExceeded, InputError
from magicore.llms.tokenizers import token_counter

_TEXTS = 256
"""So many texts are remembered with their tokens: system messages and worked examples come again and again."""


class Room:
    """The room that a model's context has, in tokens of prompt and answer together.

    Nothing is refused that would fit: none of the tokens that a chat template adds is counted, and without a tokenizer
    a word counts as one token, which is fewer than tokenizers make of most.

    Args:
        model: The model's name, for messages.
        context: The most tokens of prompt and answer.
        tokenizer: Counts their tokens (:func:`~magicore.llms.tokenizers.token_counter`); ``None``: words are counted.

    Raises:
        InputError: ``context`` is no whole number above 0, or there is no such tokenizer.
        MissingExtraError: A tokenizer is given, and the package for it is not installed.
    """

    def __init__(self, model: str, context: int, tokenizer: str | None = None) -> None:
        if type(context) is not int or context < 1:  # a table may hold anything
            raise InputError(f"model {model!r}: context is a whole number of tokens above 0, not {context!r}")
        self._model = model
        self._context = context
        self._count: Callable[[str], int] = _words if tokenizer is None else _tokens(tokenizer)

    def check(self, texts: Iterable[str], answer: int) -> None:
        """Refuse ``texts`` that leave no room for an answer of ``answer`` tokens.

        Raises:
            ContextExceeded: They do not fit, whatever the chat template.
        """
        prompt = sum(map(self._count, texts))
        if prompt + answer > self._context:
            raise ContextExceeded(
                f"prompt and answer do not fit the context of {self._context:,} tokens that is stated for it: the "
                f"prompt has at least {prompt:,}, the answer may have {answer:,}; it was not asked",
                model=self._model,
            )


def _words(text: str) -> int:
    return len(text.split())


@cache  # replicas share one
def _tokens(tokenizer: str) -> Callable[[str], int]:
    return lru_cache(_TEXTS)(token_counter(tokenizer))
