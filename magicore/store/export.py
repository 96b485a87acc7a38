"""A run's store and files as JSON Lines or Parquet."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from magicore.errors import InputError, MissingExtraError, StoreError
from magicore.store.json_lines import read_json_lines, write_json_lines
from magicore.store.run_store import RunStore

STORE = "store.sqlite"
FINISHED = ("results", "chains")
_BATCH = 1000


def export_run(directory: Path, out: Path, form: Literal["jsonl", "parquet"]) -> list[tuple[Path, int]]:
    """Write ``completions`` and ``scores`` from the store, ``results`` and ``chains`` from a finished run's files.

    Nested values are JSON texts in Parquet, so that every run's files have the same columns.

    Returns:
        Each file and its number of rows.

    Raises:
        InputError: the directory holds no run.
        MissingExtraError: Parquet needs the extra ``data``.
        StoreError: a file cannot be read or written.
    """
    if not (directory / STORE).is_file():
        raise InputError(f"{directory} holds no run: there is no {STORE}")
    if form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("Parquet needs pyarrow: pip install 'magicore[data]'")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{out} cannot be made: {error.strerror}") from error
    write = _write_parquet if form == "parquet" else write_json_lines
    store = RunStore(directory / STORE)
    try:
        written = [(path, write(path, rows)) for path, rows in _tables(store, directory, out, form)]
    finally:
        store.close()
    return written


def _tables(
    store: RunStore, directory: Path, out: Path, form: str
) -> Iterator[tuple[Path, Iterable[Mapping[str, Any]]]]:
    yield out / f"completions.{form}", _completions(store)
    yield out / f"scores.{form}", ({"key": key, "score": json.loads(value)} for key, value in store.score_rows())
    for name in FINISHED:
        path = directory / f"{name}.jsonl"
        if path.is_file() and path.stat().st_size:
            yield out / f"{name}.{form}", (row for _, row in read_json_lines(path))


def _completions(store: RunStore) -> Iterator[Mapping[str, Any]]:
    for row in store.completion_rows():
        found = row.completion
        yield {
            "key": row.key,
            "model": row.model,
            "problem": row.problem,
            "role": row.role,
            "index": found.index,
            "text": found.text,
            "thinking": found.thinking,
            "stop": found.stop,
            "tokens": found.tokens,
            "prompt_tokens": found.usage.prompt,
            "completion_tokens": found.usage.completion,
            "reasoning_tokens": found.usage.reasoning,
            "calls": found.usage.calls,
            "token_logprobs": found.token_logprobs,
            "seed": found.seed,
        }


def _write_parquet(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    fresh = path.with_name(f".{path.name}.tmp")
    writer: Any = None
    try:
        waiting = iter(rows)
        while part := list(islice(waiting, _BATCH)):
            table = pa.Table.from_pylist([_flat(row) for row in part], schema=None if writer is None else writer.schema)
            if writer is None:
                writer = pq.ParquetWriter(fresh, table.schema)
            writer.write_table(table)
            count += len(part)
        if writer is not None:
            writer.close()
            fresh.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        fresh.unlink(missing_ok=True)
    return count


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Nested values become JSON texts."""
    scalar = (bool, int, float, type(None))
    return {
        name: _text(value) if isinstance(value, str) else value if isinstance(value, scalar) else json.dumps(value)
        for name, value in row.items()
    }


def _text(value: str) -> str:
    """Parquet holds UTF-8, which has no lone surrogates: they become their escapes."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
