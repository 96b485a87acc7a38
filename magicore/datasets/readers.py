"""Objects out of JSON Lines, JSON, CSV and Parquet files, one at a time."""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from magicore.errors import InputError, MissingExtraError
from magicore.store.json_lines import Record, decode, json_type, parse_json, read_bytes, read_json_lines, unreadable

_DELIMITERS: Final = ",;\t"
_BATCH: Final = 1024


def file_records(path: Path) -> Iterator[Record]:
    """The objects of a file; its name says the format: .jsonl, .ndjson, .json, .csv, .tsv, .parquet.

    Raises:
        InputError: The format is unknown, the file cannot be read, or a part of it is malformed (says which).
        MissingExtraError: A Parquet file, and pyarrow is not installed.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: cannot tell the format from the name; it ends in one of {', '.join(_READERS)}"
            if path.exists()
            else f"{path}: no such file"
        )
    return reader(path)


def plain(value: Any) -> Any:
    """A value as JSON holds it: dates in ISO form, bytes as UTF-8, NaN as null, whatever else is no JSON by ``str``."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _json_records(path: Path) -> Iterator[Record]:
    """A list of objects, one object, or JSON Lines under the name .json."""
    text = decode(read_bytes(path).removeprefix(b"\xef\xbb\xbf"), str(path))
    if not text.strip():
        raise InputError(f"{path}: the file is empty; a JSON list of objects is expected")
    if text.lstrip().startswith("{") and "\n" in text.strip():
        first = text.lstrip().split("\n", 1)[0].strip()
        if first.endswith("}"):
            yield from read_json_lines(path)
            return
    value = parse_json(text, str(path))
    rows = [value] if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise InputError(f"{path}: a list of objects is expected, this is {json_type(rows)}")
    if not rows:
        raise InputError(f"{path}: the list is empty")
    for number, row in enumerate(rows, 1):
        where = f"{path}, item {number}"
        if not isinstance(row, dict):
            raise InputError(f"{where}: an object is expected, this is {json_type(row)}")
        yield Record(where, row)


def _csv_records(path: Path) -> Iterator[Record]:
    text = decode(read_bytes(path).removeprefix(b"\xef\xbb\xbf"), str(path))
    if not text.strip():
        raise InputError(f"{path}: the file is empty; a line of column names is expected first")
    header_line = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=header_line.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(line for line in lines if line)]
        if len(set(header)) != len(header):
            raise InputError(f"{path}: the same column name twice in the first line")
        found = False
        for cells in lines:
            if not cells:
                continue
            where = f"{path}, line {lines.line_num}"
            if len(cells) != len(header):
                raise InputError(f"{where}: {len(cells)} cells, and {len(header)} columns are named in the first line")
            found = True
            yield Record(where, {name: cell if cell != "" else None for name, cell in zip(header, cells, strict=True)})
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: not CSV ({error})") from None
    if not found:
        raise InputError(f"{path}: column names and no line after them")


def _parquet_records(path: Path) -> Iterator[Record]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            f"{path}: Parquet needs pyarrow; install it with: pip install 'magicore[data]'"
        ) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(f"{path}, row {number}", {str(key): plain(value) for key, value in row.items()})
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
    except OSError as error:
        raise unreadable(path, error) from None
    if number == 0:
        raise InputError(f"{path}: the table has no row")


_READERS: Final[dict[str, Callable[[Path], Iterator[Record]]]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": _json_records,
    ".csv": _csv_records,
    ".tsv": _csv_records,
    ".parquet": _parquet_records,
}
