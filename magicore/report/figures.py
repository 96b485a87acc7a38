"""A run in figures while it goes: tokens a second, samples in flight, errors by kind."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

from magicore.llms.calls import Call

WINDOW_S = 15.0
"""Tokens a second are those of so many seconds."""
_KINDS = {
    "RateLimited": "slowed down",
    "ConnectionFailed": "no connection",
    "BadReply": "unreadable",
    "ContextExceeded": "too long",
    "RequestRefused": "refused",
    "AuthenticationFailed": "key refused",
    "LanguageModelError": "server error",
}


class Figures:
    """Counts calls.

    Attributes:
        in_flight: Samples asked for and not yet here.
        tokens: Prompt and completion tokens of this process's calls.
        errors: Failed calls by kind.
        lost: Replies that may have been charged for and never came.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._recent: deque[tuple[float, int]] = deque()
        self._recent_tokens = 0
        self.in_flight = 0
        self.tokens = 0
        self.lost = 0
        self.errors: Counter[str] = Counter()

    def calling(self, samples: int) -> None:
        """A call goes out."""
        self.in_flight += samples

    def called(self, call: Call) -> None:
        """A call has ended."""
        self.in_flight -= call.asked
        self.tokens += call.usage.total
        self.lost += call.lost
        self._recent.append((self._clock(), call.usage.completion))
        self._recent_tokens += call.usage.completion
        if call.error is not None:
            self.errors[_KINDS.get(type(call.error).__name__, "failed")] += 1

    @property
    def rate(self) -> float:
        """Generated tokens a second, of late."""
        now = self._clock()
        while self._recent and self._recent[0][0] < now - WINDOW_S:
            self._recent_tokens -= self._recent.popleft()[1]
        return self._recent_tokens / max(min(now - self._began, WINDOW_S), 1e-9)

    def __str__(self) -> str:
        parts = [f"{self.rate:,.0f} tokens/s", f"{self.in_flight:,} in flight"]
        parts += [f"{count:,} {kind}" for kind, count in self.errors.most_common()]
        return ", ".join(parts)
