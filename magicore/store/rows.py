"""Fields of a JSON object, read with their types checked and errors that name file, line and field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from magicore.errors import InputError
from magicore.store.json_lines import json_type

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """An object and where it stands. Every method raises :class:`InputError` for a value of another type."""

    values: Mapping[str, Any]
    where: str

    def text(self, name: str) -> str:
        """A required text."""
        value = self.values.get(name)
        if isinstance(value, str):
            return value
        raise self.wrong(name, "a text")

    def optional_text(self, name: str) -> str | None:
        """A text, or ``None`` where it is null or absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def one_of(self, name: str, allowed: Sequence[T]) -> T:
        """A required value out of ``allowed``."""
        value = self.values.get(name)
        for candidate in allowed:
            if candidate == value and type(candidate) is type(value):
                return candidate
        raise InputError(f"{self.where}: `{name}` is one of {', '.join(map(str, allowed))}, not {value!r}")

    def integer(self, name: str) -> int:
        """A required whole number, 0 or more."""
        value = self.values.get(name)
        if type(value) is int and value >= 0:
            return value
        return self._required(name, self.optional_integer(name), "a whole number")

    def optional_integer(self, name: str) -> int | None:
        """A whole number, 0 or more, or ``None``."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "a whole number, 0 or more")
        return value

    def optional_number(self, name: str) -> float | None:
        """A finite number, or ``None``."""
        value = self.values.get(name)
        if value is None:
            return None
        if not _is_number(value):
            raise self.wrong(name, "a finite number")
        return float(value)

    def flag(self, name: str) -> bool:
        """A required true or false."""
        return self._required(name, self.optional_flag(name), "true or false")

    def optional_flag(self, name: str) -> bool | None:
        """True, false, or ``None``."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def optional_numbers(self, name: str) -> tuple[float, ...] | None:
        """A list of finite numbers, or ``None``."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(map(_is_number, value)):
            raise self.wrong(name, "a list of finite numbers")
        return tuple(map(float, value))

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more; empty where it is null or absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(item) is int and item >= 0 for item in value):
            raise self.wrong(name, "a list of whole numbers")
        return tuple(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where it is null or absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(name, "a list of texts")
        return tuple(value)

    def objects(self, name: str) -> list[Row]:
        """A list of objects; empty where it is null or absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(name, "a list of objects")
        return [Row(item, f"{self.where}, `{name}`[{index}]") for index, item in enumerate(value)]

    def optional_object(self, name: str) -> Row | None:
        """An object, or ``None``."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Row(value, f"{self.where}, `{name}`")

    def beyond(self, known: frozenset[str]) -> dict[str, Any]:
        """The values whose keys are not among ``known``."""
        return {key: value for key, value in self.values.items() if key not in known}

    def wrong(self, name: str, expected: str) -> InputError:
        """The sentence for a value of another type than expected."""
        value = self.values.get(name)
        if name not in self.values:
            return InputError(f"{self.where}: `{name}` is missing; it is {expected}")
        kind = json_type(value)
        shown = f" ({value!r})" if isinstance(value, bool | int | float) else ""
        return InputError(f"{self.where}: `{name}` is {expected}, this is {kind}{shown}")

    def _required(self, name: str, value: T | None, expected: str) -> T:
        if value is None:
            raise self.wrong(name, expected)
        return value


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False
