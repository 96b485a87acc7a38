"""Finding the date or clock time that a response gives as its answer: as written, for the comparison to parse."""

import re
from dataclasses import dataclass
from typing import Final

from magicore.answers.markers import Site
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines
from magicore.answers.response import Response, closing_sentences, sentences

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:1\d{3}|2\d{3}|\d{1,4}\s?(?:AD|BC|BCE|CE)\b)"
_CLOCK: Final = r"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:\s?(?:\\text\{\s*)?[ap]\.?\s?m\b\.?\}?)?"
_FULL: Final = re.compile(
    rf"""(?<![\w/.-])(?:
        \d{{4}}[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?:[T\s]{_CLOCK})?
      | (?:0?[1-9]|[12]\d|3[01])[-/.](?:0?[1-9]|[12]\d|3[01])[-/.](?:\d{{4}}|\d{{2}})
      | {_MONTH}\s{_DAY}(?:,?\s{_YEAR})?
      | {_DAY}\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR})?
      | {_MONTH},?\s{_YEAR}
      | \d{{4}}\u5e74(?:\d{{1,2}}\u6708(?:\d{{1,2}}\u65e5)?)?
      | {_CLOCK}
      | (?:0?[1-9]|1[0-2])\s?[ap]\.?m\b\.?
    )(?![\w/-]|\.\d)""",
    re.VERBOSE | re.IGNORECASE,
)
_YEAR_ALONE: Final = re.compile(r"(?<![\w/.,$-])(?:1\d{3}|20\d{2})s?(?![\w/-]|[.,]\d)")
_OR: Final = re.compile(r"\s*,?\s*or\s+(?:on\s+)?", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class DateReader:
    """Reads one response for a date or a clock time."""

    response: Response

    def read(self, site: Site) -> Reading:
        """The first date at a place that states an answer."""
        if site.content is None:
            return Nothing(reason="truncated")
        start, end = site.content
        for part in sentences(self.response.text, start, end):
            found = dates(self.response.text, part.start, part.end)
            if len(found) > 1 and _OR.fullmatch(self.response.text, found[0][1], found[1][0]):
                return Nothing(reason="conflicting answers")
            if found:
                return self._found(found[0])
            if declines(part.text):
                return Nothing(reason="refusal")
        return None

    def fallback(self) -> Reading:
        """The last date of the last sentence that has one, unless a later sentence declines to answer."""
        text = self.response.text
        for part in reversed(closing_sentences(text)):
            if declines(part.text):
                return Nothing(reason="refusal")
            found = dates(text, part.start, part.end)
            if found:
                return self._found(found[-1])
        return None

    def _found(self, span: tuple[int, int]) -> Found:
        return Found(value=" ".join(self.response.raw[slice(*span)].split()), start=span[0], end=span[1])


def dates(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where dates and times stand in `text[start:end]`; years alone count only if there is nothing fuller."""
    full = [match.span() for match in _FULL.finditer(text, start, end)]
    return full or [match.span() for match in _YEAR_ALONE.finditer(text, start, end)]
