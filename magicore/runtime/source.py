"""Where a run's problems come from: something that can be read again from the start, item by item."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from magicore.datasets import problem_row
from magicore.types import Problem


@dataclass(frozen=True, kw_only=True)
class Survey:
    """One reading of a whole source: every problem was valid.

    Attributes:
        n: Problems.
        characters: Characters of all questions together.
        digest: Changes whenever any problem does.
    """

    n: int
    characters: int
    digest: str


class ProblemSource:
    """Problems that are read anew each time they are iterated over, so that a large file never lives in memory."""

    def __init__(self, read: Callable[[], Iterable[Problem]]) -> None:
        self._read = read

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> ProblemSource:
        """Problems that are in memory already."""
        return cls(lambda: problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._read())

    def survey(self) -> Survey:
        """Read everything once.

        Raises:
            InputError: a problem cannot be read; nothing was spent yet.
        """
        n = characters = 0
        digest = hashlib.sha256()
        for problem in self:
            n += 1
            characters += len(problem.question)
            digest.update(json.dumps(problem_row(problem), sort_keys=True, default=str).encode())
        return Survey(n=n, characters=characters, digest=digest.hexdigest())
