"""The files that commands exchange: written whole or not at all, read with errors that name the line.

One JSON object a line, UTF-8, keys in the order of the format, missing values null, floats as Python's ``repr`` gives
them: equal values make equal bytes.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from magicore.datasets.load import load_problems
from magicore.datasets.problems import problem_row
from magicore.errors import InputError
from magicore.store.chain_rows import CHAIN_KEYS, ChainRecord, chain_row, read_chain_row, result_chain_records
from magicore.store.json_lines import (
    decode,
    json_object,
    read_bytes,
    read_json_lines,
    write_json_lines,
    write_whole,
)
from magicore.store.result_rows import RESULT_KEYS, ResultRecord, read_result_row, result_row
from magicore.store.solutions import GivenSolution, read_solutions
from magicore.types import Problem, Result, ScoredChain

__all__ = [
    "CHAIN_KEYS",
    "RESULT_KEYS",
    "SUMMARY_KEYS",
    "ChainRecord",
    "GivenSolution",
    "ResultRecord",
    "chain_row",
    "read_chain_records",
    "read_chains",
    "read_problems",
    "read_results",
    "read_solutions",
    "read_summary",
    "read_timings",
    "result_row",
    "write_chain_records",
    "write_chains",
    "write_problems",
    "write_results",
    "write_summary",
    "write_timings",
]

SUMMARY_KEYS: Final = (
    "n",
    "graded",
    "correct",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "easy",
    "hard",
    "abstained",
    "failed",
    "usage",
    "calls",
    "wall_s",
    "method",
    "model",
    "orm",
    "prm",
    "k",
    "seed",
    "version",
)


def write_problems(path: Path, problems: Iterable[Problem]) -> int:
    """Write a problems file; unknown keys that came in go out again. Returns how many.

    Raises:
        StoreError: It cannot be written.
    """
    return write_json_lines(path, map(problem_row, problems))


def read_problems(path: Path) -> list[Problem]:
    """Read a problems file; see :func:`magicore.datasets.load_problems`."""
    return load_problems(str(path))


def write_chains(path: Path, results: Iterable[Result]) -> int:
    """Write every chain of every result with its scores and the rounds after which it was kept. Returns how many.

    Raises:
        StoreError: It cannot be written.
    """
    return write_chain_records(path, (record for result in results for record in result_chain_records(result)))


def write_chain_records(path: Path, records: Iterable[ChainRecord]) -> int:
    """Write chains that were read before or made elsewhere, their unknown keys last. Returns how many.

    Raises:
        StoreError: It cannot be written.
    """
    return write_json_lines(path, (record.row for record in records))


def read_chain_records(path: Path) -> list[ChainRecord]:
    """Read chains.jsonl with what is not part of a chain: the rounds it was kept in and unknown keys.

    Raises:
        InputError: The file or a line cannot be read, or a chain is there twice.
    """
    records: dict[str, ChainRecord] = {}
    with _all_staying():
        for where, row in read_json_lines(Path(path)):
            record = read_chain_row(row, where)
            name = record.scored.chain.id
            if name in records:
                raise InputError(f"{where}: the chain {name!r} is there twice")
            records[name] = record
    return list(records.values())


def read_chains(path: Path) -> list[ScoredChain]:
    """Read chains.jsonl; what was written comes back equal.

    Raises:
        InputError: The file or a line cannot be read, or a chain is there twice.
    """
    return [record.scored for record in read_chain_records(path)]


def write_results(path: Path, results: Iterable[Result]) -> int:
    """Write results.jsonl. Returns how many.

    Raises:
        StoreError: It cannot be written.
    """
    return write_json_lines(path, map(result_row, results))


def read_results(path: Path) -> list[ResultRecord]:
    """Read results.jsonl.

    Raises:
        InputError: The file or a line cannot be read, or a result is there twice.
    """
    records: dict[str, ResultRecord] = {}
    with _all_staying():
        for where, row in read_json_lines(Path(path)):
            record = read_result_row(row, where)
            if record.result.id in records:
                raise InputError(f"{where}: the result of {record.result.id!r} is there twice")
            records[record.result.id] = record
    return list(records.values())


@contextmanager
def _all_staying() -> Iterator[None]:
    """No search for garbage while many small objects are made that all stay: it takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write summary.json, keys in the order of the format and any others after them.

    Raises:
        StoreError: It cannot be written.
    """
    ordered = {key: summary[key] for key in SUMMARY_KEYS if key in summary} | dict(summary)
    text = json.dumps(ordered, ensure_ascii=False, allow_nan=False, indent=2)
    write_whole(path, [text.encode("utf-8", "backslashreplace"), b"\n"])


def read_summary(path: Path) -> dict[str, Any]:
    """Read summary.json.

    Raises:
        InputError: It cannot be read or is no JSON object.
    """
    path = Path(path)
    return json_object(decode(read_bytes(path), str(path)), str(path))


def write_timings(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write timings.jsonl: what may differ between two equal runs (times, retries, waits, cached tokens).

    Raises:
        StoreError: It cannot be written.
    """
    return write_json_lines(path, rows)


def read_timings(path: Path) -> list[dict[str, Any]]:
    """Read timings.jsonl.

    Raises:
        InputError: The file or a line cannot be read.
    """
    return [record.row for record in read_json_lines(Path(path))]
