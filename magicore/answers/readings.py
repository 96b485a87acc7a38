"""What a reader of one answer kind gives back: an answer found, or a reason why there is none."""

from dataclasses import dataclass
from typing import Literal, Protocol

from magicore.answers.markers import Marker, Site

Reason = Literal[
    "no answer stated",
    "truncated",
    "refusal",
    "conflicting answers",
    "a range",
    "no such option",
    "none of the options",
    "not a number",
    "placeholder",
]
"""Why a response has no answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An answer.

    Attributes:
        value: Its canonical text.
        start: Where it begins in the response.
        end: Where it ends.
        marker: What it was read from, where that is not the site that was asked about.
    """

    value: str
    start: int
    end: int
    marker: Marker | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """A place that was read and says that there is no answer."""

    reason: Reason


Reading = Found | Nothing | None
"""A reader's result; None means that there is nothing to read here, so that other places may be tried."""


class Reader(Protocol):
    """Reads one prepared response for one answer kind."""

    def read(self, site: Site) -> Reading:
        """What a place that states an answer says."""
        ...

    def fallback(self) -> Reading:
        """What the response says where nothing marks an answer."""
        ...
