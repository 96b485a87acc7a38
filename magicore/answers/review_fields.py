"""The fields of a written review: its decision and its confidence. What is not stated is None, never a default."""

import re
from typing import Final, Literal

Decision = Literal["right", "wrong"]

_FIELD: Final = r"(?:decision|verdict|judge?ment)"
_MARKER: Final = re.compile(
    rf"\b{_FIELD}\b[\s*_#`\"']{{0,6}}[:=|>\u2013\u2014-]"
    rf"|\b(?:my|our|final) (?:\w+ )?{_FIELD} is\b"
    rf"|^[\s*_#>\d.)]{{0,8}}{_FIELD}[ \t*_#]{{0,6}}$",
    re.IGNORECASE | re.MULTILINE,
)
_ALTERNATIVES: Final = re.compile(
    r"[\s*_#`:\"']{0,6}(?:[\[(<][^\])>\n]*[|/][^\])>\n]*[\])>]"
    r"|(?:right|correct|accept)\s*(?:/|\||\bor\b)\s*(?:wrong|incorrect|reject)\b"
    r"|(?:wrong|incorrect|reject)\s*(?:/|\||\bor\b)\s*(?:right|correct|accept)\b)",
    re.IGNORECASE,
)
_VERDICT: Final = re.compile(
    r"[\s*_#`:\"'\[(<|]{0,12}(?:(?:that )?the (?:author|answer|solution)(?:'s \w+)? is )?(?P<denied>not |in-?|un)?"
    r"(?P<word>right|correct|accept(?:ed|able)?|valid|wrong|false|reject(?:ed)?|flawed|mistaken|error|erroneous)\b",
    re.IGNORECASE,
)
_RIGHT: Final = frozenset({"right", "correct", "accept", "accepted", "acceptable", "valid"})

_RATED: Final = re.compile(r"\bconfiden(?:ce|t)\b", re.IGNORECASE)
_SCALE_NOTE: Final = re.compile(
    r"[\[(<]\s*(?:\w+\s+)?(?:scale\s+)?(?:of\s+|from\s+)?\d+\s*(?:-|\u2013|to|\.\.)\s*\d+[^\])>\n]{0,20}[\])>]"
    r"|\b(?:on a |a )?scale (?:of|from) \d+ (?:to|-|\u2013) \d+",
    re.IGNORECASE,
)
_SCORE: Final = r"(?<![\d.])(\d{1,2}(?:\.\d+)?)(?![\d%])(?!\.\d)(?!\s*(?:-|\u2013)\s*\d)"
_AFTER: Final = re.compile(
    r"(?:[^.\n]{0,80}?(?::|=|\(|\[|\bas\b|\bis\b|\bof\b|\bat\b|\blevel\b)[\s*_\[(#`]{0,8}(?:an?\s+|around\s+|about\s+)?"
    rf"|[ \t*_#]{{0,6}}\n[\s*_#]{{0,6}}){_SCORE}",
    re.IGNORECASE,
)
_OUT_OF: Final = re.compile(rf"{_SCORE}\s*(?:/|out of)\s*(\d{{1,3}})(?!\d)", re.IGNORECASE)
_PERCENT: Final = re.compile(r"[^.\n\d]{0,40}?(\d{1,3}(?:\.\d+)?)\s*%")
_WHOLE: Final = 100
_WORDED: Final = re.compile(
    r"(?:\s+level)?[\s*_#`]{0,6}(?::|=|\bis\b)[\s*_#`\[(]{0,8}((?:very\s+)?(?:low|high)|medium|moderate)\b",
    re.IGNORECASE,
)
_WORDS: Final = {"very low": 0.0, "low": 0.25, "medium": 0.5, "moderate": 0.5, "high": 0.75, "very high": 1.0}


def read_decision(text: str) -> Decision | None:
    """The decision of a review or meta-review: what its last "Decision:" says.

    "Incorrect" is wrong and "correct" is right; "inconclusive", an unfilled template and no decision at all are None.

    >>> read_decision("**Decision:** incorrect")
    'wrong'
    """
    found = find_decision(text)
    return None if found is None else found[0]


def find_decision(text: str) -> tuple[Decision, int, int] | None:
    """The decision as :func:`read_decision` reads it, and where in the text its word begins and ends."""
    decision: tuple[Decision, int, int] | None = None
    for marker in _MARKER.finditer(text):
        echo = _ALTERNATIVES.match(text, marker.end())
        verdict = _VERDICT.match(text, echo.end() if echo else marker.end())
        if verdict:
            right = verdict["word"].lower() in _RIGHT
            said: Decision = "right" if right == (verdict["denied"] is None) else "wrong"
            decision = said, verdict.start("word" if verdict["denied"] is None else "denied"), verdict.end()
    return decision


def read_confidence(text: str, scale: tuple[float, float] = (1, 5)) -> float | None:
    """The confidence that a review states, on `scale` (inclusive); None if it states none.

    The number after the last "confidence" that has one, else a percentage or a word there, else a lone rating such as
    "10/10". A percentage is a share of the scale's top (80 % of 5 is 4); very low, low, medium, high and very high
    divide the scale evenly (high of 1 to 5 is 4). A number off the scale is not a confidence on it.

    >>> read_confidence("I would rate my confidence in this feedback as 9.5 out of 10.", (1, 10))
    9.5
    """
    body = _SCALE_NOTE.sub(" ", text)
    rated = list(reversed(list(_RATED.finditer(body))))
    for field in rated:
        score = _AFTER.match(body, field.end())
        if score and scale[0] <= float(score[1]) <= scale[1]:
            return float(score[1])
    for field in rated:
        stated = _PERCENT.match(body, field.end())
        if stated and float(stated[1]) <= _WHOLE:
            return max(scale[0], scale[1] * float(stated[1]) / _WHOLE)
        worded = _WORDED.match(body, field.end())
        if worded:
            return scale[0] + (scale[1] - scale[0]) * _WORDS[" ".join(worded[1].lower().split())]
    ratings = [match for match in _OUT_OF.finditer(body) if float(match[2]) == scale[1]]
    values = {float(match[1]) for match in ratings}
    return values.pop() if len(values) == 1 and scale[0] <= min(values) <= scale[1] else None
