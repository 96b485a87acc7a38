"""The run store: one SQLite file that holds everything a run paid for, under content keys.

Completions and scores are written, and committed, before anyone uses them; so a run that dies continues where it
stopped and never pays twice. Nothing stored is ever changed. The store also serves as
:class:`reward_models.cache.ScoreCache`.

A store may stand in front of a cache, another file of the same schema that many runs share: what the cache has is read
from it, what is new is written to both.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from magicore.errors import StoreError
from magicore.types import Completion, Usage

SCHEMA_VERSION = 1
_CHUNK = 500
_BUSY_S = 60.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, problem TEXT NOT NULL, role TEXT NOT NULL, value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS notes (key TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (key, note));
CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS failed_calls (
    model TEXT NOT NULL, problem TEXT NOT NULL, role TEXT NOT NULL, error TEXT NOT NULL, samples INTEGER NOT NULL,
    lost INTEGER NOT NULL, prompt INTEGER, completion INTEGER, waited_s REAL NOT NULL
);
"""
_PUT_FAILED_CALL = "INSERT INTO failed_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COPIED = {
    "completions": "key, model, problem, role, value",
    "notes": "key, note",
    "scores": "key, value",
}
"""Tables that another store's rows are added to, with their columns."""


class StoredCompletion(NamedTuple):
    """A row of the completions table."""

    key: str
    model: str
    problem: str
    role: str
    completion: Completion


class FailedCall(NamedTuple):
    """A call that brought nothing.

    ``lost`` counts replies that may have been charged for and never came; ``prompt`` and ``completion`` are the tokens
    that an unreadable reply states; ``waited_s`` is how long the retry was put off.
    """

    model: str
    problem: str
    role: str
    error: str
    samples: int
    lost: int
    prompt: int | None
    completion: int | None
    waited_s: float


class RunStore:
    """The store of one run, in ``path`` or, with ``path=None``, in memory.

    Args:
        path: The SQLite file; made if it is not there.
        cache: A store shared between runs.
        write_ahead: Whether SQLite may use a write-ahead log; not on a network file system, where it is unsafe.

    Raises:
        StoreError: the file cannot be opened, is damaged, or was written by a newer version.
    """

    def __init__(self, path: Path | None = None, *, cache: RunStore | None = None, write_ahead: bool = True) -> None:
        self.path = path
        self._cache = cache
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(
                path or ":memory:", timeout=_BUSY_S, check_same_thread=False, isolation_level=None
            )
            self._db.execute(f"PRAGMA journal_mode={'WAL' if write_ahead else 'DELETE'}")
            self._db.execute(f"PRAGMA synchronous={'NORMAL' if write_ahead else 'FULL'}")
            self._db.executescript(_SCHEMA)
            found = self._get_meta("schema_version")
        except sqlite3.Error as error:
            room = "make room and run the same command again; what was stored before is safe"
            remedy = room if _is_of_the_disk(error) else "if it is damaged, move it away and run again"
            raise StoreError(f"the store {path} cannot be opened ({error}); {remedy}") from error
        if found is None:
            self._set_meta("schema_version", str(SCHEMA_VERSION))
        elif not found.isdigit() or int(found) > SCHEMA_VERSION:
            self._db.close()
            raise StoreError(
                f"the store {path} was written by a newer magicore (schema {found}, this one reads {SCHEMA_VERSION}); "
                "upgrade magicore"
            )
        if self._get_meta("id") is None:  # tells stores apart when they are merged
            self._set_meta("id", token_hex(8))

    def get_completions(self, keys: Sequence[str]) -> list[Completion | None]:
        """The stored completions, in order of ``keys``; ``None`` for what is not there."""
        found = self._select("completions", keys)
        known = {key: completion_from_json(value) for key, value in found.items()}
        missing = [key for key in keys if key not in known]
        if self._cache is not None and missing:
            rows = [row for row in self._cache.completion_rows(missing) if row.key in set(missing)]
            self.put_completions(rows)
            known |= {row.key: row.completion for row in rows}
        return [known.get(key) for key in keys]

    def put_completions(self, rows: Sequence[StoredCompletion]) -> None:
        """Store completions; what is already there stays as it is."""
        values = [(row.key, row.model, row.problem, row.role, completion_to_json(row.completion)) for row in rows]
        self._write("INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?, ?)", values)
        if self._cache is not None:
            self._cache.put_completions(rows)

    def completion_rows(self, keys: Sequence[str] | None = None) -> Iterator[StoredCompletion]:
        """Stored completions with what is known of them: those of ``keys``, or all in the order they were stored."""
        columns = "SELECT key, model, problem, role, value FROM completions"
        if keys is None:
            rows = self._all(f"{columns} ORDER BY rowid")
        else:
            rows = [
                row for part in _chunks(keys) for row in self._all(f"{columns} WHERE key IN ({_marks(part)})", part)
            ]
        for key, model, problem, role, value in rows:
            yield StoredCompletion(key, model, problem, role, completion_from_json(value))

    def put_failed_call(self, call: FailedCall) -> None:
        """Note a call that brought nothing."""
        self._write(_PUT_FAILED_CALL, [call])

    def failed_calls(self) -> list[FailedCall]:
        """Every call that brought nothing, in the order they failed."""
        return [FailedCall(*row) for row in self._all("SELECT * FROM failed_calls ORDER BY rowid")]

    def lost_replies(self) -> int:
        """Replies that may have been charged for and never came."""
        return sum(call.lost for call in self.failed_calls())

    def get_notes(self) -> list[str]:
        """What the user should know of the endpoints that served the run, sorted."""
        return [str(note) for (note,) in self._all("SELECT note FROM notes ORDER BY key, note")]

    def put_notes(self, model: str, notes: Sequence[str]) -> None:
        """Note something about a model's endpoint, each text once."""
        self._write("INSERT OR IGNORE INTO notes VALUES (?, ?)", [(model, note) for note in notes])

    def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """Stored scores (JSON texts), in order of ``keys``."""
        found = self._select("scores", keys)
        missing = [key for key in keys if key not in found]
        if self._cache is not None and missing:
            cached = zip(missing, self._cache.get_many(missing), strict=True)
            fresh = {key: value for key, value in cached if value is not None}
            self.put_many(fresh)
            found |= fresh
        return [found.get(key) for key in keys]

    def put_many(self, items: Mapping[str, str]) -> None:
        """Store scores; what is already there stays as it is."""
        self._write("INSERT OR IGNORE INTO scores VALUES (?, ?)", list(items.items()))
        if self._cache is not None:
            self._cache.put_many(items)

    def score_rows(self) -> Iterator[tuple[str, str]]:
        """Every stored score: its key and its JSON text."""
        yield from self._all("SELECT key, value FROM scores ORDER BY rowid")

    def get_state(self, name: str) -> Any:
        """A JSON value that the run noted under ``name``, or ``None``."""
        value = self._get_meta(f"state:{name}")
        return None if value is None else json.loads(value)

    def put_state(self, name: str, value: Any) -> None:
        """Note a JSON value under ``name``."""
        self._set_meta(f"state:{name}", json.dumps(value))

    def completions_held(self) -> int:
        """How many completions there are."""
        ((found,),) = self._all("SELECT count(*) FROM completions")
        return int(found)

    def absorb(self, path: Path) -> int:
        """Take over everything that another run's store has and this one has not.

        A sample that both have was paid for twice: this store's stays, and the other's cost is noted as a call that
        brought nothing (``AlreadyDrawn``), so that no token is lost from the accounts. Absorbing a store again takes
        over what is new in it.

        Returns:
            How many samples both had.

        Raises:
            StoreError: the other cannot be read, or this one cannot be written.
        """
        with self._attached(path):
            return self._take_over()

    def note_absorbed(self, path: Path) -> None:
        """Note that everything another store has came from this one: absorbing it later takes over what is new in it.

        Raises:
            StoreError: the other cannot be read, or this one cannot be written.
        """
        with self._attached(path):
            self._note_seen()

    @contextmanager
    def _attached(self, path: Path) -> Iterator[None]:
        with self._lock:
            try:
                self._db.execute("ATTACH DATABASE ? AS other", [str(path)])
                try:
                    yield
                finally:
                    self._db.execute("DETACH DATABASE other")
            except sqlite3.Error as error:
                raise StoreError(f"the store {path} cannot be merged into {self.path}: {error}") from error

    def _seen_name(self) -> str:
        ((name,),) = self._db.execute("SELECT value FROM other.meta WHERE name = 'id'").fetchall()
        return f"absorbed:{name}"

    def _note_seen(self) -> None:
        ((last,),) = self._db.execute(
            "SELECT json_array((SELECT ifnull(max(rowid), 0) FROM other.completions),"
            " (SELECT ifnull(max(rowid), 0) FROM other.failed_calls))"
        ).fetchall()
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (self._seen_name(), last))

    def _take_over(self) -> int:
        seen: list[int] = json.loads(self._get_meta(self._seen_name()) or "[0, 0]")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            doubles = self._db.execute(
                "SELECT o.* FROM other.completions o JOIN main.completions m ON o.key = m.key"
                " WHERE o.rowid > ? ORDER BY o.rowid",
                seen[:1],
            ).fetchall()
            self._db.executemany(_PUT_FAILED_CALL, map(_double, doubles))
            for table, columns in _COPIED.items():
                self._db.execute(
                    f"INSERT OR IGNORE INTO main.{table} ({columns}) SELECT {columns} FROM other.{table} ORDER BY rowid"
                )
            columns = ", ".join(FailedCall._fields)
            self._db.execute(
                f"INSERT INTO main.failed_calls ({columns}) SELECT {columns} FROM other.failed_calls WHERE rowid > ?"
                " ORDER BY rowid",
                seen[1:],
            )
            self._db.execute(
                "INSERT OR IGNORE INTO main.meta SELECT * FROM other.meta WHERE name LIKE 'state:profile:%'"
            )
            self._note_seen()
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return len(doubles)

    def close(self) -> None:
        """Close the file, and the cache's."""
        with self._lock:
            self._db.close()
        if self._cache is not None:
            self._cache.close()

    def _select(self, table: str, keys: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in _chunks(keys):
            found.update(self._all(f"SELECT key, value FROM {table} WHERE key IN ({_marks(part)})", part))
        return found

    def _all(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the store {self.path} cannot be read: {error}") from error

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        try:
            with self._lock:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    self._db.executemany(statement, rows)
                    self._db.execute("COMMIT")
                except sqlite3.Error:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise StoreError(
                f"the store {self.path} cannot be written ({error}); what was stored before is safe: make room and run "
                "the same command again"
            ) from error

    def _get_meta(self, name: str) -> str | None:
        rows = self._all("SELECT value FROM meta WHERE name = ?", [name])
        return str(rows[0][0]) if rows else None

    def _set_meta(self, name: str, value: str) -> None:
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(name, value)])


def _double(row: tuple[str, str, str, str, str]) -> FailedCall:
    """The cost of a sample that another had already, as a call that brought nothing."""
    _, model, problem, role, value = row
    usage = completion_from_json(value).usage
    return FailedCall(model, problem, role, "AlreadyDrawn", 1, 0, usage.prompt, usage.completion, 0.0)


def _is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether the disk is full or fails, rather than the file being no store."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_FULL", "SQLITE_IOERR"))


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield list(keys[start : start + _CHUNK])


def _marks(keys: Sequence[str]) -> str:
    return ",".join("?" * len(keys))


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
            "usage": [usage.prompt, usage.completion, usage.reasoning, usage.calls, usage.unmetered, usage.cached],
        }
        | ({} if completion.seed is None else {"seed": completion.seed}),
        separators=(",", ":"),
    )


def completion_from_json(text: str) -> Completion:
    """The inverse of :func:`completion_to_json`."""
    row = json.loads(text)
    prompt, generated, reasoning, calls, unmetered, cached = row["usage"]
    logprobs, top = row["token_logprobs"], row["top_logprobs"]
    return Completion(
        index=row["index"],
        text=row["text"],
        thinking=row["thinking"],
        stop=row["stop"],
        tokens=row["tokens"],
        token_logprobs=None if logprobs is None else tuple(logprobs),
        top_logprobs=None if top is None else tuple(tuple((token, value) for token, value in row) for row in top),
        usage=Usage(
            prompt=prompt,
            completion=generated,
            reasoning=reasoning,
            calls=calls,
            unmetered=unmetered,
            cached=cached,
        ),
        seed=row.get("seed"),
    )
