"""Where a run's problems come from: something that can be read again from the start, item by item."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magicore.datasets import iter_problems, problem_row
from magicore.datasets.shards import Shard
from magicore.errors import InputError
from magicore.store.origin import Origin
from magicore.types import Problem


@dataclass(frozen=True, kw_only=True)
class Survey:
    """One reading of a whole source, in which every problem was valid.

    Attributes:
        n: Problems of the shard, or all.
        total: Problems of all shards.
        characters: Of the questions of the ``n`` problems.
    """

    n: int
    total: int
    characters: int


class ProblemSource:
    """Problems that are read anew each time they are iterated over, so that a large file never lives in memory."""

    def __init__(
        self,
        read: Callable[[], Iterable[Problem]],
        fingerprint: Callable[[], str],
        shard: Shard | None = None,
        *,
        origin: Callable[[], Origin],
    ) -> None:
        self._read = read
        self._fingerprint = fingerprint
        self._shard = shard
        self._origin = origin

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> ProblemSource:
        """Problems that are in memory already."""

        def fingerprint() -> str:
            digest = hashlib.sha256()
            for problem in problems:
                digest.update(json.dumps(problem_row(problem), sort_keys=True, default=str).encode())
            return digest.hexdigest()

        return cls(lambda: problems, fingerprint, origin=lambda: Origin.of(problems))

    @classmethod
    def named(cls, source: str, chosen: Mapping[str, Any]) -> ProblemSource:
        """A file or data set; ``chosen`` are the further arguments of :func:`magicore.datasets.iter_problems`."""

        def fingerprint() -> str:
            digest = hashlib.sha256(f"{source}\n{json.dumps(chosen, sort_keys=True, default=str)}".encode())
            path = Path(source)
            if path.is_file():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
            return digest.hexdigest()

        return cls(lambda: iter_problems(source, **chosen), fingerprint, origin=lambda: Origin(data=source))

    def dealt(self, shard: Shard | None) -> ProblemSource:
        """The problems of one shard; all of them for ``None``."""
        return ProblemSource(self._read, self._fingerprint, shard, origin=self._origin)

    def origin(self) -> Origin:
        """Where the problems came from, of whichever shard."""
        return self._origin()

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._read()) if self._shard is None else self._shard.of(self._read())

    def fingerprint(self) -> str:
        """Changes whenever any problem does, of whichever shard; a file is told by its bytes, without reading problems
        from it."""
        return self._fingerprint()

    def survey(self) -> Survey:
        """Read everything once.

        Raises:
            InputError: a problem cannot be read, or there are fewer problems than shards; nothing was spent yet.
        """
        total = characters = n = 0
        shard = self._shard or Shard(index=1, count=1)
        for total, problem in enumerate(self._read(), 1):
            if (total - shard.index) % shard.count == 0:
                n += 1
                characters += len(problem.question)
        if self._shard is not None and total < shard.count:
            raise InputError(f"{total} problems cannot be dealt to {shard.count} shards; ask for {total} at the most")
        return Survey(n=n, total=total, characters=characters)
