"""Which reply goes wrong, and how: drawn from a seed and the request itself, so that timing changes nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

FaultKind = Literal[
    "rate-limit",
    "rate-limit-after",
    "server-error",
    "unavailable",
    "reset",
    "stall",
    "malformed",
    "empty",
    "null",
    "fewer",
    "duplicates",
    "wrong-usage",
    "length-as-stop",
    "slow",
]
KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
REFUSING: Final[frozenset[FaultKind]] = frozenset({"rate-limit", "rate-limit-after", "server-error", "unavailable"})
"""Nothing is generated: 429 without and with ``Retry-After``, 500, 503."""
LOSING: Final[frozenset[FaultKind]] = frozenset({"reset", "stall", "malformed", "empty"})
"""Tokens are generated and no choice arrives: the connection is reset in mid-body, stays open and silent, the JSON is
cut off, or the list of choices is empty and usage is not stated."""
MARRING: Final[frozenset[FaultKind]] = frozenset(
    {"null", "fewer", "duplicates", "wrong-usage", "length-as-stop", "slow"}
)
"""The reply arrives and is not what it should be: null content, fewer choices than ``n``, equal choices, wrong usage, a
completion that fills the token limit and is called a stop, a late first token."""
_FOR_SEVERAL: Final[frozenset[FaultKind]] = frozenset({"fewer", "duplicates"})


@dataclass(frozen=True, kw_only=True)
class Faults:
    """How often replies go wrong.

    Attributes:
        rate: The share of replies that do, in [0, 1].
        kinds: Each kind's weight; all kinds equally by default. A request for one sample is never given ``fewer`` or
            ``duplicates``.
        seed: Decides which.
        retry_after_s: What ``Retry-After`` says.
        slow_s: How late a late first token is.
    """

    rate: float = 0.0
    kinds: Mapping[FaultKind, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 1.0))
    seed: int = 0
    retry_after_s: float = 1.0
    slow_s: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError(f"rate lies in [0, 1], got {self.rate}")
        if strange := sorted(set(self.kinds) - set(KINDS)):
            raise ValueError(f"there is no fault {strange[0]!r}; faults: {', '.join(KINDS)}")
        if any(weight < 0 for weight in self.kinds.values()) or (self.rate and not sum(self.kinds.values())):
            raise ValueError("the weights of faults are not negative and not all zero")

    def draw(self, request: int, attempt: int, n: int) -> FaultKind | None:
        """What goes wrong with the ``attempt``-th reply (from 0) to a request for ``n`` samples; mostly nothing."""
        if not self.rate:
            return None
        draw = random.Random(f"{self.seed}/{request}/{attempt}")
        if draw.random() >= self.rate:
            return None
        possible = [kind for kind in self.kinds if n > 1 or kind not in _FOR_SEVERAL]
        weights = [self.kinds[kind] for kind in possible]
        return draw.choices(possible, weights)[0] if sum(weights) else None
