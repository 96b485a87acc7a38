"""Text to token ids as every family needs it: plain text stays plain text, special tokens are asked for by name."""

from __future__ import annotations

from typing import Any

from reward_models.errors import CheckpointError


class UnreadableTextError(ValueError):
    """The text cannot be encoded as UTF-8; says where."""


class TextTokenizer:
    """A Hugging Face tokenizer, asked only for what cannot be misread.

    A special token's name inside a question or a solution is encoded as the letters it is written with, wherever the
    tokenizer can do so, so that no text can imitate a turn or a tag.
    """

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, nothing added in front or behind.

        Raises:
            UnreadableTextError: The text holds half of a surrogate pair.
        """
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UnreadableTextError(f"character {error.start} is half of a surrogate pair") from None
        ids: list[int] = self.backend(text, add_special_tokens=False, split_special_tokens=True, verbose=False)[
            "input_ids"
        ]
        return ids

    def special(self, name: str) -> int:
        """The id of a special token.

        Raises:
            CheckpointError: The tokenizer has no such token.
        """
        found = self.find(name)
        if found is None:
            raise CheckpointError(f"the tokenizer has no token {name!r}, so it belongs to another model family")
        return found

    def find(self, name: str) -> int | None:
        """The id of a token as the vocabulary spells it, or ``None``."""
        found = self.backend.convert_tokens_to_ids(name)
        return int(found) if found is not None and self.backend.convert_ids_to_tokens(found) == name else None

    @property
    def start(self) -> list[int]:
        """What the tokenizer puts in front of a text: a beginning-of-sequence token, or nothing."""
        ids: list[int] = self.backend("", verbose=False)["input_ids"]
        return ids[:1]
