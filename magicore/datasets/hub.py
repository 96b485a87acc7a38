"""Data sets of the Hugging Face Hub: ``hf:NAME[#REVISION]:CONFIG:SPLIT`` or ``hf:NAME[#REVISION]:SPLIT``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from magicore.datasets.readers import plain
from magicore.errors import InputError, MissingExtraError
from magicore.store.json_lines import Record

_COLON = re.compile(r":(?![^\[]*\])")
"""A colon outside brackets: a split may be sliced, ``test[:10]``."""


class HubName(NamedTuple):
    """The parts of ``hf:NAME[#REVISION][:CONFIG]:SPLIT``."""

    name: str
    config: str | None
    split: str
    revision: str | None


def parse_hub_name(source: str) -> HubName:
    """Take the name apart.

    Raises:
        InputError: It has not two or three parts after ``hf:``.
    """
    parts = _COLON.split(source.removeprefix("hf:"))
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"{source}: write hf:NAME:CONFIG:SPLIT or hf:NAME:SPLIT, such as hf:openai/gsm8k:main:test")
    name, _, revision = parts[0].partition("#")
    config = parts[1] if len(parts) > 2 else None
    return HubName(name, config, parts[-1], revision or None)


def hub_records(source: str) -> Iterator[Record]:
    """The rows of a split, downloaded once and then read from the local cache. Class labels are given by name.

    Raises:
        InputError: There is no such data set, configuration or split, or the Hub cannot be reached.
        MissingExtraError: The ``datasets`` package is not installed.
    """
    wanted = parse_hub_name(source)
    try:
        import datasets
    except ImportError:
        raise MissingExtraError(
            f"{source}: reading the Hub needs the datasets package; install it with: pip install 'magicore[data]'"
        ) from None
    try:
        table = datasets.load_dataset(wanted.name, wanted.config, split=wanted.split, revision=wanted.revision)
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{source}: cannot be read from the Hub ({first})") from None
    labels = {key: kind for key, kind in table.features.items() if isinstance(kind, datasets.ClassLabel)}
    for number, row in enumerate(table, 1):
        named = {key: _named(value, labels.get(key)) for key, value in row.items()}
        yield Record(f"{source}, row {number}", named)


def _named(value: Any, label: Any) -> Any:
    if label is None or value is None or value < 0:
        return plain(value) if label is None else None
    return label.int2str(value)
