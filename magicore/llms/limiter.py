"""How many samples to have in flight: found by trying, as TCP finds a line's capacity.

The limit doubles while that brings more tokens a second, then grows by a tenth at a time; it stays where more brings
nothing and makes the rest wait.

When the endpoint asks to slow down, the limit is halved until as many samples as it admits have come. Then it returns
to what it was if that was a single call's bad luck, and to three quarters of it if a tenth of the calls met the same.
It is halved, too, when calls take three times as long a token as at best (the median of late ones: a few slow calls
say nothing) without more tokens coming; what came of that only calls that start afterwards can tell. If it costs
throughput it is taken back, and the endpoint is believed to have become slower.

A slot is held while a call runs, never while it waits for its retry.

Calls wait first come, first served; where several lines are named by :data:`waiting_line`, the lines take turns.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

_WORTHWHILE = 1.05
_GENTLE = 0.1
_HELD_WINDOWS = 8
_COME_BACK = 0.75
_OVERLOADED = 0.1
_RECENT_CALLS = 64
_RECENT_PACES = 32
_TELLING_CALLS = 8
_SMALLEST_WINDOW = 8
_UNHURRIED = 1.5
_CONGESTED = 3.0
_COSTLY = 0.75
_SAMPLE_WORK = 50
"""What a sample costs beside its tokens, in tokens: so short replies do not look slow."""


waiting_line: ContextVar[str | None] = ContextVar("waiting_line", default=None)
"""The line in which the calls of this task wait. A server gives each request its own, so that one of many calls keeps
no other waiting; a batch leaves it alone."""


class _Lines:
    """Waiting calls, each as its weight and its ticket, in lines that take turns."""

    def __init__(self) -> None:
        self._lines: dict[str | None, deque[tuple[int, asyncio.Future[None]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def append(self, weight: int, ticket: asyncio.Future[None]) -> None:
        """Wait at the end of one's line."""
        self._lines.setdefault(waiting_line.get(), deque()).append((weight, ticket))

    def first(self) -> tuple[int, asyncio.Future[None]]:
        """Whose turn it is."""
        return next(iter(self._lines.values()))[0]

    def leave(self) -> None:
        """The first goes, and its line goes to the end."""
        name = next(iter(self._lines))
        waiting = self._lines.pop(name)
        waiting.popleft()
        if waiting:
            self._lines[name] = waiting


class Limiter:
    """Admits calls in the order they come, each weighing as many slots as it has samples.

    Args:
        initial: The first limit, in samples.
        maximum: The limit is never above this. ``initial == maximum`` keeps it fixed.
        clock, sleep: Monotonic seconds, and how to wait; for tests.
    """

    def __init__(
        self,
        *,
        initial: int = 64,
        maximum: int = 2048,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not 1 <= initial <= maximum:
            raise ValueError(f"a limiter needs 1 <= initial <= maximum, got {initial} and {maximum}")
        self.maximum = maximum
        self._limit = float(initial)
        self._clock = clock
        self._sleep = sleep
        self._in_flight = 0
        self._waiting = _Lines()
        self._resume_at = 0.0
        self._halved_at = -1.0
        self._doubling = True
        self._came_from = 0.0
        self._refusals: deque[bool] = deque(maxlen=_RECENT_CALLS)
        self._best_rate = 0.0
        self._peak_rate = 0.0
        self._held = 0
        self._window_start: float | None = None
        self._window_done = 0
        self._window_work = 0
        self._paces: deque[float] = deque(maxlen=_RECENT_PACES)
        self._window_full = False
        self._quickest: float | None = None
        self._eased_from: tuple[float, float] | None = None
        self._eased_at = -math.inf

    @property
    def limit(self) -> int:
        """The most samples in flight at present."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Samples in flight now."""
        return self._in_flight

    @asynccontextmanager
    async def slots(self, count: int) -> AsyncIterator[None]:
        """Hold ``count`` slots; a call that is larger than the limit is let in alone."""
        await self._acquire(count)
        try:
            while (pause := self._resume_at - self._clock()) > 0:  # all calls pause, so no slot is kept from another
                await self._sleep(pause)
            yield
        finally:
            self._in_flight -= count
            self._admit()

    def succeeded(self, count: int, tokens: int, seconds: float = 0.0) -> None:
        """A call brought ``count`` samples of ``tokens`` tokens together, in ``seconds`` (0: not known)."""
        now = self._clock()
        if self._window_start is None:
            self._window_start = now - seconds  # replies may all come at once
        self._refusals.append(False)
        work = tokens + count * _SAMPLE_WORK
        self._window_done += count
        self._window_work += work
        if seconds and count and now - seconds >= self._eased_at:
            self._paces.append(seconds * count / work)
        if self._window_done < max(self._limit, _SMALLEST_WINDOW) or now <= self._window_start:
            return
        rate = self._window_work / (now - self._window_start)
        pace = statistics.median(self._paces) if len(self._paces) >= _TELLING_CALLS else None
        if not self._taken_back(rate, pace):
            if self._congested(rate, pace):
                self._ease(rate, now)
            elif self._came_from or (self._window_full and self.limit < self.maximum):
                self._grow(rate, pace)
        self._start_window(now)
        self._window_full = bool(self._waiting)
        self._admit()

    def throttled(self, started: float, retry_after: float | None = None) -> None:
        """The endpoint asked to slow down a call that ``started`` then. Nothing new starts before ``retry_after``."""
        now = self._clock()
        if retry_after is not None:
            self._resume_at = max(self._resume_at, now + retry_after)
        self._refusals.append(True)
        if started <= self._halved_at:  # it was under way when the limit was last halved
            return
        self._came_from = max(self._came_from, self._limit)
        self._limit = max(1.0, self._limit / 2)
        self._halved_at = now
        self._doubling = False
        self._best_rate = 0.0
        self._eased_from = None
        self._start_window(None)

    def _start_window(self, now: float | None) -> None:
        self._window_start, self._window_done, self._window_work = now, 0, 0

    def _congested(self, rate: float, pace: float | None) -> bool:
        """Whether work takes much longer than at best, and no more of it gets done for that."""
        more = rate >= self._peak_rate * _WORTHWHILE
        self._peak_rate = max(self._peak_rate, rate)
        if pace is None:
            return False
        self._quickest = pace if self._quickest is None else min(self._quickest, pace)
        return self._quickest * _CONGESTED < pace and not more

    def _ease(self, rate: float, now: float) -> None:
        """Halve the limit for the pace's sake, and wait for calls that show what came of it."""
        self._eased_from, self._eased_at = (self._limit, rate), now
        self._limit = max(1.0, self._limit / 2)
        self._doubling = False
        self._paces.clear()

    def _taken_back(self, rate: float, pace: float | None) -> bool:
        """Whether halving for the pace's sake cost throughput, and is therefore taken back."""
        if self._eased_from is None or pace is None:
            return False
        (limit, before), self._eased_from = self._eased_from, None
        if rate >= before * _COSTLY:
            return False
        self._limit, self._quickest = limit, pace
        return True

    def _grow(self, rate: float, pace: float | None) -> None:
        if self._came_from:
            share = sum(self._refusals) / len(self._refusals)
            self._limit = max(self._limit, self._came_from * (1 if share < _OVERLOADED else _COME_BACK))
            self._came_from = 0.0
            return
        if rate >= self._best_rate * _WORTHWHILE:
            self._best_rate = rate
            self._held = 0
        elif self._doubling:
            self._doubling = False
            return
        elif pace is None or self._quickest is None or pace > self._quickest * _UNHURRIED:
            self._held += 1
            if self._held % _HELD_WINDOWS:
                return
        step = self._limit if self._doubling else max(1.0, self._limit * _GENTLE)
        self._limit = min(float(self.maximum), self._limit + step)

    async def _acquire(self, count: int) -> None:
        if not self._waiting and self._fits(count):
            self._in_flight += count
            return
        self._window_full = True
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(count, ticket)
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():  # admitted and cancelled at the same moment
                self._in_flight -= count
                self._admit()
            raise

    def _fits(self, count: int) -> bool:
        return self._in_flight == 0 or self._in_flight + count <= self._limit

    def _admit(self) -> None:
        while self._waiting:
            count, ticket = self._waiting.first()
            if ticket.done():
                self._waiting.leave()
            elif self._fits(count):
                self._waiting.leave()
                self._in_flight += count
                ticket.set_result(None)
            else:
                return
