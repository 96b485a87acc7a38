"""Finding the words that a response gives as its answer, where the answer is free text."""

import re
from dataclasses import dataclass, replace
from typing import Final

from magicore.answers.latex import without_wrappers
from magicore.answers.markers import Site
from magicore.answers.readings import Found, Nothing, Reading
from magicore.answers.refusals import declines
from magicore.answers.response import Response, sentences

_SHORT: Final = 80
"""A response of one line and at most so many characters is its own answer."""
_LONGEST: Final = 2_000
_PLACEHOLDER: Final = re.compile(r"(?:your |the |final )*(?:answer|text|response)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class TextReader:
    """Reads one response for free text."""

    response: Response

    def read(self, site: Site) -> Reading:
        """All of a box or tag; after other markers the first sentence or line."""
        if site.content is None:
            return Nothing(reason="truncated")
        start, end = site.content
        if not site.exact:
            first = next(sentences(self.response.text, start, end), None)
            if first is None:
                return None
            start, end = first.start, first.end
        return self._found(start, end)

    def fallback(self) -> Reading:
        """The whole of a response that is one short line and declines nothing."""
        body = self.response.text.strip()
        if not body:
            return None
        start = self.response.text.index(body)
        if declines(body):
            return Nothing(reason="refusal")
        if len(body) > _SHORT or "\n" in body:
            return None
        reading = self._found(start, start + len(body))
        return replace(reading, marker="whole-text") if isinstance(reading, Found) else reading

    def _found(self, start: int, end: int) -> Reading:
        raw = self.response.raw[start:end]
        value = without_wrappers(raw).rstrip("!") if len(raw) <= _LONGEST else ""
        if not value or _PLACEHOLDER.fullmatch(value):
            return None
        return Found(value=value, start=start, end=end)
