"""Where the sentences of a passage begin; written for solutions, where most full stops stand in numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward_models.protected import Span, inside

_WIDE = "\u3002\uff01\uff1f\uff61\u0964"  # full stops and marks of scripts that put no space between sentences
_END = re.compile(rf"(?P<mark>[.!?\u061f]++|[{_WIDE}]++)(?P<closers>[\"'\u201d\u2019»)\]}}*_]*+)(?P<gap>\s*+)")
_ABBREVIATIONS = frozenset(
    "e.g i.e eg ie etc vs cf viz al approx resp mr mrs ms dr prof st sr jr fig figs eq eqs eqn sec ch ex thm def prop "
    "vol pp pg ca ave inc ltd co corp dept est jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu "
    "thur fri sat sun a.m p.m u.s u.k ft lb lbs oz hr hrs".split()
)
_BEFORE_NUMBER = frozenset({"no", "nos", "p", "art", "min", "max", "nr"})  # abbreviations only where a number follows
_STARTERS = frozenset(
    "a all also and as at because but by finally first for from given hence here however if in it let next now on our "
    "second since so step substituting that the their then there therefore these they this thus to using we what when "
    "where which".split()
)
_WORD = re.compile(r"[^\s(\[{\"'\u201c\u2018$*]*\Z")
_ASSIGNMENT = re.compile(r"[a-z]\w{0,2}\s?[=<>≤≥≈]")
_NAMED_BY_LETTER = re.compile(r"(?:[A-Z][a-z]+|[A-Z]\.)\s\Z")
_LOOK_BACK = 24


def sentence_starts(text: str, span: Span, kept: Sequence[Span]) -> list[int]:
    """Offsets at which a new sentence begins within ``span``, its own start excepted.

    No sentence ends inside one of the ``kept`` spans (sorted, disjoint: formulas, code), in a number, after an
    abbreviation, an initial or a list marker, or at an ellipsis. White space belongs to the sentence before it.
    """
    start, end = span
    found: list[int] = []
    for match in _END.finditer(text, start, end):
        begin = match.end()
        if begin >= end or inside(kept, match.start("mark")) or inside(kept, match.start("mark") + 1):
            continue
        since = found[-1] if found else start
        if _ends_sentence(text, since, match):
            found.append(begin)
    return found


def _ends_sentence(text: str, since: int, match: re.Match[str]) -> bool:
    mark, after = match["mark"], text[match.end() : match.end() + _LOOK_BACK]
    if mark[0] in _WIDE:
        return True
    if not match["gap"] or (mark.startswith("..") and set(mark) == {"."}):
        return False
    if after[0] in ".\u2026" or (after[0].islower() and not _ASSIGNMENT.match(after)):
        return False
    if mark != ".":
        return True
    before = text[max(since, match.start("mark") - _LOOK_BACK) : match.start("mark")]
    found = _WORD.search(before)
    word = found[0] if found else ""
    return not (_is_marker(before, since, match) or _is_abbreviation(word, after) or _is_initial(before, word, after))


def _is_marker(before: str, since: int, match: re.Match[str]) -> bool:
    """``1.`` or ``a.`` at the very start numbers what follows."""
    marker = before.strip(" \t\r\n*_#(")
    return match.start("mark") - since <= len(before) and (
        marker.isdecimal() or (len(marker) == 1 and marker.isalpha())
    )


def _is_abbreviation(word: str, after: str) -> bool:
    lowered = word.lower()
    return lowered in _ABBREVIATIONS or (lowered in _BEFORE_NUMBER and after[0].isdecimal())


def _is_initial(before: str, word: str, after: str) -> bool:
    """The letter of ``Samuel L. Jackson``, but not the point of ``meets BC at D. Then``."""
    if len(word) != 1 or not word.isupper() or not after[0].isupper():
        return False
    next_word = re.split(r"[\s,]", after, maxsplit=1)[0]
    return next_word.lower() not in _STARTERS and _NAMED_BY_LETTER.search(before[: -len(word)]) is not None
