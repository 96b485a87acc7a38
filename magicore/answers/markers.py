"""Where a response states its answer: boxes, tags, "####", "Answer:", "the answer is", in several languages."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from magicore.answers.boxed import boxes

Marker = Literal[
    "boxed", "tag", "hash", "final-answer", "answer-colon", "answer-is", "emphasis", "conclusion", "last-line",
    "last-sentence", "last-number", "last-letter", "leading-word", "whole-text",
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
_HASH: Final = re.compile(r"(?<!#)####(?!#)[ \t]*(?=\S)")
_IS: Final = r"(?:is|are|(?:would|should|will|must|can|could|may|might)\ (?:then\ |also\ |therefore\ )?be|(?:would\ |should\ )?leans?\ towards?|to\ be|remains|becomes|equals)"
_ADVERB: Final = r"(?:,?\s*(?:therefore|thus|then|hence|simply|just|clearly|indeed|actually|still|also|now|again|likely|most\ likely|probably|definitely)\b,?)?"
_WORD: Final = re.compile(
    rf"""
    (?P<final>\bfinal\s+(?:\w+\s+)?|\bfinal(?=answer))?
    (?: \banswers?\b
      | \b(?:correct|accurate|appropriate|final|best|revised|updated|right|chosen)\ (?:response|option|choice|statement|letter)\b)
    (?:
        [*_\s]{{0,3}}(?:choice|option|letter|value|key)?
        [*_\s]{{0,3}}(?:\([^()\n]{{0,60}}\))?[*_`\s]{{0,3}}(?P<colon>[:=]|\u2192|->)[*_\s]{{0,3}}
      |
        (?:\s+(?:choice|option|letter|value))?
        (?:\s+(?:to|for|of|in|from|that|we|you|I|which|as|based|given|after|among|here)\b[^.!?\n:"]{{0,120}}?(?:"[^"\n]{{0,160}}"[^.!?\n:"]{{0,80}}?)?)?
        (?:,[^.!?\n:",]{{0,100}},)?{_ADVERB}\s*(?<![\w])(?P<is>{_IS})\b{_ADVERB}[*_\s]{{0,3}}:?
      |
        (?P<bare>[*_]{{0,2}}[ \t]*\n|[ \t]+(?=[$\d(\\]))
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TIE: Final = r"[*_\s]{0,3}(?::|=|\u2192|->|est|es|ist|lautet|\u00e8|\u00e9|e|\u00e4r|er|on|jest|là|adalah|\u6709|\u662f|\u4e3a|\u70ba|\u306f|\u0647\u064a|\u0647\u0648|\u2014|-)(?![a-z])[*_\s]{0,3}:?"
_ABROAD: Final = re.compile(
    rf"""
    (?:\b(?:r[\u00e9e]ponse|respuesta|antwort|risposta|resposta|odpowied\u017a|\u0111\u00e1p\s\u00e1n|jawaban|svar|vastaus|cevap
        |resultado|r[\u00e9e]sultat|ergebnis|l\u00f6sung|soluci\u00f3n|result|resultat|\u043e\u0442\u0432\u0435\u0442|\u0627\u0644\u0625\u062c\u0627\u0628\u0629|\u0627\u0644\u062c\u0648\u0627\u0628)\b
       (?:[ ]\w{{1,14}})?{_TIE})
    | (?:\u7b54\u6848|\u7b54\u3048|\u6b63\u89e3|\u7ed3\u679c|\u7d50\u679c|\u89e3\u7b54)\s*(?:\u9009\u9879|\u9078\u9805)?\s*(?:\u662f|\u4e3a|\u70ba|\u306f|\u9009|\u9078|[:=])[*_\s]{{0,3}}[:]?
    | (?:\uc815\ub2f5|\ub2f5)\s?(?:\uc740|:)[*_\s]{{0,3}}
    | (?:\u0909\u0924\u094d\u0924\u0930)\s*(?:\u0939\u0948|:)[*_\s]{{0,3}}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NOT_ITS_ANSWER: Final = re.compile(
    r"\s*(?:\bnot\b(?!\s+(?:listed|among|possible|given|provided|available|determin|clear|known|specified|enough))"
    r"|(?:also |indeed |actually |still )?(?:correct|incorrect|wrong|right|accurate|inaccurate|consistent|based|valid|reasonable|the same|clear)\b(?!\s*[:,(]?\s*[\d$\\(\[])"
    r"|unlikely)",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(
    r"\b(?:previous|initial|earlier|original|first|old|agent'?s?|other agents?'?|their|his|her|student'?s?|author'?s?)\W+(?:\w+\W+)?$",
    re.IGNORECASE,
)
_CHANGED: Final = re.compile(
    r"\b(?:revis(?:e|ed|ing)|chang(?:e|ed|ing)|updat(?:e|ed|ing)|correct(?:ed|ing)?|amend(?:ed)?) (?:my|the|our) (?:\w+ )?answer (?:to|as)\b:?",
    re.IGNORECASE,
)
_ON_SECOND_THOUGHT: Final = re.compile(
    r"\b(?:[Ww]ait|[Aa]ctually|[Cc]orrection|[Oo]ops|[Ss]orry|[Nn]o),[^.!?\n]{0,40}?\b(?:it's|it is|it should be|should be|it must be|that's)\b(?! not)"
    r"(?=[\s*_$\\(\"']{1,6}(?:-?\d|[A-Z]\b|yes\b|no\b|frac|boxed))"
)
_CORRECTED: Final = re.compile(r"\b[Tt]he (?:correct|corrected|right|actual) (?!answer)(?:\w+ ){1,6}?is (?=[\d$(*-])")
_HEADING: Final = re.compile(
    r"\n[ \t*_#]*+(?:my\s)?(?:overall\s)?(?:confidence|justification|note|disclaimer|explanation|feedback)\b[^\n:]{0,40}:"
    r"|\bconfidence\s*(?:level|score|rating)?[^\n.:]{0,30}(?::|=|\bis\b|\bof\b)",
    re.IGNORECASE,
)


def sites(text: str) -> list[Site]:
    """Every place in `text` that states an answer, in order of where it begins."""
    starts = [
        *((match.start(), match.end(), _marker(match)) for match in _WORD.finditer(text) if _states(text, match)),
        *((match.start(), match.end(), "answer-colon") for match in _ABROAD.finditer(text)),
        *((match.start(), match.end(), "answer-is") for match in _CHANGED.finditer(text)),
        *((match.start(), match.end(), "answer-is") for match in _CORRECTED.finditer(text)),
        *((match.start(), match.end(), "answer-is") for match in _ON_SECOND_THOUGHT.finditer(text)),
        *((match.start(), match.end(), "hash") for match in _HASH.finditer(text)),
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
    if match["is"] and _OTHERS.search(text, max(0, match.start() - 40), match.start()):
        return False
    return not (match["is"] and _NOT_ITS_ANSWER.match(text, match.end()))


def _open_sites(text: str, starts: list[tuple[int, int, Marker]]) -> list[Site]:
    """Sites without a closing delimiter: their content runs to the next such site or heading, or to the end."""
    found: list[Site] = []
    headings = [match.start() for match in _HEADING.finditer(text)]
    stop = len(text)
    for start, end, marker in sorted(starts, reverse=True):
        while headings and headings[-1] >= end:
            stop = min(stop, headings.pop())
        found.append(Site(marker=marker, start=start, content=(end, max(end, stop))))
        stop = min(stop, start)
    return found
