"""Finding the number that a response gives as its answer, among all the numbers it mentions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from magicore.answers.markers import Site
from magicore.answers.number import ParsedNumber, parse_number
from magicore.answers.number_format import canonical_number
from magicore.answers.number_tokens import Token, after_equals, tokens
from magicore.answers.numerals import CARDINALS, SCALES
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines, finds_fault
from magicore.answers.response import Response, Sentence, closing_sentences, sentences

_CONCLUDES: Final = re.compile(
    r"[*_\s\->(\"]*(?:and\s+|but\s+)?(?:therefore|thus|so|hence|consequently|accordingly|in conclusion|to conclude"
    r"|in total|overall|finally|as a result|this means|that means|which means|we (?:find|get|have) that|altogether"
    r"|in summary|donc|ainsi|por lo tanto|entonces|also|daher|somit|folglich|quindi|portanto"
    r"|поэтому|итак|所以|因此|故|よって|したがって|따라서|لذا|إذن)\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"\([^()\n]*\)")
_BETWEEN_VERB_AND_NUMBER: Final = (
    r"(?:\s+(?:a|an|the|equal|to|now|also|only|approximately|about|around|roughly|exactly|just|therefore|thus|total|of"
    r"|in|then|still|left|with))*\s*[:$]?\s*[*_$\\({\[]*\s*$"
)
_IS: Final = re.compile(
    rf"\b(?:is|are|was|were|be|equals?|equal to|becomes?|gives?){_BETWEEN_VERB_AND_NUMBER}", re.IGNORECASE
)
_HAS: Final = re.compile(
    r"\b(?:makes?|total of|gets?|costs?|left with|remains?|about|approximately|around|exactly|only|have|has|had)"
    rf"{_BETWEEN_VERB_AND_NUMBER}",
    re.IGNORECASE,
)
_LEAD_IN: Final = re.compile(
    r"^[\W_]*(?:(?:and|so|thus|therefore|hence|then|but|now|also)\b,?\s*)?"
    r"(?:in|after|at|for|with|on|if|when|over|during|by|out of|of|from|since|given|before|within|every|each|once"
    r"|because|as|while)\b[^,:]*,",
    re.IGNORECASE,
)
_WORKING: Final = re.compile(
    r"^[\W_]*(?:let\b|let's|first\b|to (?:find|determine|calculate|solve|get|answer)\b"
    r"|we (?:need|can|know|have to)\b|\d{1,2}[.)]\s)|(?<![\w\\])[a-z]\s*[-+*/^=]|:$",
    re.IGNORECASE,
)
"""A sentence that sets out to work something out, or an equation in a variable."""
_COMMA: Final = re.compile(r"[\s$]*(?:\\text\{)?[,;]?\s*(?:and|\\quad)?[,;]?\s*\}?[\s$]*")
_WORD: Final = "|".join((*CARDINALS, *SCALES))
_NUMBER_WORDS: Final = re.compile(rf"\b(?:{_WORD})(?:[\s-]+(?:and\s+)?(?:{_WORD}))*\b", re.IGNORECASE)
_NOTHING_LEFT: Final = re.compile(
    r"\b(?:no (?:more )?\w+(?: \w+)? (?:left|remaining|remain|over)|nothing (?:is |was )?left"
    r"|none (?:are |is |were )?left)\b",
    re.IGNORECASE,
)
_ENDLESS: Final = re.compile(r"\binfinite(?:ly)?\b|\\infty|\binfinity\b", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"(?:\*\*|\\boxed\{)[\s$]*$")
_OR: Final = re.compile(r"\s*(?:\\text\{)?\s*,?\s*(?:or|oder|ou)\s*\}?[\s$*]*", re.IGNORECASE)
_TO: Final = re.compile(r"[-\u2013\u2014]|\s?\u2013\s?|\s+(?:to|through|until)\s+[$]?", re.IGNORECASE)
_OPERATOR: Final = re.compile(r"[-+*/^\u00d7\u00f7=]")
_REJECTED: Final = re.compile(r"(?:\bnot|n't)\s+(?:be\s+)?[$*]*$", re.IGNORECASE)
_LONE_LETTER: Final = r"(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z])"
_UNKNOWN: Final = re.compile(
    rf"\\(?:sqrt|pi|infty|log|ln|sin|cos|tan)(?![a-zA-Z])|{_LONE_LETTER}\s*[-+*/^]"
    r"|[-+*/^]\s*[\d.]*[a-zA-Z](?![a-zA-Z])|\d[b-fi-km-rt-zB-Z](?![a-zA-Z])"
)
"""An expression with a variable, a root or a function in it."""
_FORM_WORD: Final = re.compile(r"\b(?:your|answer|number|numerical|value|result)\b", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"\s*[*_]*\[[^\]\d\n]{3,200}\]")
_BETWEEN: Final = re.compile(r"\bbetween\s+[$*]*$", re.IGNORECASE)
_CLOSING: Final = re.compile(r"\bconfiden(?:ce|t)\b|\bhope (?:this|that|it)\b|\blet me know\b", re.IGNORECASE)
_LOOK_BACK: Final = 4000
_RESULTS: Final = 3
_LONGEST_GAP: Final = 60
_SHORT: Final = 60


@dataclass(frozen=True, kw_only=True)
class NumberReader:
    """Reads one response for its number."""

    response: Response

    def read(self, site: Site) -> Reading:
        """The number at a place that states an answer."""
        if site.content is None:
            return Nothing(reason="truncated")
        start, end = site.content
        if site.exact and self._is_word_of_boxed_sentence(site, start, end):
            return None
        return self._read_exact(start, end) if site.exact else self._read_open(start, end)

    def _is_word_of_boxed_sentence(self, site: Site, start: int, end: int) -> bool:
        """Whether this box holds a word, and another box stands right before it: a sentence boxed word by word."""
        before = self.response.text[max(0, site.start - 3) : site.start].rstrip(" ,")
        return before.endswith("}") and self.response.text[start:end].isalpha()

    def _read_exact(self, start: int, end: int) -> Reading:
        body = self.response.text[start:end]
        whole = parse_number(body.replace("\n", " "))
        if whole is not None:
            return Found(value=canonical_number(whole), start=start, end=end)
        if not body.strip(" .") or (_FORM_WORD.search(body) and not re.search(r"\d", body)):
            return None
        if declines(body):
            return Nothing(reason="refusal")
        inside = tokens(self.response.text, start, end)
        if not inside or _UNKNOWN.search(body):
            return Nothing(reason="not a number")
        if _listed(self.response.text, inside):
            return Nothing(reason="conflicting answers")
        return self.choose(Sentence(text=body, start=start, end=end))

    def _read_open(self, start: int, end: int) -> Reading:
        """The number in an answer's text: its first line if that is a bare number, else its conclusion."""
        if _PLACEHOLDER.match(self.response.text, start, end):
            return Nothing(reason="placeholder")
        parts = [part for part in sentences(self.response.text, start, end) if not _CLOSING.search(part.text)]
        if not parts:
            return None
        bare = self._bare(parts[0])
        if bare is not None:
            return bare
        if declines(parts[-1].text):
            return Nothing(reason="refusal")
        for part in reversed(parts):
            if _CONCLUDES.match(part.text):
                reading = self.choose(part)
                if reading is not None:
                    return reading
        working = _WORKING.search(parts[0].text) and not declines(parts[0].text)
        first = None if working else self.choose(parts[0])
        reading = first if first is not None else self._last_of(parts)
        return reading if reading is not None else self._spelled(parts[0])

    def _bare(self, part: Sentence) -> Reading:
        """The number that a line consists of, remarks in brackets aside."""
        number = parse_number(_ASIDE.sub("", part.text).strip())
        if number is None:
            return None
        found = tokens(self.response.text, part.start, part.end)
        start, end = (found[0].start, found[0].end) if found else (part.start, part.end)
        return Found(value=canonical_number(number), start=start, end=end)

    def _spelled(self, sentence: Sentence) -> Reading:
        """A number in words, or Nothing, in an answer that has no digits to read."""
        runs = [run for run in _NUMBER_WORDS.finditer(sentence.text) if run.group().lower() != "one"]
        value = parse_number(runs[0].group()) if len(runs) == 1 else None
        if value is None:
            return Nothing(reason="not a number")
        return _at(canonical_number(value), sentence, runs[0])

    def fallback(self) -> Reading:
        """The number of the closing sentences, where nothing marks an answer."""
        text = self.response.text
        body = text.strip()
        whole = parse_number(body) if len(body) <= _SHORT else None
        if whole is not None:
            start = text.index(body)
            return Found(value=canonical_number(whole), start=start, end=start + len(body), marker="whole-text")
        parts = [part for part in closing_sentences(text) if not _CLOSING.search(part.text)]
        reading = self._last_of(parts)
        if isinstance(reading, Found):
            return replace(reading, marker="last-number")
        return reading

    def _last_of(self, parts: Sequence[Sentence]) -> Reading:
        for part in reversed(parts):
            reading = self.choose(part)
            if reading is not None:
                return reading
        return None

    def choose(self, sentence: Sentence) -> Reading:
        """The one number of a sentence that answers; Nothing where it declines, doubts or gives a range."""
        text = self.response.text
        if declines(sentence.text) or finds_fault(sentence.text):
            return Nothing(reason="refusal")
        if _ENDLESS.search(sentence.text):
            return Nothing(reason="not a number")
        found = tokens(text, sentence.start, sentence.end)
        found = [token for token in found if not _REJECTED.search(text, max(0, token.start - 12), token.start)]
        if not found:
            nothing_left = _NOTHING_LEFT.search(sentence.text)
            return _at("0", sentence, nothing_left) if nothing_left else None
        doubt = _doubt(text, found)
        if doubt:
            return doubt
        outside = _outside_asides(sentence, found) or found
        chosen = (
            _last_after_equals(text, outside)
            or _emphasised(text, outside)
            or _after_verb(_IS, text, sentence, outside)
            or self._computed(sentence, outside)
            or _after_verb(_HAS, text, sentence, outside)
            or _past_lead_in(sentence, outside)
        )
        return Found(value=canonical_number(chosen.parsed), start=chosen.start, end=chosen.end)

    def _computed(self, sentence: Sentence, found: Sequence[Token]) -> Token | None:
        """The number that is among the last results computed before the sentence."""
        if len(found) == 1:
            return found[0]
        text, start = self.response.text, max(0, sentence.start - _LOOK_BACK)
        earlier = [token for token in tokens(text, start, sentence.start) if after_equals(text, token)]
        for result in reversed(earlier[-_RESULTS:]):
            for token in found:
                if token.value == result.value:
                    return token
        return None


def _at(value: str, sentence: Sentence, match: re.Match[str]) -> Found:
    return Found(value=value, start=sentence.start + match.start(), end=sentence.start + match.end())


def _last_after_equals(text: str, found: Sequence[Token]) -> Token | None:
    """The last side of the last equation; an exact fraction goes before its own rounding ("1/6 \u2248 0.167")."""
    at = next((index for index in reversed(range(len(found))) if after_equals(text, found[index])), None)
    if at is None:
        return None
    gap = text[found[at - 1].end : found[at].start].strip(" $") if at else ""
    exact = at > 0 and gap in {"\u2248", "\\approx"} and found[at - 1].parsed.decimals is None
    return found[at - 1] if exact else found[at]


def _emphasised(text: str, found: Sequence[Token]) -> Token | None:
    """The last number right after bold or in a box, unless the emphasis is on an equation."""
    return next(
        (token for token in reversed(found) if _EMPHASIS.search(text, max(0, token.start - 12), token.start)), None
    )


def _after_verb(verb: re.Pattern[str], text: str, sentence: Sentence, found: Sequence[Token]) -> Token | None:
    """The first number right after a verb that gives it."""
    return next(
        (token for token in found if verb.search(text, max(sentence.start, token.start - 40), token.start)), None
    )


def _past_lead_in(sentence: Sentence, found: Sequence[Token]) -> Token:
    lead = _LEAD_IN.match(sentence.text)
    past = [token for token in found if token.start >= sentence.start + lead.end()] if lead else []
    return (past or found)[0]


def _outside_asides(sentence: Sentence, found: Sequence[Token]) -> list[Token]:
    asides = [(sentence.start + m.start(), sentence.start + m.end()) for m in _ASIDE.finditer(sentence.text)]
    return [token for token in found if not any(a <= token.start < b for a, b in asides)]


def _listed(text: str, found: Sequence[Token]) -> bool:
    """Whether different numbers stand side by side as a list."""
    pairs = pairwise(found)
    return any(
        a.value != b.value and b.start - a.end <= _LONGEST_GAP and _COMMA.fullmatch(text[a.end : b.start])
        for a, b in pairs
    )


def _doubt(text: str, found: Sequence[Token]) -> Nothing | None:
    """Nothing where two numbers are offered, or a range."""
    for left, right in pairwise(found):
        gap = text[left.end : right.start]
        if left.value == right.value or len(gap) > _LONGEST_GAP:
            continue
        if _OR.fullmatch(gap) and not _approximates(left.parsed, right.parsed):
            return Nothing(reason="conflicting answers")
        around = text[max(0, left.start - 3) : left.start] + text[right.end : right.end + 3]
        if _TO.fullmatch(gap) and left.value < right.value and not _OPERATOR.search(around):
            return Nothing(reason="a range")
        if _BETWEEN.search(text[max(0, left.start - 12) : left.start]):
            return Nothing(reason="a range")
    return None


def _approximates(left: ParsedNumber, right: ParsedNumber) -> bool:
    """Whether one number is the other, rounded."""
    places = max(left.decimals or 0, right.decimals or 0)
    return abs(left.value - right.value) <= Fraction(1, 10**places) if places else False
