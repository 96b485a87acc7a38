"""What a reader of one answer kind gives back: an answer found, or a reason why there is none."""

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "no answer stated",
    "truncated",
    "refusal",
    "conflicting answers",
    "a range",
    "no such option",
    "none of the options",
    "not a number",
    "not a date",
    "placeholder",
]
"""Why a response has no answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An answer: its canonical value, and where it stands in the text."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """A place that was read and says that there is no answer."""

    reason: Reason


Reading = Found | Nothing | None
"""A reader's result; None means that there is nothing to read here, so that other places may be tried."""
