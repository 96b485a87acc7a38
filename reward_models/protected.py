"""Passages of a solution that no step boundary may tear: code fences, displayed LaTeX, inline formulas and code."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

NEWLINE = r"(?:\r\n|[\n\r\v\f\x85\u2028\u2029])"
"""What ends a line, Windows and Unicode separators included."""

Span = tuple[int, int]

_LINE = re.compile(rf"{NEWLINE}|\Z")
_FENCE = re.compile(r"[ \t]*+(?:>[ \t]?+)*+(?P<marks>`{3,}+|~{3,}+)(?P<info>[^`]*+)\Z")
_LATEX = re.compile(
    r"\\(?:(?P<open>\[)|(?P<close>\])|begin\{(?P<begin>[^{}\s]{1,40})\}|end\{(?P<end>[^{}\s]{1,40})\}|.)",
    re.DOTALL,
)
_DOLLARS = re.compile(r"\\.|(?P<dollars>\$\$)", re.DOTALL)
_INLINE = re.compile(
    r"\\\((?:[^\\]|\\(?![()]))*+\\\)"  # \( ... \)
    r"|\\."
    r"|\$(?=[^\s$])[^$\r\n]*+(?<=\S)\$(?!\d)"  # $ ... $, but not "$5 and $6"
    r"|`[^`\r\n]++`",
    re.DOTALL,
)
# Environments that wrap prose, often a whole solution: their insides have steps of their own.
_PROSE = frozenset({"answer", "center", "document", "proof", "solution", "steps"})


def lines(text: str) -> list[Span]:
    """The lines of a text, each with the characters that end it."""
    found: list[Span] = []
    start = 0
    for match in _LINE.finditer(text):
        if match.end() > start:
            found.append((start, match.end()))
        start = match.end()
    return found


def inside(spans: Sequence[Span], position: int) -> bool:
    """Whether a position lies within one of the sorted, disjoint spans, its ends excepted."""
    at = bisect_left(spans, (position, -1)) - 1
    return at >= 0 and spans[at][0] < position < spans[at][1]


def blocks(text: str, rows: Sequence[Span], headings: Sequence[int]) -> list[Span]:
    """Outermost spans of closed code fences and LaTeX displays: ``\\[..\\]``, ``$$..$$``, ``\\begin..\\end``.

    What is never closed protects nothing, and a ``$$`` is not closed across one of the ``headings`` (sorted offsets),
    so that one stray mark does not swallow the rest. Time is linear in the text.
    """
    fences = _fences(text, rows)
    return _merged(fences + _displays(text, fences) + _dollars(text, fences, headings))


def inline(text: str) -> list[Span]:
    """Spans of inline formulas and inline code, in order."""
    return [match.span() for match in _INLINE.finditer(text) if match.end() - match.start() > len("\\.")]


def _fences(text: str, rows: Sequence[Span]) -> list[Span]:
    marks = [
        (start, end, found["marks"], found["info"]) for start, end in rows if (found := _FENCE.match(text, start, end))
    ]
    longest_closer: list[dict[str, int]] = [{}]  # from each mark on, seen from the end: is there any use in looking?
    for _, _, mark, info in reversed(marks):
        known = longest_closer[-1]
        longer = not info.strip() and len(mark) > known.get(mark[0], 0)
        longest_closer.append({**known, mark[0]: len(mark)} if longer else known)
    longest_closer.reverse()
    found_spans: list[Span] = []
    at = 0
    while at < len(marks):
        start, _, opener, _ = marks[at]
        at += 1
        if longest_closer[at].get(opener[0], 0) < len(opener):
            continue
        while not (marks[at][2].startswith(opener) and not marks[at][3].strip()):
            at += 1
        found_spans.append((start, marks[at][1]))
        at += 1
    return found_spans


def _displays(text: str, fences: Sequence[Span]) -> list[Span]:
    """``\\[..\\]`` and ``\\begin..\\end``, each close paired with the nearest open of its kind before it."""
    found: list[Span] = []
    opened: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    for token in _LATEX.finditer(text):
        kind = "[" if token["open"] or token["close"] else token["begin"] or token["end"]
        if not kind or kind.rstrip("*") in _PROSE or inside(fences, token.start()):
            continue
        if token["open"] or token["begin"]:
            opened.append((kind, token.start()))
            waiting[kind] += 1
        elif waiting[kind]:
            name = ""
            while name != kind:
                name, start = opened.pop()
                waiting[name] -= 1
            found.append((start, token.end()))
    return found


def _dollars(text: str, fences: Sequence[Span], headings: Sequence[int]) -> list[Span]:
    found: list[Span] = []
    start: int | None = None
    for token in _DOLLARS.finditer(text):
        if not token["dollars"] or inside(fences, token.start()):
            continue
        if start is None or bisect_left(headings, start) < bisect_left(headings, token.start()):
            start = token.start()
        else:
            found.append((start, token.end()))
            start = None
    return found


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
