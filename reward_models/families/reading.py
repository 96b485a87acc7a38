"""What a family turns a solution into, and what an engine gives back: token ids, where to read, raw numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One token sequence and the positions at which the model is read.

    Attributes:
        ids: Token ids, special tokens included.
        reads: Positions in ``ids``, ascending. What is read there, the family's head says.
        counts: How many of the reads belong to each step; a step's raw score is the sum of its reads. Empty means one
            read a step.
    """

    ids: tuple[int, ...]
    reads: tuple[int, ...]
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(a >= b for a, b in zip(self.reads, self.reads[1:], strict=False)):
            raise ValueError("read positions must ascend")
        if self.reads and not 0 <= self.reads[0] <= self.reads[-1] < len(self.ids):
            raise ValueError(f"read positions must lie in the {len(self.ids)} tokens")
        if self.counts and sum(self.counts) != len(self.reads):
            raise ValueError(f"{len(self.reads)} reads cannot be grouped as {self.counts}")

    @property
    def steps(self) -> int:
        """How many steps get a raw score."""
        return len(self.counts or self.reads)

    def by_step(self, raw: Sequence[float]) -> list[float]:
        """One raw score a step from one number a read."""
        if not self.counts:
            return list(raw)
        sums, at = [], 0
        for count in self.counts:
            sums.append(sum(raw[at : at + count]))
            at += count
        return sums


@runtime_checkable
class Engine(Protocol):
    """Computes raw scores; the local engine and each scoring server's client is one.

    ``fingerprint`` names the weights, the number format and whatever else changes a raw score.
    """

    fingerprint: str

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """One number for each read of each reading, in order.

        Raises:
            RewardModelError: It cannot; partial results are never returned.
        """
        ...
