"""Yes/no questions: which of the two a response says, if it says one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from magicore.answers.markers import Site
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines
from magicore.answers.response import Response, Sentence, closing_sentences, sentences

_YES: Final = frozenset("yes yeah yep true correct sí oui ja да evet hai 是 はい 예 نعم हाँ sim".split())
_NO: Final = frozenset("no nope false incorrect non nein нет hayır iie 否 不是 いいえ 아니요 لا नहीं não".split())
_WORD: Final = re.compile(
    r"(?<![\w-])(?:yes|no|true|false)(?![\w-])|(?<!\w)(?:oui|nein|да|нет|sí|não)(?!\w)|是的|不是|はい|いいえ|نعم",
    re.IGNORECASE,
)
_FIRST: Final = re.compile(r"[\s*_\"'`$(\[{\\]*(?:(?:text|textbf)\{)?(?P<word>[^\W\d_]+)", re.IGNORECASE)
_CLOSING_WORD: Final = re.compile(r"(?:^|[:,]\s)[\s*_\"'(\[]*(?P<word>[^\W\d_]{1,9})[\s.!*_\"')\]]*$")
_SET_OFF: Final = re.compile(r"[,:]\s*(?:yes|no)\s*[,.;:]", re.IGNORECASE)
_STANDS_ALONE: Final = re.compile(
    r"\s*(?:[.,;:!)(\]*\"'}]|$|\u2014|-|\s(?:it|he|she|they|there|this|that|the|a|not|because|since|as|for|I|we|you"
    r"|based|due|given|under|in|according|if|unless|[A-Z])\b)"
)
"""After "no": what shows that the word answers and does not belong to a noun, as in "no evidence"."""
_BOTH: Final = re.compile(
    r"(?:yes|true)\b[^.\n]{0,60}?\b(?:or|and|nor|/)\b[\s\"'(an]{0,8}(?:absolute\s|simple\s)?(?:no|false)\b"
    r"|\b(?:no|false)\b[^.\n]{0,30}?\b(?:or|and|nor)\b[\s\"'(an]{0,8}(?:yes|true)\b|yes/no",
    re.IGNORECASE,
)
_MAYBE: Final = re.compile(
    r"\b(?:maybe|perhaps|uncertain|unclear|undetermined|indetermina\w+|inconclusive|unknown|n/a|not applicable"
    r"|it depends|depends on|debatable)\b",
    re.IGNORECASE,
)
_CONCLUDES: Final = re.compile(
    r"[*_\s\"(]*(?:therefore|thus|so|hence|consequently|in conclusion|to conclude|in summary|overall|as a result"
    r"|based on|given)\b",
    re.IGNORECASE,
)
_DENIES: Final = re.compile(r"(?:\bnot|n't)\s(?:\w+ly\s|be\s)?[\"'*]*$", re.IGNORECASE)
_INSTEAD: Final = re.compile(r"\b(?:rather than|instead of)\s(?:\w+\s){0,4}[\"'(]*$", re.IGNORECASE)
_ON_ITSELF: Final = re.compile(r"\b(?:answer|response|explanation|apologi[sz]e|information provided)\b", re.IGNORECASE)
_HEDGE: Final = re.compile(
    r"\b(?:may|might|could|possib\w+|challenging|some|exclusive\w*|necessarily|only|without)\b", re.IGNORECASE
)
_NEGATION: Final = re.compile(
    r"\b(?:not|cannot|never|nor|neither|unlikely|impossible|unable|incorrect|false|untrue)\b|n't\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class YesNoReader:
    """Reads one response for yes or no."""

    response: Response

    def read(self, site: Site) -> Reading:
        """The word at a place that states an answer."""
        if site.content is None:
            return None
        start, end = site.content
        parts = list(sentences(self.response.text, start, end))
        if not parts:
            return None
        first = self._first_word(parts[0]) or self._words(parts[0])
        if isinstance(first, Found):
            return first
        for part in reversed(parts[1:]):
            later = self._last_word(part) or self._first_word(part)
            if isinstance(later, Found):
                return later
        if first is None and _declines(parts[0]):
            return Nothing(reason="refusal")
        return first

    def fallback(self) -> Reading:
        """Yes or no where nothing marks an answer: the last sentence that opens or ends with it, or concludes."""
        text = self.response.text
        parts = closing_sentences(text)
        opening = next(sentences(text, 0, len(text)), None)
        if opening is None:
            return None
        first = self._first_word(opening) if not declines(opening.text) else None
        for part in reversed(parts):
            reading = self._closing(part)
            if isinstance(reading, Nothing) and reading.reason == "refusal" and isinstance(first, Found):
                break  # a doubt at the end takes nothing back from "No, she will not" at the start
            if reading is not None:
                return reading
        return replace(first, marker="opening-word") if isinstance(first, Found) else self._denial(parts)

    def _closing(self, sentence: Sentence) -> Reading:
        """Yes or no from one of the closing sentences."""
        if _BOTH.search(sentence.text):
            return Nothing(reason="refusal" if declines(sentence.text) else "conflicting answers")
        last = self._last_word(sentence)
        if last is not None:
            return replace(last, marker="last-line")
        first = self._first_word(sentence)
        if isinstance(first, Found):
            return replace(first, marker="opening-word")
        if not _CONCLUDES.match(sentence.text) and not _SET_OFF.search(sentence.text):
            return None
        reading = self._words(sentence)
        return Nothing(reason="refusal") if reading is None and _declines(sentence) else reading

    def _denial(self, parts: Sequence[Sentence]) -> Reading:
        """No, where the closing conclusion denies without the word: "Therefore, she was not there"."""
        last = next((part for part in reversed(parts) if _CONCLUDES.match(part.text)), parts[-1])
        if _declines(last) or _HEDGE.search(last.text) or _ON_ITSELF.search(last.text):
            return None
        return Found(value="no", start=last.start, end=last.end) if _NEGATION.search(last.text) else None

    def _first_word(self, sentence: Sentence) -> Reading:
        match = _FIRST.match(sentence.text)
        if match is None:
            return None
        value = polarity(match["word"])
        if value is None or not _STANDS_ALONE.match(sentence.text, match.end("word")):
            return None
        if _BOTH.search(sentence.text):
            return Nothing(reason="conflicting answers")
        at = sentence.start + match.start("word")
        return Found(value=value, start=at, end=at + len(match["word"]))

    def _last_word(self, sentence: Sentence) -> Found | None:
        """A sentence that is one word, or ends in one after a comma or colon."""
        match = _CLOSING_WORD.search(sentence.text)
        value = polarity(match["word"]) if match else None
        if match is None or value is None:
            return None
        at = sentence.start + match.start("word")
        return Found(value=value, start=at, end=at + len(match["word"]))

    def _words(self, sentence: Sentence) -> Reading:
        """The one of yes and no that a sentence holds."""
        if _BOTH.search(sentence.text):
            return Nothing(reason="refusal" if declines(sentence.text) else "conflicting answers")
        found = [
            match
            for match in _WORD.finditer(sentence.text)
            if (polarity(match.group()) == "yes" or _STANDS_ALONE.match(sentence.text, match.end()))
            and not _INSTEAD.search(sentence.text[max(0, match.start() - 60) : match.start()])
        ]
        if not found:
            return None
        last = found[-1]
        value = polarity(last.group())
        if value == "yes" and _DENIES.search(sentence.text[max(0, last.start() - 16) : last.start()]):
            value = "no"
        at = sentence.start + last.start()
        return None if value is None else Found(value=value, start=at, end=at + len(last.group()))


def _declines(sentence: Sentence) -> bool:
    return declines(sentence.text) or _MAYBE.search(sentence.text) is not None


def polarity(word: str) -> str | None:
    """'yes' or 'no' for a word of either meaning, else None."""
    lower = word.casefold()
    if lower in _YES:
        return "yes"
    return "no" if lower in _NO else None
