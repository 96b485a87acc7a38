"""How long a reply takes: slots that generate one sample each, seconds a token, and a queue before them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service-time model.

    Attributes:
        slots: Samples generated at once.
        token_s: Seconds a generated token.
        sample_s: Seconds before a sample's first token.
        queue: The most samples that may wait for a slot; beyond it requests get a 429. ``None``: no limit.
    """

    slots: int = 64
    token_s: float = 0.0
    sample_s: float = 0.0
    queue: int | None = None

    def __post_init__(self) -> None:
        if self.slots < 1 or self.token_s < 0 or self.sample_s < 0 or (self.queue is not None and self.queue < 0):
            raise ValueError(f"slots must be at least 1 and times not negative, got {self}")

    @property
    def immediate(self) -> bool:
        """Whether nothing takes any time."""
        return not self.token_s and not self.sample_s

    def seconds(self, tokens: int) -> float:
        """How long one slot is busy with a sample."""
        return self.sample_s + tokens * self.token_s


class Slots:
    """The slots of one replica, filled first come, first served."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._free_at = [0.0] * service.slots
        self._starts: list[float] = []

    def full(self, now: float, samples: int) -> bool:
        """Whether the queue has no room for so many samples."""
        if self._service.queue is None:
            return False
        while self._starts and self._starts[0] <= now:
            heapq.heappop(self._starts)
        idle = sum(at <= now for at in self._free_at)
        return len(self._starts) + max(0, samples - idle) > self._service.queue

    def reserve(self, now: float, tokens: Sequence[int]) -> tuple[float, float]:
        """When the first of these samples begins and when the last one ends, in the clock of ``now``."""
        if self._service.immediate:
            return now, now
        first, last = float("inf"), now
        for count in tokens:
            start = max(now, self._free_at[0])
            end = start + self._service.seconds(count)
            heapq.heapreplace(self._free_at, end)
            if self._service.queue is not None and start > now:
                heapq.heappush(self._starts, start)
            first, last = min(first, start), max(last, end)
        return first, last
