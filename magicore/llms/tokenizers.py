"""The tokenizers of models that answer elsewhere, for counting their tokens here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from magicore.errors import InputError, MissingExtraError
from magicore.llms.registry import full_name


def token_counter(name: str) -> Callable[[str], int]:
    """Counts the tokens of a text, without special ones.

    Args:
        name: A folder with a ``tokenizer.json``, such a file, or a Hub id.

    Raises:
        MissingExtraError: The package ``tokenizers`` is not installed.
        InputError: There is no such tokenizer.
    """
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError("counting tokens needs tokenizers: pip install 'magicore[local]'") from error
    path = Path(name)
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        made = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # the package raises a bare Exception whatever went wrong
        raise InputError(f"the tokenizer {name} cannot be loaded: {str(error).splitlines()[0][:200]}") from error
    return lambda text: len(made.encode(text, add_special_tokens=False).ids) if text else 0


def tokenizer_names(models: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Full model names and the tokenizers that ``[models.NICK]`` tables give them."""
    return {full_name(nick, models): str(table["tokenizer"]) for nick, table in models.items() if "tokenizer" in table}
