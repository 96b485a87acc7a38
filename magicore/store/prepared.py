"""prepared.jsonl: what the first stage of a calibrated run leaves for its statistics, one problem a line.

``{id, combined, failure}``: S = o + s of each initial chain in order, null for a chain without; ``failure`` says why a
problem could not be prepared, null if it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from magicore.errors import InputError
from magicore.store.json_lines import read_json_lines, write_json_lines
from magicore.store.rows import Row


@dataclass(frozen=True, kw_only=True)
class PreparedRow:
    """One problem after its first stage.

    Attributes:
        id: The problem's id.
        combined: S of each initial chain, ``None`` where one has not both scores.
        failure: Why it could not be prepared.
    """

    id: str
    combined: tuple[float | None, ...]
    failure: str | None = None


def write_prepared(path: Path, rows: Iterable[PreparedRow]) -> int:
    """Write the rows; returns how many.

    Raises:
        StoreError: the file cannot be written.
    """
    return write_json_lines(
        path, ({"id": row.id, "combined": list(row.combined), "failure": row.failure} for row in rows)
    )


def read_prepared(path: Path) -> Iterator[PreparedRow]:
    """The rows of a file, one after the other; numbers are equal to the last bit to those written.

    Raises:
        InputError: the file or a line cannot be read.
    """
    for where, values in read_json_lines(path):
        row = Row(values, where)
        yield PreparedRow(
            id=row.text("id"), combined=_numbers(values.get("combined"), where), failure=row.optional_text("failure")
        )


def _numbers(values: object, where: str) -> tuple[float | None, ...]:
    if not isinstance(values, list) or not all(value is None or _is_number(value) for value in values):
        raise InputError(f"{where}: `combined` is a list of numbers and nulls")
    return tuple(None if value is None else float(value) for value in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
