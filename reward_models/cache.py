"""The score cache: a protocol, and implementations in memory and in an SQLite file.

A cache maps a key, which names everything a score depends on (see :func:`score_key`), to a JSON text. What the text
holds is the reward model's affair.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from reward_models.errors import RewardModelError

_CHUNK = 500  # bound variables a query; SQLite's oldest limit is 999


@runtime_checkable
class ScoreCache(Protocol):
    """Where scores are kept. Implementations are safe to use from several threads."""

    def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """The JSON text of each key, in order; ``None`` where there is none."""
        ...

    def put_many(self, items: Mapping[str, str]) -> None:
        """Keep each JSON text under its key; a key that is there already is overwritten."""
        ...


def score_key(**parts: object) -> str:
    """A key over named JSON values: model fingerprint, format version, dtype, windowing, token ids ...

    The same values in any order of names give the same key; any other value gives another.
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class MemoryScoreCache:
    """Scores kept for the life of the process, without a bound."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get_many(self, keys: Sequence[str]) -> list[str | None]:
        with self._lock:
            return [self._values.get(key) for key in keys]

    def put_many(self, items: Mapping[str, str]) -> None:
        with self._lock:
            self._values.update(items)


class SqliteScoreCache:
    """Scores kept in an SQLite file, shared by threads and by processes; a committed score survives a crash.

    Raises:
        RewardModelError: The file cannot be opened, or is something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=60.0, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise RewardModelError(f"score cache {self.path}: cannot be opened ({error})") from error
        try:
            with self._connection:
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
                )
        except sqlite3.Error as error:
            self._connection.close()
            raise RewardModelError(f"score cache {self.path}: not a usable SQLite file ({error})") from error

    def __len__(self) -> int:
        with self._lock:
            count: int = self._connection.execute("SELECT count(*) FROM scores").fetchone()[0]
        return count

    def get_many(self, keys: Sequence[str]) -> list[str | None]:
        wanted = list(dict.fromkeys(keys))
        found: dict[str, str] = {}
        with self._lock:
            for start in range(0, len(wanted), _CHUNK):
                part = wanted[start : start + _CHUNK]
                marks = ",".join("?" * len(part))
                found.update(self._connection.execute(f"SELECT key, value FROM scores WHERE key IN ({marks})", part))
        return [found.get(key) for key in keys]

    def put_many(self, items: Mapping[str, str]) -> None:
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", items.items())

    def close(self) -> None:
        """Close the file; the cache cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
