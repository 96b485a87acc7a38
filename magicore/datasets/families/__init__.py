"""Families of generated problems with worked solutions, each right by construction and with the truth of every step.

Train and test problems of a family are drawn with different seeds and written with different names, things and sentence
frames, so that a model trained on the one is tested on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Final

from magicore.datasets.families import clock, prices, stories, units
from magicore.datasets.families.plan import Drawn, Split
from magicore.errors import InputError

FAMILIES: Final[dict[str, Callable[[Random, Split], Drawn]]] = {
    "stories": stories.draw,
    "clock": clock.draw,
    "units": units.draw,
    "prices": prices.draw,
}

_REPEATS: Final = 1000


def draw_family(name: str, n: int, seed: int, split: Split) -> list[Drawn]:
    """``n`` different problems of a family; the first m of n are those that m alone would be.

    Raises:
        InputError: There are not that many.
    """
    source = Random(f"{name}:{split}:{seed}")
    found: dict[str, Drawn] = {}
    repeats = 0
    while len(found) < n:
        drawn = FAMILIES[name](source, split)
        repeats = repeats + 1 if drawn.question in found else 0
        found.setdefault(drawn.question, drawn)
        if repeats > _REPEATS:
            raise InputError(f"{name} has not {n:,} different problems; ask for fewer")
    return list(found.values())


def family_id(name: str, split: Split, seed: int, index: int) -> str:
    """The id of a family's problem, from which it can be drawn again."""
    return f"{name}-{split}-{seed}-{index}"


def drawn_by_id(problem: str) -> Drawn | None:
    """The problem of that id with its plan; ``None`` if it is none of a family's."""
    parts = problem.split("-")
    if len(parts) != 4 or parts[0] not in FAMILIES or not (parts[2].isdecimal() and parts[3].isdecimal()):
        return None
    split: Split | None = "train" if parts[1] == "train" else "test" if parts[1] == "test" else None
    if split is None:
        return None
    index = int(parts[3])
    block = (index // _BLOCK + 1) * _BLOCK
    return _drawn(parts[0], block, int(parts[2]), split)[index]


_BLOCK: Final = 500


@lru_cache(maxsize=64)
def _drawn(name: str, n: int, seed: int, split: Split) -> list[Drawn]:
    return draw_family(name, n, seed, split)
