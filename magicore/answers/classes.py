"""Answers grouped by equality: a partition that does not depend on the order of its input."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from magicore.answers import numeric
from magicore.answers.canonical import Key, canonical_keys
from magicore.answers.equivalence import close_numbers, same
from magicore.answers.extract import Options
from magicore.answers.kinds import Kind


def classes(answers: Sequence[str | None], kind: Kind, options: Options | None = None) -> list[int | None]:
    """The class of each answer, numbered in order of first appearance; None for a missing or blank answer.

    Two answers are in one class if they are `equivalent`, with one exception that a partition needs: an answer without
    a unit joins the one class with a unit that shows its number, and stands alone if there are several (a bare 5
    beside 5 cm and 5 m). Long decimals, which equal what they round to, join by the transitive closure.

    Args:
        answers: Answers to one problem, or to any number of problems of a kind.
        kind: How they are read.
        options: For "choice": the options, as for `extract`.

    Raises:
        WorkerError: The answers need a worker process and none can be started.

    >>> classes(["1/2", "0.5", None, "2"], "number")
    [0, 0, None, 1]
    """
    return partition(canonical_keys(answers, kind, options))


async def aclasses(answers: Sequence[str | None], kind: Kind, options: Options | None = None) -> list[int | None]:
    """`classes` for coroutines: the event loop is not held up while answers are parsed."""
    return await asyncio.to_thread(classes, answers, kind, options)


def partition(keys: Sequence[Key | None]) -> list[int | None]:
    """The class of each key, numbered in order of first appearance; see `classes`."""
    groups = _Groups(key for key in keys if key is not None)
    _join_approximate(groups)
    _join_bare(groups)
    numbers: dict[Key, int] = {}
    found: list[int | None] = []
    for key in keys:
        found.append(None if key is None else numbers.setdefault(groups.root(key), len(numbers)))
    return found


class _Groups:
    """Distinct keys, united step by step; every root is the same whatever the order of the input."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self.shown: dict[Key, set[str]] = defaultdict(set)
        approximate: dict[Key, bool] = {}
        for key in keys:
            self.shown[key].add(key.value if key.bare is None else key.bare)
            approximate[key] = approximate.get(key, False) or key.approximate
        self.approximate = {key for key, flagged in approximate.items() if flagged}
        self.parent = {key: key for key in self.shown}

    def root(self, key: Key) -> Key:
        while self.parent[key] != key:
            self.parent[key] = self.parent[self.parent[key]]
            key = self.parent[key]
        return key

    def unite(self, first: Key, second: Key) -> None:
        low, high = sorted((self.root(first), self.root(second)), key=_order)
        self.parent[high] = low


def _order(key: Key) -> tuple[str, str]:
    return key.value, key.unit


def _join_approximate(groups: _Groups) -> None:
    """Unites long decimals with the keys of their unit and shape that they agree with."""
    if not groups.approximate:
        return
    shapes: dict[tuple[str, str], list[tuple[numeric.Number, Key]]] = defaultdict(list)
    for key in groups.parent:
        value = json.loads(key.value)
        leading = next(_numbers(value), None)
        if leading is not None:
            shapes[key.unit, _shape(value)].append((leading, key))
    for alike in shapes.values():
        if any(key in groups.approximate for _, key in alike):
            _join_near(groups, sorted(alike, key=lambda pair: (numeric.order(pair[0]), pair[1].value)))


def _join_near(groups: _Groups, ordered: Sequence[tuple[numeric.Number, Key]]) -> None:
    """Unites keys that agree; only those can whose first numbers do, and these stand side by side."""
    for place, (leading, key) in enumerate(ordered):
        for other_leading, other in islice(ordered, place + 1, None):
            if not close_numbers(leading, other_leading):
                break
            approximate = key in groups.approximate or other in groups.approximate
            if approximate and same(replace(key, approximate=True), other):
                groups.unite(key, other)


def _numbers(value: object) -> Iterator[numeric.Number]:
    """The real numbers in a value, in order."""
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, str):
        try:
            yield numeric.decode(value)
        except ValueError:  # the name of a type, an infinity
            return


def _shape(value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(_shape(part) for part in value)}]"
    return "" if isinstance(value, str) else str(value)


def _join_bare(groups: _Groups) -> None:
    """Unites a class without a unit with the one class with a unit that shows its number."""
    members: dict[Key, list[Key]] = defaultdict(list)
    for key in groups.parent:
        members[groups.root(key)].append(key)
    with_unit = [root for root, keys in members.items() if keys[0].unit]
    showing: dict[str, set[Key]] = defaultdict(set)
    for root in with_unit:
        for member in members[root]:
            for shown in groups.shown[member]:
                showing[shown].add(root)
    claims: dict[Key, list[Key]] = defaultdict(list)
    for root in members.keys() - set(with_unit):
        candidates = set().union(*(showing.get(key.value, set()) for key in members[root]))
        if groups.approximate:
            candidates |= _showing_nearly(members[root], with_unit, members, groups)
        if len(candidates) == 1:
            claims[candidates.pop()].append(root)
    for target, roots in claims.items():
        if len(roots) == 1:
            groups.unite(target, roots[0])


def _showing_nearly(
    bare: Sequence[Key], with_unit: Iterable[Key], members: dict[Key, list[Key]], groups: _Groups
) -> set[Key]:
    """The classes with a unit that show a number which agrees with one of `bare` by a long decimal."""
    return {
        root
        for root in with_unit
        for member in members[root]
        for key in bare
        for shown in groups.shown[member]
        if (member in groups.approximate or key in groups.approximate)
        and same(replace(member, bare=shown, approximate=True), key)
    }
