"""Keys stay out of what is written: a configuration that holds one is refused before it is saved anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from magicore.errors import InputError
from reward_models.names import holds_secret, is_variable

_NAMES = frozenset(
    {"accesstoken", "apikey", "apitoken", "authorization", "authtoken", "bearer", "key", "password", "secret", "token"}
)
"""What settings that hold a key are called, in lower case and without ``-`` and ``_``."""


def refuse_keys(settings: Mapping[str, Any]) -> None:
    """Look for keys among settings, in tables within tables and in addresses; the message never shows one.

    Raises:
        InputError: there is one; says where, and to name its variable instead.
    """
    for where in _found(settings, ""):
        raise InputError(
            f"{where} holds a key or password, which would be saved with the results; name the environment variable "
            "that has it by api_key_env, in the model's table"
        )


def _found(value: Any, where: str) -> Iterator[str]:
    """The places of all keys in a value."""
    if isinstance(value, str):
        if holds_secret(value):
            yield f"the address in {where}"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            place = "a setting" if holds_secret(str(name)) else f"{where}.{name}" if where else str(name)
            if holds_secret(str(name)) or (isinstance(inner, str) and inner and _is_key(str(name), inner)):
                yield place
            yield from _found(inner, place)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _found(inner, where)


def _is_key(name: str, value: str) -> bool:
    if name == "api_key_env":
        return not is_variable(value)
    plain = name.lower().replace("-", "").replace("_", "")
    return plain in _NAMES or (plain.startswith("x") and plain[1:] in _NAMES)
