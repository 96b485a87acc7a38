r"""Answers in words inside mathematics: names, "no solution", numbers spelled out."""

import re
from typing import Final

from magicore.answers.forms import EMPTY, REALS, Fixed, Leaf, Node, Parse, Words
from magicore.answers.measures import NO_MEASURE, measure
from magicore.answers.number import parse_number
from magicore.answers.quantities import is_word
from magicore.answers.scan import TEXT_COMMAND, separator, split, tokenize

_EMPTY_WORDS: Final = re.compile(
    r"(?:there (?:is|are) )?no (?:real |valid |such )?(?:solutions?|roots?)(?: exists?)?|(?:the )?(?:empty|null) set"
)
_REAL_WORDS: Final = re.compile(r"(?:all|any|every) (?:real numbers?|reals?)(?: [a-z])?|(?:the )?real (?:numbers|line)")
_PROSE: Final = re.compile(r"[A-Za-z][A-Za-z' .,!?-]*")


def words(text: str, parse: Parse) -> Node | None:
    """Prose: at least one word that can be no product of variables."""
    body = TEXT_COMMAND.sub(r" \1 ", text)
    if not _PROSE.fullmatch(body.strip()):
        return None
    runs = [run.lower() for run in re.findall(r"[A-Za-z]+", body)]
    if not any(is_word(run) for run in runs):
        return None
    prose = " ".join(re.findall(r"[a-z'-]+", body.lower()))
    if _EMPTY_WORDS.fullmatch(prose):
        return Fixed(value=EMPTY)
    if _REAL_WORDS.fullmatch(prose):
        return Fixed(value=REALS)
    number = parse_number(body)
    if number is not None:
        return Leaf(number=number.value, measure=measure(number.unit or "") or NO_MEASURE)
    if split(tokenize(text), separator)[1]:
        return None
    return Words(text=prose)
