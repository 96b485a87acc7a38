"""The run store: one SQLite file that holds everything a run paid for, under content keys.

Completions and scores are written, and committed, before anyone uses them; so a run that dies continues where it
stopped and never pays twice. The store also serves as :class:`reward_models.cache.ScoreCache`.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from magicore.errors import StoreError
from magicore.types import Completion, Usage

SCHEMA_VERSION = 1
_CHUNK = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, problem TEXT NOT NULL, role TEXT NOT NULL, value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS notes (key TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (key, note));
CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class RunStore:
    """The store of one run, in ``path`` or, with ``path=None``, in memory.

    Raises:
        StoreError: the file cannot be opened, is damaged, or was written by a newer version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
            found = self._get_meta("schema_version")
        except sqlite3.Error as error:
            raise StoreError(f"the run store {path} cannot be opened: {error}") from error
        if found is None:
            self._set_meta("schema_version", str(SCHEMA_VERSION))
        elif int(found) > SCHEMA_VERSION:
            raise StoreError(f"the run store {path} was written by a newer magicore (schema {found}); upgrade magicore")

    def get_completions(self, keys: Sequence[str]) -> list[Completion | None]:
        """The stored completions, in order of ``keys``; ``None`` for what is not there."""
        found = self._select("completions", keys)
        return [None if (value := found.get(key)) is None else completion_from_json(value) for key in keys]

    def put_completions(self, rows: Sequence[tuple[str, str, str, str, Completion]]) -> None:
        """Store ``(key, model, problem, role, completion)`` rows; what is already there stays as it is."""
        values = [(key, model, problem, role, completion_to_json(c)) for key, model, problem, role, c in rows]
        self._write("INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?, ?)", values)

    def get_notes(self, key: str) -> list[str]:
        """What the user should know of a conversation's samples, in the order noted."""
        with self._lock:
            rows = self._db.execute("SELECT note FROM notes WHERE key = ? ORDER BY rowid", (key,)).fetchall()
        return [str(row[0]) for row in rows]

    def put_notes(self, key: str, notes: Sequence[str]) -> None:
        """Note something about a conversation's samples, each text once."""
        self._write("INSERT OR IGNORE INTO notes VALUES (?, ?)", [(key, note) for note in notes])

    def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """Stored scores (JSON texts), in order of ``keys``."""
        found = self._select("scores", keys)
        return [found.get(key) for key in keys]

    def put_many(self, items: Mapping[str, str]) -> None:
        """Store scores; what is already there stays as it is."""
        self._write("INSERT OR IGNORE INTO scores VALUES (?, ?)", list(items.items()))

    def get_state(self, name: str) -> Any:
        """A JSON value that the run noted under ``name``, or ``None``."""
        value = self._get_meta(f"state:{name}")
        return None if value is None else json.loads(value)

    def put_state(self, name: str, value: Any) -> None:
        """Note a JSON value under ``name``."""
        self._set_meta(f"state:{name}", json.dumps(value))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _select(self, table: str, keys: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._lock:
            for start in range(0, len(keys), _CHUNK):
                chunk = list(keys[start : start + _CHUNK])
                marks = ",".join("?" * len(chunk))
                found.update(self._db.execute(f"SELECT key, value FROM {table} WHERE key IN ({marks})", chunk))
        return found

    def _write(self, statement: str, rows: Sequence[tuple[str, ...]]) -> None:
        if not rows:
            return
        try:
            with self._lock:
                self._db.execute("BEGIN")
                self._db.executemany(statement, rows)
                self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(f"the run store {self.path} cannot be written: {error}") from error

    def _get_meta(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def completion_to_json(completion: Completion) -> str:
    """A completion as JSON; ASCII only, so that lone surrogates survive."""
    usage = completion.usage
    return json.dumps(
        {
            "index": completion.index,
            "text": completion.text,
            "thinking": completion.thinking,
            "stop": completion.stop,
            "tokens": completion.tokens,
            "token_logprobs": completion.token_logprobs,
            "top_logprobs": completion.top_logprobs,
            "usage": [usage.prompt, usage.completion, usage.reasoning, usage.calls, usage.unmetered],
        },
        separators=(",", ":"),
    )


def completion_from_json(text: str) -> Completion:
    """The inverse of :func:`completion_to_json`."""
    row = json.loads(text)
    prompt, generated, reasoning, calls, unmetered = row["usage"]
    logprobs, top = row["token_logprobs"], row["top_logprobs"]
    return Completion(
        index=row["index"],
        text=row["text"],
        thinking=row["thinking"],
        stop=row["stop"],
        tokens=row["tokens"],
        token_logprobs=None if logprobs is None else tuple(logprobs),
        top_logprobs=None if top is None else tuple(tuple((token, value) for token, value in row) for row in top),
        usage=Usage(prompt=prompt, completion=generated, reasoning=reasoning, calls=calls, unmetered=unmetered),
    )
