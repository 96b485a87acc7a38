"""The fields of a written review: its decision and its confidence. What is not stated is None, never a default."""

import re
from typing import Final, Literal

Decision = Literal["right", "wrong"]

_MARKER: Final = re.compile(
    r"\b(?:decision|verdict|judge?ment)\b[\s*_#`]{0,6}[:=]|\b(?:my|our|final) (?:\w+ )?(?:decision|verdict|judge?ment) is\b",
    re.IGNORECASE,
)
_ALTERNATIVES: Final = re.compile(r"[\[(<][^\])>\n]*[|/][^\])>\n]*[\])>]")
_VERDICT: Final = re.compile(
    r"[\s*_#`:\"'\[(<]{0,12}(?:the (?:author|answer|solution)(?:'s \w+)? is )?(?P<denied>not |in-?|un)?"
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
    rf"[^.\n]{{0,80}}?(?::|=|\(|\[|\bas\b|\bis\b|\bof\b|\bat\b|\blevel\b)[\s*_\[(#`]{{0,8}}(?:an?\s+|around\s+|about\s+)?{_SCORE}",
    re.IGNORECASE,
)
_OUT_OF: Final = re.compile(rf"{_SCORE}\s*(?:/|out of)\s*(\d{{1,3}})(?!\d)", re.IGNORECASE)


def read_decision(text: str) -> Decision | None:
    """The decision of a review or meta-review: what its last "Decision:" says.

    "Incorrect" is wrong and "correct" is right; "inconclusive", an unfilled template and no decision at all are None.

    >>> read_decision("**Decision:** incorrect")
    'wrong'
    """
    decision: Decision | None = None
    for marker in _MARKER.finditer(text):
        line = text[marker.end() : marker.end() + 200]
        verdict = _VERDICT.match(_ALTERNATIVES.sub(" ", line))
        if verdict:
            right = verdict["word"].lower() in _RIGHT
            decision = "right" if right == (verdict["denied"] is None) else "wrong"
    return decision


def read_confidence(text: str, scale: tuple[float, float] = (1, 5)) -> float | None:
    """The confidence that a review states as a number on `scale` (inclusive); None if it states none.

    The number after the last "confidence" that has one, else a lone rating such as "10/10". A percentage or a number
    off the scale is not a confidence on it.

    >>> read_confidence("I would rate my confidence in this feedback as 9.5 out of 10.", (1, 10))
    9.5
    """
    body = _SCALE_NOTE.sub(" ", text)
    for rated in reversed(list(_RATED.finditer(body))):
        score = _AFTER.match(body, rated.end())
        if score and scale[0] <= float(score[1]) <= scale[1]:
            return float(score[1])
    ratings = [match for match in _OUT_OF.finditer(body) if float(match[2]) == scale[1]]
    values = {float(match[1]) for match in ratings}
    return values.pop() if len(values) == 1 and scale[0] <= min(values) <= scale[1] else None
