"""Numbers in running text: where they stand, and which digits are no number of their own."""

import re
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from magicore.answers.latex import VULGAR_FRACTIONS
from magicore.answers.number import ParsedNumber, parse_number
from magicore.answers.units import CURRENCY_SIGNS, known_unit

_SEPARATOR: Final = r"(?:,|\{,\}|,?\\!|,?\\,|'|_|\.|[ ](?=\d{3}(?!\d)))"
_RUN: Final = rf"(?:\d+(?:{_SEPARATOR}\d+)*|(?<![\w.])\.\d+)"
_FRACTION: Final = r"\\[dtc]?frac\s*(?:\{[^{}\n]{1,40}\}|\d)\s*(?:\{[^{}\n]{1,40}\}|\d)"
_POWER: Final = r"10\s?\^\s?(?:\{\s?-?\d{1,5}\s?\}|-?\d{1,5})"
_NUMBER: Final = re.compile(
    rf"""
    (?: \d+[ ]?{_FRACTION} | {_FRACTION}                 # 1\frac{{1}}{{2}}, \frac{{1}}{{2}}
      | \d+(?:[ ]|[ ]and[ ])\d+/\d+(?![\d/])             # 1 1/2
      | {_RUN}[ ]?/[ ]?{_RUN}(?![\d/])                    # 1/2
      | \d{{1,2}}:[0-5]\d(?!\d)                            # 2:30
      | {_POWER}                                          # 10^6
      | \d*\.\d*(?:\\overline\{{?\d+\}}?|\(\d+\))         # 0.\overline{{3}}
      | {_RUN}(?:[eE][+-]?\d{{1,5}}(?!\w)|\s?(?:\\times|\\cdot|[x\u00d7*])\s?{_POWER})?   # 1,234.5 and 1.5e3
      | [{VULGAR_FRACTIONS}]
    )
    [{VULGAR_FRACTIONS}]?
    (?:\s(?:hundred|thousand|million|billion|trillion|lakh|crore)\b)?
    (?:\s?\\?%|\s(?:percent|per\scent)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    rf"(?P<outer>[-\u2013+\u00b1]?)\s?(?P<money>(?:US|A|C)?\\?[{re.escape(CURRENCY_SIGNS)}]|\bRs\.?)?\s?"
    r"(?P<inner>[-\u2013+\u00b1]?)\s?$"
)
_OPERAND: Final = re.compile(r"(?:[\d)\]}%!]|(?<![A-Za-z])[A-Za-z])\s*$")
_GLUED: Final = re.compile(r"[A-Za-z]+")
_GLUED_LETTERS: Final = frozenset("m g s L l h K k M B".split())
_GLUED_WORDS: Final = frozenset("am pm AM PM".split())
_ORDINAL: Final = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"\b(?:steps?|equation|eq\.?|option|case|part|example|figure|table|question|problem|method|chapter|agent|solution"
    r"|note|level|round)s?\s*[#(]?\s*$",
    re.IGNORECASE,
)
_LIST_MARK: Final = re.compile(r"(?:^|\n)[ \t>*_#-]*\(?$")
_LIST_TAIL: Final = re.compile(r"[.):][*_]{0,2}(?:\s|$)")
_REACH: Final = 12
_EQUALS_REACH: Final = 240
_MOST_TOKENS: Final = 400
_LONGEST_TOKEN: Final = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A number in running text: its span, with sign, currency and percent, and what it says."""

    start: int
    end: int
    parsed: ParsedNumber

    @property
    def value(self) -> Fraction:
        """The exact value."""
        return self.parsed.value


def tokens(text: str, start: int, end: int) -> list[Token]:
    """The numbers in `text[start:end]`; variables with coefficients, labels, list marks and ordinals are none."""
    found: list[Token] = []
    for match in deque(_NUMBER.finditer(text, start, end), maxlen=_MOST_TOKENS):
        if match.end() - match.start() <= _LONGEST_TOKEN:
            found.extend(_read_token(text, match, start, end))
    return found


def _read_token(text: str, match: re.Match[str], start: int, end: int) -> list[Token]:
    first, last = match.span()
    if first > start and (text[first - 1] in "^_\\" or (text[first - 1].isalpha() and text[first - 1].isascii())):
        return []
    if _GLUED.match(text, last, end) and not _unit_glued(text, last, end):
        return []
    if text.startswith("^", last) or _is_ratio(text, match) or _is_label(text, first, last):
        return []
    before = _BEFORE.search(text, max(start, first - _REACH), first)
    sign, begin = _sign(text, before, first, start) if before else ("", first)
    body = match.group()
    parsed = parse_number(sign + (before["money"] or "" if before else "") + body)
    if parsed is not None:
        return [Token(start=begin, end=last, parsed=parsed)]
    parts = [part for part in re.finditer(r"\d+(?:\.\d+)?", body)] if "," in body else []
    values = [(part, parse_number(part.group())) for part in parts]
    return [Token(start=first + p.start(), end=first + p.end(), parsed=v) for p, v in values if v is not None]


def _unit_glued(text: str, at: int, end: int) -> bool:
    """Whether the letters stuck to a number are a unit, not a variable or an ordinal's ending."""
    word = _GLUED.match(text, at, end)
    if word is None or _ORDINAL.match(text, at):
        return False
    if len(word.group()) == 1:
        return word.group() in _GLUED_LETTERS
    return word.group() in _GLUED_WORDS or known_unit(word.group()) is not None


def _is_ratio(text: str, match: re.Match[str]) -> bool:
    """Whether a number is one side of a ratio such as 3:4."""
    first, last = match.span()
    return bool(re.match(r":\d", text[last : last + 2]) or re.search(r"\d:$", text[max(0, first - 2) : first]))


def _is_label(text: str, first: int, last: int) -> bool:
    """Whether a number names a step or opens a list item."""
    if _LABEL.search(text, max(0, first - 20), first):
        return True
    return (
        re.fullmatch(r"\d{1,2}", text[first:last]) is not None
        and _LIST_MARK.search(text[max(0, first - _REACH) : first]) is not None
        and _LIST_TAIL.match(text, last) is not None
        and not _ends_line(text, last)
    )


def _ends_line(text: str, at: int) -> bool:
    rest = text[at : at + 8].split("\n", 1)[0]
    return not rest.strip(" .)*_$")


def _sign(text: str, before: re.Match[str], first: int, start: int) -> tuple[str, int]:
    """The unary sign before a number, and where the number begins with it and its currency."""
    signs = before["outer"] + before["inner"]
    begin = before.start("money") if before["money"] else first
    if not signs or len(signs) > 1 or signs in "\u00b1":
        return "", begin
    at = before.start("outer") if before["outer"] else before.start("inner")
    if before["inner"] and before["money"]:
        return signs.replace("\u2013", "-"), begin
    if at > start and (_OPERAND.search(text, max(start, at - 3), at) or text[at - 1].isalpha()):
        return "", begin
    gap = text[at + 1 : begin]
    if gap.strip() == "" and gap and not re.search(r"[=(\[{:]\s*$", text[max(0, at - 3) : at]):
        return "", begin
    return signs.replace("\u2013", "-"), min(begin, at)


def after_equals(text: str, token: Token) -> bool:
    """Whether an equals or approximately-equals sign stands right before a number."""
    before = text[max(0, token.start - _EQUALS_REACH) : token.start].rstrip(" $*(\\{[")
    return before.endswith(("=", "\u2248", "\\approx"))
