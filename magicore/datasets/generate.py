"""Small problems made from a seed, right by construction: for the demonstration, for tests, for trying things out."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from magicore.errors import InputError, UnknownNameError
from magicore.types import Problem

_REPEATS: Final = 1000
"""So many known questions drawn in a row, and the generator has no more."""

_PEOPLE: Final = ("Ana", "Bilal", "Chen", "Dora", "Emeka", "Freya", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena")
_THINGS: Final = ("apples", "books", "coins", "marbles", "pencils", "shells", "stamps", "stickers")


class _Drawn(NamedTuple):
    question: str
    answer: int


def sums(draw: Random, index: int) -> _Drawn:
    """A sum of two terms from 10 to 99, or at every other index of three terms from 5 to 49."""
    terms = [draw.randint(10, 99) for _ in range(2)] if index % 2 == 0 else [draw.randint(5, 49) for _ in range(3)]
    return _Drawn(f"What is {' + '.join(map(str, terms))}?", sum(terms))


def word_problems(draw: Random, index: int) -> _Drawn:
    """A story with one step: adding, taking away, multiplying or sharing out, in turn."""
    who, other = draw.sample(_PEOPLE, 2)
    what = draw.choice(_THINGS)
    return _STORIES[index % len(_STORIES)](draw, who, other, what)


def mixed(draw: Random, index: int) -> _Drawn:
    """A two-term sum, a three-term sum and a word problem, in turn."""
    if index % 3 == 2:
        return word_problems(draw, index // 3)
    return sums(draw, index % 3)


def small(draw: Random, index: int) -> _Drawn:
    """As ``mixed``, with one-digit numbers, and adding or taking away in the stories: for very small models."""
    if index % 3 < 2:
        terms = [draw.randint(2, 9) for _ in range(2 + index % 3)]
        return _Drawn(f"What is {' + '.join(map(str, terms))}?", sum(terms))
    who, other = draw.sample(_PEOPLE, 2)
    what = draw.choice(_THINGS)
    story = _more if index // 3 % 2 == 0 else _fewer
    return story(draw, who, other, what, most=9)


def _more(draw: Random, who: str, other: str, what: str, *, most: int = 40) -> _Drawn:
    first, second = draw.randint(min(5, most), most), draw.randint(3, most)
    return _Drawn(
        f"{who} has {first} {what}. {other} gives {who} {second} more. How many {what} does {who} have now?",
        first + second,
    )


def _fewer(draw: Random, who: str, other: str, what: str, *, most: int = 30) -> _Drawn:
    second, left = draw.randint(3, most), draw.randint(2, most)
    return _Drawn(
        f"{who} has {second + left} {what} and gives {second} of them to {other}. "
        f"How many {what} does {who} have left?",
        left,
    )


def _times(draw: Random, who: str, other: str, what: str) -> _Drawn:
    boxes, each = draw.randint(2, 9), draw.randint(3, 12)
    return _Drawn(
        f"{who} and {other} fill {boxes} boxes with {each} {what} each. How many {what} are in the boxes altogether?",
        boxes * each,
    )


def _shared(draw: Random, who: str, other: str, what: str) -> _Drawn:
    each, bags = draw.randint(2, 12), draw.randint(2, 9)
    return _Drawn(
        f"{who} helps {other} to put {each * bags} {what} into {bags} bags, the same number in every bag. "
        f"How many {what} are in one bag?",
        each,
    )


_STORIES: Final = (_more, _fewer, _times, _shared)

GENERATORS: Final[dict[str, Callable[[Random, int], _Drawn]]] = {
    "sums": sums,
    "word-problems": word_problems,
    "mixed": mixed,
    "small": small,
}


def generate(name: str, n: int, seed: int = 0) -> list[Problem]:
    """Make ``n`` different problems of kind ``number``; equal arguments make equal problems.

    Args:
        name: ``sums`` (two and three terms), ``word-problems`` (one step) or ``mixed`` (all three in turn).
        n: How many, at least 1.
        seed: Any whole number.

    Raises:
        UnknownNameError: There is no generator of that name.
        InputError: ``n`` is below 1, or there are not that many different problems.
    """
    make = GENERATORS.get(name)
    if make is None:
        raise UnknownNameError(f"no generator {name!r}; there are {', '.join(GENERATORS)}")
    if n < 1:
        raise InputError(f"the number of problems is at least 1, not {n}")
    draw = Random(f"{name}:{seed}")
    made: dict[str, Problem] = {}
    repeats = 0
    while len(made) < n:
        drawn = make(draw, len(made))
        if drawn.question in made:
            repeats += 1
            if repeats > _REPEATS:
                raise InputError(f"{name} has not {n:,} different problems; ask for fewer")
            continue
        repeats = 0
        made[drawn.question] = Problem(
            id=f"{name}-{len(made)}", question=drawn.question, kind="number", answer=str(drawn.answer)
        )
    return list(made.values())
