r"""From a tidy text to the shape of the answer: sets, tuples, intervals, relations, matrices, units, words, numbers.

Only the outermost layer is read at a time, by one walk over the tokens; what is inside is read the same way. What is
left is a single expression: closed arithmetic is computed here, the rest becomes a request to a worker.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from magicore.answers import numeric
from magicore.answers.brackets import enclosed, outward
from magicore.answers.forms import Leaf, Node, NotParsed, Parse
from magicore.answers.lists import listed, plus_minus, ratio, set_operation
from magicore.answers.prose import words
from magicore.answers.quantities import compound, plain_number, scalar
from magicore.answers.relations import relation

MAX_DEPTH: Final = 12
MAX_LENGTH: Final = 200_000

Reader: TypeAlias = Callable[[str, Parse], Node | None]
"""Reads one kind of outermost layer, and what is inside by the function it is given; None if there is no such layer."""

READERS: Final[tuple[Reader, ...]] = (
    words, compound, outward, listed, relation, set_operation, plus_minus, enclosed, ratio,
)  # fmt: skip
"""Tried in this order: what binds loosest first."""


def parse(text: str) -> Node:
    """The shape of `text`, which `notation.tidy` has been over.

    Raises:
        NotParsed: It has none that is known, or is past a limit.
    """
    if len(text) > MAX_LENGTH:
        raise NotParsed("too long")
    return _parse(text, depth=0)


def _parse(text: str, *, depth: int) -> Node:
    text = text.strip()
    if depth > MAX_DEPTH:
        raise NotParsed("too deeply nested")
    inner = partial(_parse, depth=depth + 1)
    simple = plain_number(text)
    if simple is not None:
        return simple
    negative = _MINUS_WORD.match(text)
    if negative:
        return _negated(inner(text[negative.end() :]))
    for read in READERS:
        node = read(text, inner)
        if node is not None:
            return node
    return scalar(text)


_MINUS_WORD: Final = re.compile(r"(?:minus|negative)\s+(?=\S)", re.IGNORECASE)


def _negated(node: Node) -> Node:
    if not isinstance(node, Leaf) or node.number is None:
        raise NotParsed("a word for minus before what is no number")
    return replace(node, number=numeric.negate(node.number))
