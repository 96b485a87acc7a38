"""Choice questions: the letter that a response chooses, as apart from letters that it mentions or rejects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from magicore.answers.latex import without_wrappers
from magicore.answers.markers import Site
from magicore.answers.number import parse_number
from magicore.answers.option_mentions import (
    Mention,
    is_followed_by_word,
    is_led,
    is_picked,
    is_rejected,
    mentions,
)
from magicore.answers.readings import Found, Nothing, Reading, Reason
from magicore.answers.refusals import declines
from magicore.answers.response import Response, Sentence, closing_sentences, sentences

_OPENING: Final = re.compile(
    r"[\s*_\"'`$\\]*+(?:(?:text|textbf|mathrm|mathbf)\s?\{\s*+)?(?:the\s++)?"
    r"(?:(?:option|choice|letter|answer)s?\s*+[:#]?\s*+)?[\"'*(\[{]*+(?P<letter>[A-Za-z])(?![\w'])",
    re.IGNORECASE,
)
_GLUED: Final = re.compile(r"[\s*_\"'`$(\[{]*+(?P<letters>[A-Z]{2,8})(?![A-Za-z0-9'-])[ \t*_.)\]}]*+(?:\n|$)")
_LISTED: Final = re.compile(r"[\s*_\"'`$(\[{]*+(?P<letters>[A-Z](?:\s?,\s?[A-Z])++)(?!\w)[ \t*_.)\]}]*+(?:\n|$)")
_NOT_A_LETTER: Final = re.compile(r"[\s*_]*\((?:\d{1,2}|[ivx]{2,4})\)")
_NONE: Final = re.compile(
    r"\bnone of (?:the|these|those|them)\b"
    r"|\bno(?:ne)? (?:correct|suitable|matching|valid|appropriate|accurate|of the)\s*(?:answer|option|choice)"
    r"|\bnot (?:\w+\s+)?(?:among|listed|one of|provided|available|included|present)\b|\bN/A\b"
    r"|\bno (?:option|choice)s?\b|\bdo(?:es)?\s?n[o']t (?:match|correspond|fit|appear)\b",
    re.IGNORECASE,
)
_LINK: Final = re.compile(
    r"[\"')\]*.]*(?:[^.;()]{0,60}\s(?:and|or)|\s?[&/,])\s?(?:options?\s|choices?\s)?[\"'(\[*]*", re.IGNORECASE
)
_EITHER: Final = re.compile(r"^[^.;]{0,60}\bor\b[\s\"'(\[*]*(?:option\s|choice\s)?[\s\"'(\[*]*$", re.IGNORECASE)
_ON_CONFIDENCE: Final = re.compile(r"\bconfiden(?:ce|t)\b\W{0,3}(?:level|score|in|:|\()", re.IGNORECASE)
_SHORT: Final = 40
"""A whole response of so many characters may be an option's letter or text and nothing else."""
_PLACEHOLDER: Final = "X"
_USUAL_OPTIONS: Final = "ABCDEFGH"
_SOFT: Final[frozenset[Reason]] = frozenset({"no such option", "none of the options"})
"""Reasons that a letter in another sentence of the answer overrules: "not among the choices. (E) None of these"."""


@dataclass(frozen=True, kw_only=True)
class ChoiceReader:
    """Reads one response for the option it chooses.

    Attributes:
        response: The response.
        options: Option letters and their texts, "" where the text is not known; None where the options are not known.
            Then every letter but X, the usual placeholder in prompts, may be an option.
    """

    response: Response
    options: Mapping[str, str] | None = None

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        folded_texts = {letter: folded(text) for letter, text in (self.options or {}).items()}
        return {letter: text for letter, text in folded_texts.items() if text}

    def is_option(self, letter: str) -> bool:
        """Whether `letter` (upper case) names an option."""
        return letter in self.options if self.options is not None else letter != _PLACEHOLDER

    def read(self, site: Site) -> Reading:
        """The choice at a place that states an answer."""
        if site.content is None:
            return None
        start, end = site.content
        parts = [part for part in sentences(self.response.text, start, end) if not _ON_CONFIDENCE.search(part.text)]
        if parts and self._leaves_open(parts[-1]):
            return Nothing(reason="conflicting answers")
        reading = self._opening(start, end, exact=site.exact)
        if reading is None and parts:
            reading = self._among(parts)
        if reading is None and _NOT_A_LETTER.match(self.response.text, start, end):
            return Nothing(reason="no such option")
        return reading

    def fallback(self) -> Reading:
        """The last sentence that chooses one option, where nothing marks an answer."""
        alone = self._alone()
        if alone is not None:
            return alone
        doubt: Nothing | None = None
        parts = closing_sentences(self.response.text)
        for part in reversed(parts):
            if _ON_CONFIDENCE.search(part.text):
                continue
            reading = self._sentence(part, bare=True, stated=False)
            if isinstance(reading, Found):
                return replace(reading, marker="last-letter")
            if reading is not None:
                doubt = doubt or reading
                if reading.reason != "conflicting answers" or self._leaves_open(part):
                    return doubt
        return doubt or (self._by_text(parts[-1].text, parts[-1].start, parts[-1].end) if parts else None)

    def _alone(self) -> Found | None:
        """A whole response that is an option's letter, or its letter and text."""
        text = self.response.text
        body = text.strip()
        if not body or len(body) > _SHORT:
            return None
        start = text.index(body)
        end = start + len(body)
        reading = self._opening(start, end, exact=True)
        if not isinstance(reading, Found) or not _is_closed(text, reading.end, end):
            return None
        return replace(reading, marker="whole-text")

    def _among(self, parts: Sequence[Sentence]) -> Reading:
        """The choice in an answer of several sentences: the first one's, else the last one's that chooses."""
        doubt: Nothing | None = None
        for bare in (False, True):
            for part in (parts[0], *reversed(parts[1:])):
                reading = self._sentence(part, bare=bare, stated=True)
                if isinstance(reading, Found) or (reading is not None and reading.reason not in _SOFT):
                    return reading
                doubt = doubt or reading
        return doubt

    def _opening(self, start: int, end: int, *, exact: bool) -> Reading:
        """A letter, or several, at the very start of an answer."""
        text = self.response.text
        several = self._several(start, end)
        if several is not None:
            return several
        match = _OPENING.match(text, start, end)
        if match is None or not _stands_alone(text, match, end, exact=exact):
            return self._by_text(text[start:end], start, end) if exact else None
        letter = match["letter"].upper()
        if not self.is_option(letter):
            return None
        first = Mention(letter=letter, start=match.start("letter"), end=match.end("letter"), strong=True)
        line_end = text.find("\n", first.end, end)
        if self._joined(first, mentions(text, first.end, end if line_end < 0 else line_end)):
            return Nothing(reason="conflicting answers")
        return Found(value=letter, start=first.start, end=first.end)

    def _several(self, start: int, end: int) -> Found | None:
        """Letters glued together or set off by commas, and nothing else: a choice of several options."""
        for pattern in (_GLUED, _LISTED):
            match = pattern.match(self.response.text, start, end)
            letters = re.sub(r"\W", "", match["letters"]) if match else ""
            if match and len(set(letters)) == len(letters) and self._all_options(letters):
                return Found(value="".join(sorted(letters)), start=match.start("letters"), end=match.end("letters"))
        return None

    def _all_options(self, letters: Iterable[str]) -> bool:
        known = self.options if self.options is not None else _USUAL_OPTIONS
        return all(letter in known for letter in letters)

    def _sentence(self, sentence: Sentence, *, bare: bool, stated: bool) -> Reading:
        """The one option that a sentence chooses.

        Args:
            sentence: The sentence.
            bare: Whether letters that nothing marks as options count, where no others stand.
            stated: Whether the sentence is part of a stated answer; else a bare letter must be said to be chosen.
        """
        text = self.response.text
        found = mentions(text, sentence.start, sentence.end)
        strong = [m for m in found if m.strong]
        pool = strong or [m for m in found if bare and (stated or is_picked(text, m, sentence))]
        known = [m for m in pool if self.is_option(m.letter)]
        chosen = [m for m in known if not is_rejected(text, m, sentence)]
        if len({m.letter for m in chosen}) == 1:
            return Found(value=chosen[0].letter, start=chosen[0].start, end=chosen[0].end)
        if chosen:
            return self._one_led(chosen, sentence)
        if strong and not known:
            return Nothing(reason="no such option")
        if _NONE.search(sentence.text):
            return Nothing(reason="none of the options")
        if declines(sentence.text):
            return Nothing(reason="refusal")
        return self._by_text(sentence.text, sentence.start, sentence.end) if stated else None

    def _one_led(self, chosen: Sequence[Mention], sentence: Sentence) -> Reading:
        """Of several options, the one after "is", "choose" or "answer", unless another is joined to it."""
        led = [m for m in chosen if is_led(self.response.text, m, sentence)]
        if len({m.letter for m in led}) == 1 and not self._joined(
            led[-1], [m for m in chosen if m.start > led[-1].start]
        ):
            return Found(value=led[-1].letter, start=led[-1].start, end=led[-1].end)
        return Nothing(reason="conflicting answers")

    def _joined(self, first: Mention, others: Sequence[Mention]) -> bool:
        """Whether the next option after `first` is joined to it by "and" or "or"."""
        other = next((m for m in others if m.letter != first.letter and self.is_option(m.letter)), None)
        if other is None:
            return False
        link = _LINK.fullmatch(self.response.text[first.end : other.start])
        return link is not None and (other.strong or not link.group().strip(" )*\"'").startswith(","))

    def _leaves_open(self, sentence: Sentence) -> bool:
        """Whether a sentence leaves several options open: "(A) or (B)"."""
        text = self.response.text
        offered = [m for m in mentions(text, sentence.start, sentence.end) if m.strong and self.is_option(m.letter)]
        return any(
            a.letter != b.letter and _EITHER.search(text[a.end : b.start]) and not is_rejected(text, b, sentence)
            for a, b in pairwise(offered)
        )

    def _by_text(self, body: str, start: int, end: int) -> Reading:
        """The option whose text stands in `body`: as all of it, or as the only option text in it."""
        if not self._texts:
            return None
        words, number = folded(body), parse_number(body)
        whole = [letter for letter, text in self._texts.items() if text == words]
        if not whole and number is not None:
            values = {letter: parse_number(text) for letter, text in self._texts.items()}
            whole = [letter for letter, value in values.items() if value is not None and value.value == number.value]
        within = [letter for letter, text in self._texts.items() if f" {text} " in f" {words} "]
        for letters in (whole, within):
            if len(letters) == 1:
                return Found(value=letters[0], start=start, end=end)
        return Nothing(reason="conflicting answers") if len(within) > 1 else None


def _stands_alone(text: str, match: re.Match[str], end: int, *, exact: bool) -> bool:
    """Whether the letter is a choice, not an article, a pronoun, a variable or the start of a formula."""
    letter, after = match["letter"], match.end("letter")
    opened = text[match.start("letter") - 1 : match.start("letter")] in {"(", "[", "*", "{", '"'}
    closed = _is_closed(text, after, end)
    if letter.islower():
        return closed or (opened and letter in "bcdefgh")
    if not closed and not opened and is_followed_by_word(text, after, end):
        return False
    return not exact or closed or text[after] in " ,:;}"


def _is_closed(text: str, after: int, end: int) -> bool:
    """Whether a bracket, a mark, a line's end or the end follows."""
    return after >= end or re.match(r"[)\]}.:*\"'$]|\s*\n|\s*$", text[after : min(end, after + 4)]) is not None


def folded(text: str) -> str:
    """Words only, in lower case, single-spaced: for comparing option texts."""
    return " ".join(re.findall(r"\w+(?:[.,]\w+)*|[-+<>=/%$]", without_wrappers(text).casefold()))
