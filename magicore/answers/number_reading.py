"""Finding the number that a response gives as its answer, among all the numbers it mentions."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from magicore.answers.markers import Site
from magicore.answers.number import ParsedNumber, parse_number
from magicore.answers.numerals import CARDINALS, SCALES
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines, finds_fault
from magicore.answers.response import Response, Sentence, closing_sentences, sentences
from magicore.answers.units import CURRENCY_SIGNS, known_unit

_SEP: Final = r"(?:,|\{,\}|,?\\!|,?\\,|'|_|\.|[ ](?=\d{3}(?!\d)))"
_RUN: Final = rf"(?:\d+(?:{_SEP}\d+)*|(?<![\w.])\.\d+)"
_FRAC: Final = r"\\[dtc]?frac\s*(?:\{[^{}\n]{1,40}\}|\d)\s*(?:\{[^{}\n]{1,40}\}|\d)"
_TOKEN: Final = re.compile(
    rf"""
    (?: \d+[ ]?{_FRAC} | {_FRAC}
      | \d+(?:[ ]|[ ]and[ ])\d+/\d+(?![\d/])
      | {_RUN}[ ]?/[ ]?{_RUN}(?![\d/])
      | \d{{1,2}}:[0-5]\d(?!\d)
      | 10\s?\^\s?(?:\{{\s?-?\d{{1,5}}\s?\}}|-?\d{{1,5}})
      | \d*\.\d*(?:\\overline\{{?\d+\}}?|\(\d+\))
      | {_RUN}(?:[eE][+-]?\d{{1,5}}(?!\w)|\s?(?:\\times|\\cdot|[x\u00d7*])\s?10\s?\^\s?\{{?\s?-?\d{{1,5}}\s?\}}?)?
      | [\u00bd\u2153\u2154\u00bc\u00be\u215b-\u215e]
    )
    (?:[\u00bd\u2153\u2154\u00bc\u00be\u215b-\u215e])?
    (?:\s(?:hundred|thousand|million|billion|trillion|lakh|crore)\b)?
    (?:\s?\\?%|\s(?:percent|per\scent)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    rf"(?P<outer>[-\u2013+\u00b1]?)\s?(?P<money>(?:US|A|C)?\\?[{re.escape(CURRENCY_SIGNS)}]|\bRs\.?)?\s?(?P<inner>[-\u2013+\u00b1]?)\s?$"
)
_OPERAND: Final = re.compile(r"(?:[\d)\]}%!]|(?<![A-Za-z])[A-Za-z])\s*$")
_GLUED: Final = re.compile(r"[A-Za-z]+")
_ORDINAL: Final = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"\b(?:step|steps|equation|eq\.?|option|case|part|example|figure|table|question|problem|method|chapter|agent|solution|note|level|round)s?\s*[#(]?\s*$",
    re.IGNORECASE,
)
_LIST_MARK: Final = re.compile(r"(?:^|\n)[ \t>*_#-]*\(?$")
_LIST_TAIL: Final = re.compile(r"[.):][*_]{0,2}(?:\s|$)")
_REACH: Final = 12
_GAP: Final = 240
_MOST_TOKENS: Final = 400
_LONGEST_TOKEN: Final = 400
_LOOK_BACK: Final = 4000
_RESULTS: Final = 3
_LONGEST_GAP: Final = 60
_SHORT: Final = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A number in running text: its span with sign, currency and percent, its value, and whether it names a list item."""

    start: int
    end: int
    parsed: ParsedNumber

    @property
    def value(self) -> Fraction:
        return self.parsed.value


def tokens(text: str, start: int, end: int) -> list[Token]:
    """The numbers in `text[start:end]`; variables with coefficients, labels, list marks and ordinals are none."""
    found: list[Token] = []
    for match in deque(_TOKEN.finditer(text, start, end), maxlen=_MOST_TOKENS):
        if match.end() - match.start() <= _LONGEST_TOKEN:
            found.extend(_read_token(text, match, start, end))
    return found


def _read_token(text: str, match: re.Match[str], start: int, end: int) -> list[Token]:
    first, last = match.span()
    if first > start and (text[first - 1] in "^_\\" or text[first - 1].isalpha() and text[first - 1].isascii()):
        return []
    if _GLUED.match(text, last, end) and not _unit_glued(text, last, end):
        return []
    if text.startswith("^", last) or _is_ratio(text, match) or _is_label(text, first, last, start):
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
    word = _GLUED.match(text, at, end)
    if word is None or _ORDINAL.match(text, at):
        return False
    lone = word.group() not in {"m", "g", "s", "L", "l", "h", "K", "k", "M", "B"} and len(word.group()) == 1
    return not lone and (known_unit(word.group()) is not None or word.group() in {"am", "pm", "AM", "PM", "k", "K", "M", "B"})


def _is_ratio(text: str, match: re.Match[str]) -> bool:
    """Whether a number is one side of a ratio such as 3:4."""
    first, last = match.span()
    return bool(re.match(r":\d", text[last : last + 2]) or re.search(r"\d:$", text[max(0, first - 2) : first]))


def _is_label(text: str, first: int, last: int, start: int) -> bool:
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


_CONCLUDES: Final = re.compile(
    r"[*_\s\->(\"]*(?:and\s+|but\s+)?(?:therefore|thus|so|hence|consequently|accordingly|in conclusion|to conclude|in total|overall|finally"
    r"|as a result|this means|that means|which means|we (?:find|get|have) that|altogether|in summary"
    r"|donc|ainsi|por lo tanto|entonces|also|daher|somit|folglich|quindi|portanto|поэтому|итак|所以|因此|故|よって|したがって|따라서|لذا|إذن)\b",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"\([^()\n]*\)")
_FILL: Final = (
    r"(?:\s+(?:a|an|the|equal|to|now|also|only|approximately|about|around|roughly|exactly|just|therefore|thus|total|of|in|then|still|left|with))*"
    r"\s*[:$]?\s*[*_$\\({\[]*\s*$"
)
_IS: Final = re.compile(rf"\b(?:is|are|was|were|be|equals?|equal to|becomes?|gives?){_FILL}", re.IGNORECASE)
_HAS: Final = re.compile(
    rf"\b(?:makes?|total of|get|gets|costs?|left with|remains?|about|approximately|around|exactly|only|have|has|had){_FILL}", re.IGNORECASE
)
_LEAD_IN: Final = re.compile(
    r"^[\W_]*(?:(?:and|so|thus|therefore|hence|then|but|now|also)\b,?\s*)?"
    r"(?:in|after|at|for|with|on|if|when|over|during|by|out of|of|from|since|given|before|within|every|each|once|because|as|while)\b[^,:]*,",
    re.IGNORECASE,
)
_WORKING: Final = re.compile(
    r"^[\W_]*(?:let\b|let's|first\b|to (?:find|determine|calculate|solve|get|answer)\b|we (?:need|can|know|have to)\b|\d{1,2}[.)]\s)|(?<![\w\\])[a-z]\s*[-+*/^=]|:$",
    re.IGNORECASE,
)
_COMMA: Final = re.compile(r"[\s$]*(?:\\text\{)?[,;]?\s*(?:and|\\quad)?[,;]?\s*\}?[\s$]*")
_NUMBER_WORDS: Final = re.compile(
    rf"\b(?:{'|'.join((*CARDINALS, *SCALES))})(?:[\s-]+(?:and\s+)?(?:{'|'.join((*CARDINALS, *SCALES))}))*\b", re.IGNORECASE
)
_NOTHING_LEFT: Final = re.compile(
    r"\b(?:no (?:more )?\w+(?: \w+)? (?:left|remaining|remain|over)|nothing (?:is |was )?left|none (?:are |is |were )?left)\b", re.IGNORECASE
)
_ENDLESS: Final = re.compile(r"\binfinite(?:ly)?\b|\\infty|\binfinity\b", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"(?:\*\*|\\boxed\{)[\s$]*$")
_OR: Final = re.compile(r"\s*(?:\\text\{)?\s*,?\s*(?:or|oder|ou)\s*\}?[\s$*]*", re.IGNORECASE)
_TO: Final = re.compile(r"[-\u2013\u2014]|\s?\u2013\s?|\s+(?:to|through|until)\s+[$]?", re.IGNORECASE)
_OPERATOR: Final = re.compile(r"[-+*/^\u00d7\u00f7=]")
_REJECTED: Final = re.compile(r"(?:\bnot|n't)\s+(?:be\s+)?[$*]*$", re.IGNORECASE)
_UNKNOWN: Final = re.compile(
    r"\\(?:sqrt|pi|infty|log|ln|sin|cos|tan)(?![a-zA-Z])|(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z])\s*[-+*/^]|[-+*/^]\s*[\d.]*[a-zA-Z](?![a-zA-Z])|\d[b-fi-km-rt-zB-Z](?![a-zA-Z])"
)
_PLACEHOLDER: Final = re.compile(r"\s*[*_]*\[[^\]\d\n]{3,200}\]")
_BETWEEN: Final = re.compile(r"\bbetween\s+[$*]*$", re.IGNORECASE)
_CLOSING: Final = re.compile(r"\bconfiden(?:ce|t)\b|\bhope (?:this|that|it)\b|\blet me know\b", re.IGNORECASE)


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
        if not body.strip(" .") or re.search(r"\b(?:your|answer|number|numerical|value|result)\b", body, re.IGNORECASE) and not re.search(r"\d", body):
            return None
        if declines(body):
            return Nothing(reason="refusal")
        inside = tokens(self.response.text, start, end)
        if not inside or _UNKNOWN.search(body):
            return Nothing(reason="not a number")
        if _listed(self.response.text, inside):
            return Nothing(reason="conflicting answers")
        sentence = Sentence(text=body, start=start, end=end)
        return self.choose(sentence)

    def _read_open(self, start: int, end: int) -> Reading:
        """The number in an answer's text: its first line if that is a bare number, else its conclusion."""
        if _PLACEHOLDER.match(self.response.text, start, end):
            return Nothing(reason="placeholder")
        parts = [part for part in sentences(self.response.text, start, end) if not _CLOSING.search(part.text)]
        if not parts:
            return None
        for part in parts[:1]:
            bare = parse_number(_ASIDE.sub("", part.text).strip())
            if bare is not None:
                found = tokens(self.response.text, part.start, part.end)
                span = (found[0].start, found[0].end) if found else (part.start, part.end)
                return Found(value=canonical_number(bare), start=span[0], end=span[1])
        for part in reversed(parts):
            if _CONCLUDES.match(part.text):
                reading = self.choose(part)
                if reading is not None:
                    return reading
        working = _WORKING.search(parts[0].text) and not declines(parts[0].text)
        first = None if working else self.choose(parts[0])
        reading = first if first is not None else self._last_of(parts)
        return reading if reading is not None else self._spelled(parts[0])

    def _spelled(self, sentence: Sentence) -> Reading:
        """A number in words, or Nothing, in an answer that has no digits to read."""
        runs = [run for run in _NUMBER_WORDS.finditer(sentence.text) if run.group().lower() != "one"]
        value = parse_number(runs[0].group()) if len(runs) == 1 else None
        if value is None:
            return Nothing(reason="not a number")
        return Found(
            value=canonical_number(value), start=sentence.start + runs[0].start(), end=sentence.start + runs[0].end()
        )

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
            return Found(value=reading.value, start=reading.start, end=reading.end, marker="last-number")
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
            start = sentence.start + nothing_left.start() if nothing_left else 0
            return Found(value="0", start=start, end=start + len(nothing_left.group())) if nothing_left else None
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
        earlier = [token for token in tokens(text, start, sentence.start) if _after_equals(text, token)]
        for result in reversed(earlier[-_RESULTS:]):
            for token in found:
                if token.value == result.value:
                    return token
        return None


def _after_equals(text: str, token: Token) -> bool:
    before = text[max(0, token.start - _GAP) : token.start].rstrip(" $*(\\{[")
    return before.endswith(("=", "\u2248", "\\approx"))


def _last_after_equals(text: str, found: Sequence[Token]) -> Token | None:
    """The last side of the last equation; an exact fraction goes before its own rounding ("1/6 \u2248 0.167")."""
    at = next((index for index in reversed(range(len(found))) if _after_equals(text, found[index])), None)
    if at is None:
        return None
    gap = text[found[at - 1].end : found[at].start].strip(" $") if at else ""
    exact = at > 0 and gap in {"\u2248", "\\approx"} and found[at - 1].parsed.decimals is None
    return found[at - 1] if exact else found[at]


def _emphasised(text: str, found: Sequence[Token]) -> Token | None:
    """The last number right after bold or in a box, unless the emphasis is on an equation."""
    return next((token for token in reversed(found) if _EMPHASIS.search(text, max(0, token.start - 12), token.start)), None)


def _after_verb(verb: re.Pattern[str], text: str, sentence: Sentence, found: Sequence[Token]) -> Token | None:
    """The first number right after a verb that gives it."""
    return next((token for token in found if verb.search(text, max(sentence.start, token.start - 40), token.start)), None)


def _past_lead_in(sentence: Sentence, found: Sequence[Token]) -> Token:
    lead = _LEAD_IN.match(sentence.text)
    past = [token for token in found if token.start >= sentence.start + lead.end()] if lead else []
    return (past or found)[0]


def _outside_asides(sentence: Sentence, found: Sequence[Token]) -> list[Token]:
    asides = [(sentence.start + m.start(), sentence.start + m.end()) for m in _ASIDE.finditer(sentence.text)]
    return [token for token in found if not any(a <= token.start < b for a, b in asides)]


def _listed(text: str, found: Sequence[Token]) -> bool:
    """Whether different numbers stand side by side as a list."""
    pairs = zip(found, found[1:], strict=False)
    return any(
        a.value != b.value and b.start - a.end <= _LONGEST_GAP and _COMMA.fullmatch(text[a.end : b.start])
        for a, b in pairs
    )


def _doubt(text: str, found: Sequence[Token]) -> Nothing | None:
    """Nothing where two numbers are offered, or a range."""
    for left, right in zip(found, found[1:], strict=False):
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


def canonical_number(number: ParsedNumber) -> str:
    """The value as text: a decimal where it ends, else a fraction; a percentage keeps its sign.

    >>> canonical_number(ParsedNumber(value=Fraction(33, 250), percent=True))
    '13.2%'
    """
    value = number.value * 100 if number.percent else number.value
    text = _decimal(value) or f"{value.numerator}/{value.denominator}"
    return f"{text}%" if number.percent else text


_LONGEST_DECIMAL: Final = 30


def _decimal(value: Fraction) -> str | None:
    """`value` as a terminating decimal, or None if it has none of reasonable length."""
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1 or places > _LONGEST_DECIMAL:
        return None
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, part = (digits[:-places], digits[-places:].rstrip("0")) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + (f".{part}" if part else "")
