"""What the gateway takes on, and how requests wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from magicore.errors import InputError
from magicore.serve.failures import busy


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a gateway.

    Attributes:
        concurrency: Requests worked on at once; further ones wait, first come, first served.
        waiting: Requests that may wait; more get a 429.
        body_bytes: The largest request.
        body_s: Seconds in which a request must have arrived whole.
        choices: The largest ``n``.
        completions: Completions that one request may take at the most, refinement and reviews included.
        grace_s: Seconds that requests in work have left when the server is told to stop; for the second half of them
            nothing new is asked of models, and each request is answered with what it has.
    """

    concurrency: int = 64
    waiting: int = 1024
    body_bytes: int = 4 * 2**20
    body_s: float = 60.0
    choices: int = 16
    completions: int = 1000
    grace_s: float = 30.0

    def __post_init__(self) -> None:
        least = {"concurrency": 1, "waiting": 0, "body_bytes": 1, "choices": 1, "completions": 1}
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise InputError(f"{name} must be at least {minimum}, got {getattr(self, name)}")
        for name in ("body_s", "grace_s"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be above 0, got {getattr(self, name)}")


class Turns:
    """Lets so many requests work at once, and so many wait."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self.waiting = 0
        self.working = 0

    def check(self) -> None:
        """Refuse a request that would have to wait where too many do.

        Raises:
            Refusal: 429.
        """
        if self._slots.locked() and self.waiting >= self._limits.waiting:
            raise busy(f"{self.working} requests are in work and {self.waiting} are waiting; come again later")

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1
            self._slots.release()
