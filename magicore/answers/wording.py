"""Canonical values of answers in words: choices, yes or no, dates, free text."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

from magicore.answers.characters import plain, visible
from magicore.answers.choice import folded
from magicore.answers.extract import extract
from magicore.answers.kinds import Kind
from magicore.answers.latex import without_wrappers
from magicore.answers.timepoints import iso
from magicore.answers.yesno import polarity

_LETTER: Final = re.compile(
    r"(?:(?:option|choice|answer)\s*:?\s*)?[(\[{]?\s*([A-Za-z])\s*[)\]}]?\s*[.:]?", re.IGNORECASE
)
_LETTER_AND_TEXT: Final = re.compile(r"(?:\(([A-Z])\)|([A-Z])[).:]|([A-Z])(?=\s+[A-Z0-9$\\(]))\s*\S.*", re.DOTALL)
_SEVERAL: Final = re.compile(r"[A-Z]{2,8}|\(?[A-Z]\)?(?:\s*(?:,|;|&|and|,\s*and)\s*\(?[A-Z]\)?)+")
_NEGATED: Final = re.compile(r"not\s+(\w+)", re.IGNORECASE)
_OPENING: Final = re.compile(r"(\w+)\s*[,.;:!](?!\s*(?:and|or|but)\b)", re.IGNORECASE)
_OPPOSITE: Final = {"yes": "no", "no": "yes"}
_TEXT_TOKEN: Final = re.compile(r"\w+(?:[.,'-]\w+)*|[^\w\s.,;:!?\"'()\[\]{}_]")
_ARTICLES: Final = frozenset(["a", "an", "the"])
_DASHES: Final = str.maketrans("–—", "--")


def choice(text: str, options: Mapping[str, str] | None) -> str | None:
    """The letters chosen, sorted; by the option's text where options are given."""
    body = without_wrappers(plain(visible(text)))
    raw = plain(visible(text)).strip()
    for letters in (_single(body), _with_text(raw), _with_text(body), _several(body)):
        if letters and all(options is None or letter in options for letter in letters):
            return "".join(letters)
    if options:
        matching = [letter for letter, option in options.items() if folded(option) and folded(option) == folded(body)]
        if len(matching) == 1:
            return matching[0]
    return _stated(text, "choice", options)


def _single(body: str) -> list[str]:
    match = _LETTER.fullmatch(body)
    return [match[1].upper()] if match else []


def _with_text(body: str) -> list[str]:
    match = _LETTER_AND_TEXT.fullmatch(body)
    return [next(letter for letter in match.groups() if letter)] if match else []


def _several(body: str) -> list[str]:
    if not _SEVERAL.fullmatch(body):
        return []
    letters = re.findall(r"[A-Z]", body)
    return sorted(letters) if len(set(letters)) == len(letters) else []


def yes_or_no(text: str, options: Mapping[str, str] | None) -> str | None:
    """ "yes" or "no"."""
    body = without_wrappers(plain(visible(text))).strip(" .!")
    opening = _OPENING.match(body)
    negated = _NEGATED.fullmatch(body)
    said = polarity(negated[1] if negated else body)
    if said is not None:
        return _OPPOSITE[said] if negated else said
    if opening and polarity(opening[1]) is not None:
        return polarity(opening[1])
    return _stated(text, "yesno", None)


def _stated(text: str, kind: Kind, options: Mapping[str, str] | None) -> str | None:
    """What a sentence says that its answer is; nothing is guessed from one that does not."""
    found = extract(text, kind, options=options)
    return None if found.certainty == "fallback" else found.value


def date(text: str, options: Mapping[str, str] | None) -> str | None:
    """The date or time in ISO form."""
    value = iso(text)
    if value is not None:
        return value
    found = extract(text, "date").value
    return iso(found) if found else None


def free_text(text: str, options: Mapping[str, str] | None) -> str | None:
    """The words without case, closing marks and a leading article; None if there is no word."""
    body = unicodedata.normalize("NFKC", visible(text)).translate(_DASHES)
    words = _TEXT_TOKEN.findall(without_wrappers(plain(body)).casefold())
    if not any(word[0].isalnum() for word in words):
        return None
    return " ".join(words[1:] if words[0] in _ARTICLES and len(words) > 1 else words)


READERS: Final[dict[str, Callable[[str, Mapping[str, str] | None], str | None]]] = {
    "choice": choice,
    "yesno": yes_or_no,
    "date": date,
    "text": free_text,
}
