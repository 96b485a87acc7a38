"""Where a response states its answer: boxes, tags, "####", "Answer:", "the answer is", in several languages."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from magicore.answers import anchors
from magicore.answers.boxed import boxes

Marker = Literal[
    "boxed", "tag", "hash", "final-answer", "answer-colon", "answer-is",
    "opening-word", "last-line", "last-sentence", "last-number", "last-letter", "whole-text",
]  # fmt: skip
"""What an answer was read from. The first six are places where the response says that this is its answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A place that states an answer.

    Attributes:
        marker: What marks it.
        start: Where the marker begins.
        content: Start and end of what it marks: exact for boxes and tags, else up to the next site or heading.
            None for a box that never closes.
    """

    marker: Marker
    start: int
    content: tuple[int, int] | None

    @property
    def exact(self) -> bool:
        """Whether the content is delimited on both sides."""
        return self.marker in {"boxed", "tag"}


_TAG: Final = re.compile(r"[<\[](/?)(final_?answer|answer|ans)[>\]]", re.IGNORECASE)
_HASH: Final = re.compile(r"(?<!#)####(?!#)[ \t]*(?!\d+\.\s|[Ss]tep\b)(?=[^\s:][^\n:]{0,40}(?:\n|$))")
_ANNOUNCING: Final[tuple[tuple[re.Pattern[str], Marker], ...]] = (
    (anchors.ABROAD, "answer-colon"),
    (anchors.CHANGED, "answer-is"),
    (anchors.CORRECTED, "answer-is"),
    (anchors.SECOND_THOUGHT, "answer-is"),
    (_HASH, "hash"),
)


def sites(text: str) -> list[Site]:
    """Every place in `text` that states an answer, in order of where it begins."""
    starts = [
        *((*match.span(), _marker(match)) for match in anchors.ANSWER.finditer(text) if _states(text, match)),
        *((*match.span(), marker) for pattern, marker in _ANNOUNCING for match in pattern.finditer(text)),
    ]
    closed = [Site(marker="boxed", start=box.start, content=box.inner) for box in boxes(text)]
    closed += _tagged(text)
    return sorted(closed + _open_sites(text, starts), key=lambda site: site.start)


def _tagged(text: str) -> list[Site]:
    """What stands between an opening tag and the first closing one after it."""
    found: list[Site] = []
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened = tag
        elif opened is not None and opened[2].lower() == tag[2].lower():
            found.append(Site(marker="tag", start=opened.start(), content=(opened.end(), tag.start())))
            opened = None
    return found


def _marker(match: re.Match[str]) -> Marker:
    if match["final"]:
        return "final-answer"
    return "answer-is" if match["is"] else "answer-colon"


def _states(text: str, match: re.Match[str]) -> bool:
    """Whether "answer" here is followed by the response's own answer, not by a judgement on some answer."""
    if match["bare"] and text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip(" *_#"):
        return False
    if match["is"] and anchors.SOMEONE_ELSES.search(text, max(0, match.start() - 40), match.start()):
        return False
    return not (match["is"] and anchors.JUDGEMENT.match(text, match.end()))


def _open_sites(text: str, starts: list[tuple[int, int, Marker]]) -> list[Site]:
    """Sites without a closing delimiter: their content runs to the next such site or heading, or to the end."""
    found: list[Site] = []
    headings = [match.start() for match in anchors.HEADING.finditer(text)]
    stop = len(text)
    for start, end, marker in sorted(starts, reverse=True):
        while headings and headings[-1] >= end:
            stop = min(stop, headings.pop())
        found.append(Site(marker=marker, start=start, content=(end, max(end, stop))))
        stop = min(stop, start)
    return found
