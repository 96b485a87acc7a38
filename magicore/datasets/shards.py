"""Shards: a run's problems dealt out to several processes like cards, so that each has its share of every part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from magicore.errors import InputError

T = TypeVar("T")
_FORM = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One of ``count`` shards, counted from 1: of the problems in order it has every ``count``-th from ``index`` on.

    Which shard a problem is in depends on its place alone, so results that are dealt back in turn are in problem order.

    Raises:
        InputError: the index is not in 1..count.
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.index <= self.count:
            raise InputError(f"shards are counted from 1/{self.count} to {self.count}/{self.count}; {self} is none")

    @classmethod
    def read(cls, text: str) -> Shard:
        """A shard from ``i/n``.

        Raises:
            InputError: the text has another form, or no such shard exists.
        """
        found = _FORM.fullmatch(text.strip())
        if found is None or int(found[2]) < 1:
            raise InputError(f"a shard is I/N, such as 1/8 for the first of eight, not {text!r}")
        return cls(index=int(found[1]), count=int(found[2]))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, items: Iterable[T]) -> Iterator[T]:
        """The items that are this shard's, in order."""
        return islice(items, self.index - 1, None, self.count)

    def size(self, total: int) -> int:
        """How many of ``total`` items are this shard's."""
        return len(range(self.index - 1, total, self.count))


def dealt_back(shards: Sequence[Iterable[T]]) -> Iterator[T]:
    """The items of all shards, given in shard order, in the order they had before they were dealt out."""
    waiting = [iter(shard) for shard in shards]
    while waiting:
        for number, shard in enumerate(waiting):
            try:
                yield next(shard)
            except StopIteration:
                del waiting[number:]  # the first to run out ends the last, incomplete turn
                break
