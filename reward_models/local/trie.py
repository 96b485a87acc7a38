"""Token sequences as a forest of segments: what sequences share is one segment, computed once.

Pure functions over tuples of token ids; no tensors here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Ids = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A run of tokens that follows its parent's run.

    Attributes:
        parent: Index of the segment before it, which is smaller than its own; ``None`` at the start of a sequence.
        start: Position of its first token in every sequence that runs through it.
        ids: Its tokens, at least one.
    """

    parent: int | None
    start: int
    ids: Ids

    @property
    def end(self) -> int:
        return self.start + len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Segments in depth-first order, and for each sequence the segment that holds its last token."""

    segments: tuple[Segment, ...]
    last: tuple[int, ...]

    def path(self, index: int | None) -> Iterator[int]:
        """The segment and its ancestors, nearest first."""
        while index is not None:
            yield index
            index = self.segments[index].parent

    def locate(self, sequence: int, positions: Sequence[int]) -> list[tuple[int, int]]:
        """Where each position of a sequence lies: (segment, offset in it)."""
        path = list(self.path(self.last[sequence]))
        found = []
        for position in positions:
            index = next(index for index in path if self.segments[index].start <= position)
            found.append((index, position - self.segments[index].start))
        return found

    @property
    def tokens(self) -> int:
        """How many tokens have to be computed."""
        return sum(len(segment.ids) for segment in self.segments)


def common_prefix(left: Ids, right: Ids) -> int:
    """The number of tokens that two sequences share at their start."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def plant(sequences: Sequence[Ids], *, least_shared: int = 8, longest: int = 1 << 30) -> Forest:
    """Share what the sequences have in common.

    Args:
        sequences: Non-empty token sequences; equal ones become one.
        least_shared: A shared run shorter than this is not worth a segment of its own.
        longest: Longer segments are cut, so that none exceeds the token budget of a batch.
    """
    order = sorted(set(sequences))
    segments: list[Segment] = []
    last: dict[Ids, int] = {}

    def grow(parent: int | None, ids: Ids, start: int) -> int | None:
        for begin in range(start, len(ids), longest):
            segments.append(Segment(parent=parent, start=begin, ids=ids[begin : begin + longest]))
            parent = len(segments) - 1
        return parent

    waiting: list[tuple[int, int, int, int | None]] = [(0, len(order), 0, None)] if order else []
    while waiting:
        low, high, depth, parent = waiting.pop()
        first = order[low]
        if high - low == 1:
            leaf = grow(parent, first, depth)
            if leaf is None:
                raise ValueError("a token sequence is empty")
            last[first] = leaf
            continue
        shared = common_prefix(first, order[high - 1])
        if shared - depth >= least_shared:
            parent, depth = grow(parent, first[:shared], depth), shared
        if len(first) == shared:  # it ends where the others go on
            ended = parent if depth == shared else grow(parent, first, depth)
            if ended is None:
                raise ValueError("a token sequence is empty")
            last[first] = ended
            low += 1
        waiting.extend(reversed([(a, b, depth, parent) for a, b in _branches(order, low, high, shared)]))
    return Forest(segments=tuple(segments), last=tuple(last[sequence] for sequence in sequences))


def _branches(order: Sequence[Ids], low: int, high: int, at: int) -> Iterator[tuple[int, int]]:
    """Runs of the sorted sequences that agree on the token at a position."""
    begin = low
    for index in range(low + 1, high + 1):
        if index == high or order[index][at] != order[begin][at]:
            yield begin, index
            begin = index


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Segments that are computed together, and those (of any pack) whose keys and values later packs still need."""

    segments: tuple[int, ...]
    keep: frozenset[int]


def pack(forest: Forest, budget: int) -> list[Pack]:
    """Cut the forest, in depth-first order, into packs of at most ``budget`` tokens (at least one segment each).

    Packs are about equally large: a small one would cost nearly as much as a full one.
    """
    fewest = -(-forest.tokens // budget)
    budget = min(budget, forest.tokens // max(1, fewest) + max((len(s.ids) for s in forest.segments), default=0))
    groups: list[list[int]] = []
    used = 0
    for index, segment in enumerate(forest.segments):
        if not groups or used + len(segment.ids) > budget:
            groups.append([])
            used = 0
        groups[-1].append(index)
        used += len(segment.ids)
    packs = []
    needed: set[int] = set()
    for group in reversed(groups):
        earliest = group[0]
        packs.append(Pack(segments=tuple(group), keep=frozenset(needed)))
        needed = {index for index in needed if index < earliest}
        for index in group:
            needed.update(a for a in forest.path(forest.segments[index].parent) if a < earliest)
    return packs[::-1]
