"""Reading a response: what it says its answer is, or why it says none."""

from dataclasses import dataclass
from typing import Literal

from magicore.answers.choice import ChoiceReader
from magicore.answers.kinds import Kind
from magicore.answers.markers import Marker, sites
from magicore.answers.number_reading import NumberReader
from magicore.answers.readings import Found, Nothing
from magicore.answers.response import prepare
from magicore.answers.yesno import YesNoReader

Certainty = Literal["stated", "boxed", "fallback"]


@dataclass(frozen=True, kw_only=True)
class Extraction:
    value: str | None
    text: str | None = None
    span: tuple[int, int] | None = None
    marker: Marker | None = None
    certainty: Certainty | None = None
    reason: str | None = None


def extract(text, kind, *, options=None, stop="stop", asked=None):
    response = prepare(text, cut=stop == "length")
    reader = {"number": lambda: NumberReader(response=response), "choice": lambda: ChoiceReader(response=response, options=options), "yesno": lambda: YesNoReader(response=response)}[kind]()
    for site in reversed(sites(response.text)):
        reading = reader.read(site)
        if isinstance(reading, Found):
            return Extraction(value=reading.value, text=text[reading.start:reading.end], span=(reading.start, reading.end), marker=site.marker, certainty="boxed" if site.exact else "stated")
        if isinstance(reading, Nothing):
            return Extraction(value=None, reason=reading.reason, marker=site.marker)
    reading = reader.fallback()
    if isinstance(reading, Found):
        return Extraction(value=reading.value, text=text[reading.start:reading.end], span=(reading.start, reading.end), marker="last-number", certainty="fallback")
    return Extraction(value=None, reason=reading.reason if reading else "no answer stated")
