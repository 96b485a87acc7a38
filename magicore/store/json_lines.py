"""JSON Lines, read with errors that name the line and written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, NoReturn

from magicore.errors import InputError, StoreError

_BOM = b"\xef\xbb\xbf"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Record(NamedTuple):
    """One object of a file and where it stands there, for error messages."""

    where: str
    row: dict[str, Any]


def read_bytes(path: Path) -> bytes:
    """The whole file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def read_json_lines(path: Path) -> Iterator[Record]:
    """The objects of a file, one a line; blank lines are skipped, a byte order mark is too.

    Raises:
        InputError: The file cannot be read or has no object, or a line is not UTF-8, not JSON or not an object.
    """
    found = False
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                where = f"{path}, line {number}"
                text = decode(line.removeprefix(_BOM) if number == 1 else line, where)
                if not text.strip():
                    continue
                found = True
                yield Record(where, json_object(text, where))
    except OSError as error:
        raise unreadable(path, error) from None
    if not found:
        raise InputError(f"{path}: the file is empty; one JSON object a line is expected")


def unreadable(path: Path, error: OSError) -> InputError:
    """The sentence for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{path}: is a folder; name a file in it")
    return InputError(f"{path}: cannot be read ({error.strerror or error})")


def decode(data: bytes, where: str) -> str:
    """UTF-8 to text.

    Raises:
        InputError: It is not UTF-8; says which byte and how to convert.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        name = "UTF-16" if data.startswith(_UTF16) else "another encoding"
        raise InputError(
            f"{where}: not UTF-8 (byte 0x{data[error.start]:02x} at position {error.start}; perhaps {name}); "
            "save the file as UTF-8, for example with `iconv -t UTF-8`"
        ) from None


def parse_json(text: str, where: str) -> Any:
    """One JSON value. NaN and Infinity, which JSON does not have, are refused.

    Raises:
        InputError: It is not JSON.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise InputError(f"{where}: JSON nested too deeply to be read") from None
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None


def json_object(text: str, where: str) -> dict[str, Any]:
    """One JSON object.

    Raises:
        InputError: It is not JSON, or JSON of another type.
    """
    value = parse_json(text, where)
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON object is expected, this is {json_type(value)}")
    return value


def json_type(value: object) -> str:
    """What a JSON reader would call the value's type, with its article."""
    names: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        (str, "a text"),
        ((int, float), "a number"),
        (list, "a list"),
        (Mapping, "an object"),
    )
    return "null" if value is None else next((name for kind, name in names if isinstance(value, kind)), "no JSON value")


def json_line(row: Mapping[str, Any]) -> bytes:
    """One line: UTF-8, keys in the order given, floats by ``repr``. A lone surrogate is written as its JSON escape.

    Raises:
        ValueError: A value is NaN or infinite, which JSON cannot hold.
        TypeError: A value is of a type that JSON cannot hold.
    """
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace") + b"\n"


class JsonLinesWriter:
    """Writes a file row by row beside its place, and moves it there when it is whole.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(path)
        self._fresh = self._path.with_name(f".{self._path.name[:200]}.{token_hex(4)}.tmp")
        try:
            self._file = self._fresh.open("xb")
        except OSError as error:
            raise self._error(error) from None

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        try:
            self._file.write(json_line(row))
        except OSError as error:
            raise self._error(error) from None

    def finish(self) -> None:
        """Put the file in its place."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._fresh.replace(self._path)
        except OSError as error:
            raise self._error(error) from None

    def abandon(self) -> None:
        """Leave no trace."""
        with suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()
        self._fresh.unlink(missing_ok=True)

    def _error(self, error: OSError) -> StoreError:
        return unwritable(self._path, error)


def remains(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """What writers of these files left behind in a folder when their process died."""
    for name in names:
        yield from folder.glob(f".{name}.*.tmp")


def unwritable(path: Path, error: OSError) -> StoreError:
    """The sentence for a file that cannot be written."""
    remedy = "; make room and run the same command again" if error.errno in _NO_ROOM else ""
    return StoreError(f"{path}: cannot be written ({error.strerror or error}){remedy}")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write the rows to ``path``, replacing it only when all are written; returns how many.

    Raises:
        StoreError: The file cannot be written; the old one, if any, is as it was.
    """
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for row in rows:
            count += 1
            yield json_line(row)

    write_whole(path, lines())
    return count


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write the parts to a new file beside ``path`` and put it in its place; nothing half-written is left behind.

    Raises:
        StoreError: The file cannot be written.
    """
    path = Path(path)
    fresh = path.with_name(f".{path.name[:200]}.{token_hex(4)}.tmp")
    try:
        with fresh.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        fresh.unlink(missing_ok=True)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value; write null for a missing number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
