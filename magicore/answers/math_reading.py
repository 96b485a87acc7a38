"""Finding the expression that a response gives as its answer: as written, for the comparison to parse."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from magicore.answers.boxed import Box, boxes
from magicore.answers.latex import without_wrappers
from magicore.answers.markers import Site
from magicore.answers.number_reading import NumberReader
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines
from magicore.answers.response import Response, Sentence, closing_sentences, sentences

_MATH: Final = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$|\$(?P<inline>(?:\\\$|[^$\n])+)\$|\\\((?P<round>.+?)\\\)|\\\[(?P<square>.+?)\\\]",
    re.DOTALL,
)
_AND: Final = r"(?:\\text\{\s?and\s?\}|\band\b)"
_NEXT_IN_LIST: Final = re.compile(rf"[\s$.]*(?:[,;]|{_AND}|\\quad)+[\s$,;]*{_AND}?[\s$]*")
_COPULA: Final = re.compile(
    r"(?:\b(?:is|are|be|equals?|was|were|to|of|gives?|get)\b|=|:)"
    r"(?:\s+(?:equal to|exactly|simply|just|then|now|also))?\s*",
    re.IGNORECASE,
)
_COMMANDS: Final = re.compile(
    r"\\(?:text|mathrm|mathbf|textbf|mbox|operatorname)\s?\{[^{}]*\}|\\[a-zA-Z]+"
    r"|\b(?:sqrt|pi|sin|cos|tan|log|ln|exp|frac|inf|infty|or|and|infinity|deg|degrees)\b"
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_NAMED: Final = re.compile(
    r"^(?:\\angle\s?[A-Za-z]+|m\\angle\s?[A-Za-z]+|[A-Za-z]{2,}|\\text\{[^{}]*\})\s*+=\s*+(?=[^=]*$)"
)
_SPACING: Final = (r"\,", r"\;", r"\:", r"\!", "\\ ", r"\displaystyle")
_DELIMITERS: Final = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_VARIABLE: Final = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
_NO_SOLUTION: Final = re.compile(
    r"(?:there (?:is|are) )?no (?:real |such |valid )?(?:solutions?|numbers?)|undefined|none", re.IGNORECASE
)
_FORM_WORDS: Final = re.compile(r"(?:your |the |final )*(?:answer|expression|result)", re.IGNORECASE)
_HAS_VALUE: Final = re.compile(r"\d|\\[a-zA-Z]|[a-zA-Z]")
_MOST_LAYERS: Final = 8
_LONGEST: Final = 100_000
_LONGEST_GAP: Final = 60
_LONGEST_IN_PROSE: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class MathReader:
    """Reads one response for an expression."""

    response: Response

    @cached_property
    def _boxes(self) -> list[Box]:
        return boxes(self.response.text)

    def read(self, site: Site) -> Reading:
        """The expression at a place that states an answer."""
        if site.content is None:
            return Nothing(reason="truncated")
        start, end = site.content
        if site.exact:
            start = self._start_of_list(site, start)
            return self._boxed(start, end) if start != site.content[0] else self._expression(start, end)
        parts = list(sentences(self.response.text, start, end))
        if not parts:
            return None
        if _is_math(parts[0].text):
            return self._expression(parts[0].start + _past_equals(parts[0].text), parts[0].end)
        reading = self._sentence(parts[0])
        return reading if reading is not None else self._last_of(parts[1:])

    def fallback(self) -> Reading:
        """The expression of the closing sentences, where nothing marks an answer."""
        text = self.response.text
        return self._last_of(closing_sentences(text))

    def _last_of(self, parts: list[Sentence]) -> Reading:
        for part in reversed(parts):
            reading = self._sentence(part)
            if reading is not None:
                return reading
        return None

    def _start_of_list(self, site: Site, start: int) -> int:
        """Where a list of boxes that ends with this one begins: three boxes with commas between are one answer."""
        first, following = start, site.start
        for box in reversed(self._boxes[: bisect_left(self._boxes, site.start, key=lambda box: box.start)]):
            if box.inner is None or not _follows(self.response.text, box.end, following):
                break
            first, following = box.inner[0], box.start
        return first

    def _boxed(self, start: int, end: int) -> Reading:
        """The contents of adjacent boxes as one list."""
        inner = [box.inner for box in self._boxes if box.inner and start <= box.inner[0] <= end]
        items = [trimmed(self.response.raw[a:b]) for a, b in inner]
        return Found(value=", ".join(items), start=start, end=end)

    def _expression(self, start: int, end: int) -> Reading:
        raw = self.response.raw[start:end]
        if len(raw) > _LONGEST or not _HAS_VALUE.search(raw):
            return None
        value = trimmed(raw)
        if not value or _FORM_WORDS.fullmatch(value):
            return None
        words_only = not re.search(r"\d|\\", value.replace("\\text", ""))
        if words_only and declines(value) and not _NO_SOLUTION.fullmatch(without_wrappers(value)):
            return Nothing(reason="refusal")
        return Found(value=value, start=start, end=end)

    def _sentence(self, sentence: Sentence) -> Reading:
        """The expression that a sentence ends in: its last formula, or what follows "is"."""
        if declines(sentence.text):
            return Nothing(reason="refusal")
        formulas = list(_MATH.finditer(sentence.text)) if len(sentence.text) <= _LONGEST_IN_PROSE else []
        tail = self._tail(sentence)
        if formulas and (tail is None or formulas[-1].end() >= tail[0]):
            return self._formulas(sentence, formulas)
        if tail is not None:
            return self._expression(sentence.start + tail[0], sentence.start + tail[1])
        return self._number(sentence)

    def _formulas(self, sentence: Sentence, formulas: list[re.Match[str]]) -> Reading:
        """The last formula, with those that it ends a list of: "$x=1$ and $x=2$"."""
        first = len(formulas) - 1
        while first and _follows(sentence.text, formulas[first - 1].end(), formulas[first].start()):
            first -= 1
        if first < len(formulas) - 1:
            items = [trimmed(formula[formula.lastgroup or "inline"]) for formula in formulas[first:]]
            start, end = formulas[first].start(), formulas[-1].end()
            return Found(value=", ".join(items), start=sentence.start + start, end=sentence.start + end)
        group = formulas[-1].lastgroup or "inline"
        start, end = formulas[-1].span(group)
        return self._expression(sentence.start + start + _past_equals(formulas[-1][group]), sentence.start + end)

    def _tail(self, sentence: Sentence) -> tuple[int, int] | None:
        """What stands after the last "is" or "=", if that is an expression and not prose."""
        body = sentence.text[-_LONGEST_IN_PROSE:]
        offset = len(sentence.text) - len(body)
        for copula in reversed(list(_COPULA.finditer(body))):
            if _is_math(body[copula.end() :]):
                return offset + copula.end(), len(sentence.text)
        return None

    def _number(self, sentence: Sentence) -> Reading:
        reading = NumberReader(response=self.response).choose(sentence)
        return self._expression(reading.start, reading.end) if isinstance(reading, Found) else reading


def _follows(text: str, end: int, start: int) -> bool:
    """Whether what begins at `start` is the next item of a list after what ended at `end`."""
    return start - end <= _LONGEST_GAP and _NEXT_IN_LIST.fullmatch(text, end, start) is not None


def _past_equals(formula: str) -> int:
    """Where the last side of a chain of equations between numbers begins; 0 for an equation in a variable."""
    at = formula.rfind("=")
    left, right = formula[: max(at, 0)], formula[at + 1 :]
    if at < 0 or not re.search(r"\d", right) or not re.search(r"[\d=]", left) or _VARIABLE.search(formula):
        return 0
    return at + 1


def _is_math(text: str) -> bool:
    """Whether `text` is an expression, not prose."""
    body = text.strip(" .,;:!?*`\n")
    if not body or len(body) > _LONGEST or not _HAS_VALUE.search(body):
        return False
    return _WORD.search(_COMMANDS.sub(" ", body)) is None


def trimmed(latex: str) -> str:
    r"""An expression without delimiters, closing punctuation and a name before "=".

    >>> trimmed(r"\;\angle APC = 74^\circ\;")
    '74^\\circ'
    """
    body = latex.strip()
    for _ in range(_MOST_LAYERS):
        bare = _undressed(body)
        for opening, closing in _DELIMITERS:
            if bare.startswith(opening) and bare.endswith(closing) and len(bare) > len(opening) + len(closing):
                bare = bare[len(opening) : -len(closing)]
        if bare.count("$") - bare.count("\\$") == 1:
            bare = bare.removeprefix("$").removesuffix("$")
        if bare == body:
            break
        body = bare
    return _NAMED.sub("", body)


def _undressed(body: str) -> str:
    """`body` without outer spaces, Markdown and spacing commands, and without closing punctuation."""
    body = body.strip(" \t\n*`")
    for command in _SPACING:
        body = body.removeprefix(command).removesuffix(command)
    bare = body.rstrip(".,;:!?")
    return (body if bare.endswith("\\") else bare).strip()
