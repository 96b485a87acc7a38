"""Sentences that decline to answer."""

import re
from typing import Final

_GIVING: Final = (
    "determin|provid|answer|calculat|find|give|solv|say|ascertain|conclu|establish|know|confirm|comput|tell|state|make"
    "|specif|verif|deduc|identif|decide|assess|estimate|offer"
)
_REFUSAL: Final = re.compile(
    rf"""
    \b(?:can(?:not|'t|\ not)|could(?:\ not|n't)|unable\ to|(?:not|im)\s?possible\ (?:for\ \w+\ )?to|not\ able\ to
        |difficult\ to|hard\ to|no\ way\ to)
      \s+(?:be\s+)?(?:\w+ly\s+)?(?:and\s+\w+ly\s+)?(?:{_GIVING})\w*
    | \b(?:not\ enough|insufficient|inadequate|lack\ of|need\ more|missing
        |without\ (?:more|further|additional|any|specific|the|this|knowing|that)\w*)
      \s+(?:\w+\s+){{0,2}}?information\b
    | \bno\ (?:\w+\s+){{0,2}}?(?:solution|answer)s?\b(?!\s+choice)
    | \bnot\ (?:solvable|answerable|determinable|(?:a\ )?valid\ (?:question|problem))\b | \bunsolvable\b
    | \b(?:unknown|undetermined|indeterminate|inconclusive|unanswerable|undefined|ambiguous|uncertain|unclear
        |not\ clear)\b
    | \b(?:need|seek|request|requir)\w*\ (?:\w+\ ){{0,2}}?clarification\b
    | \b(?:do|does|did)(?:\ not|n't)\ (?:provide|give|have|contain|specify)\ (?:\w+\s+){{0,3}}?
      (?:information|data|details)
    | \b(?:depends|dependent)\ on\b
    | \bdepending\ on\ (?:the|your|how|which)\ (?:\w+\ ){{0,2}}?(?:interpret|assum|context|scenario)\w*
    | \bI(?:\ am|'m)\ (?:not\ sure|sorry,\ but|unsure|uncertain) | \bI\ (?:don't|do\ not)\ know\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FAULT: Final = re.compile(
    r"\b(?:error|mistake|inconsisten\w+|contradict\w+|flaw)s?\b(?:\s+\w+){0,2}?\s+in\s+the\s+(?:\w+\s+){0,2}?"
    r"(?:problem|question|information|statement)",
    re.IGNORECASE,
)


def finds_fault(sentence: str) -> bool:
    """Whether a sentence says that the question is at fault, which declines an answer unless one is chosen anyway."""
    return _FAULT.search(sentence) is not None


def declines(sentence: str) -> bool:
    """Whether a sentence says that an answer cannot be given."""
    return _REFUSAL.search(sentence) is not None
