"""Chains of unit conversions in made-up measures: down by multiplying and adding what is left, or up by dividing."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.numbers import NUMBERS
from magicore.datasets.families.plan import Drawn, Operand, PlanStep, Ref, Split


class _Surface(NamedTuple):
    units: tuple[tuple[str, ...], ...]
    rate: tuple[str, ...]
    down: tuple[str, ...]
    up: tuple[str, ...]
    shared: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        units=(
            ("crates", "boxes", "packs", "pens"),
            ("leagues", "miles", "poles", "feet"),
            ("crowns", "florins", "groats", "pence"),
            ("casks", "jugs", "cups", "spoons"),
            ("ships", "wains", "trays", "eggs"),
            ("years", "terms", "moons", "nights"),
        ),
        rate=(
            "1 {big} is {f} {small}.",
            "There are {f} {small} in 1 {big}.",
            "1 {big} has {f} {small}.",
            "1 {big} is the same as {f} {small}.",
            "{f} {small} are as much as 1 {big}.",
            "{f} {small} give 1 {big}.",
        ),
        down=(
            "How many {small} are {amounts}?",
            "Write {amounts} in {small}.",
            "Turn {amounts} into {small}.",
            "How many {small} do you get for {amounts}?",
            "Give {amounts} as {small}.",
        ),
        up=(
            "How many {big} are {n} {small}?",
            "Write {n} {small} in {big}.",
            "Turn {n} {small} into {big}.",
            "How many {big} do you get for {n} {small}?",
            "Give {n} {small} as {big}.",
        ),
        shared=(
            "{n} {small} are shared equally by {k} people. How many {big} does each of them get?",
            "{k} people share {n} {small}, all the same. How many {big} has each?",
            "{n} {small} are for {k} people in equal parts. Give the part of one in {big}.",
        ),
    ),
    "test": _Surface(
        units=(
            ("wagons", "sacks", "bags", "nuts"),
            ("furlongs", "chains", "rods", "palms"),
            ("thalers", "guilders", "shillings", "farthings"),
            ("barrels", "buckets", "bowls", "drops"),
        ),
        rate=("{f} {small} make 1 {big}.", "1 {big} equals {f} {small}."),
        down=("Convert {amounts} to {small}.", "What are {amounts} when counted in {small}?"),
        up=("Convert {n} {small} to {big}.", "What are {n} {small} when counted in {big}?"),
        shared=("{k} people divide {n} {small} evenly. What does one person get, in {big}?",),
    ),
}


def draw(source: Random, split: Split) -> Drawn:
    """One conversion over one or two levels of a measure."""
    surface = _SURFACES[split]
    levels = source.choice((2, 3, 3))
    names = source.choice(surface.units)
    start = source.randint(0, len(names) - levels)
    units = names[start : start + levels]
    factors = [source.randint(2, 9) for _ in units[1:]]
    rates = [
        source.choice(surface.rate).format(big=_one(big), small=small, f=factor)
        for big, small, factor in zip(units, units[1:], factors, strict=False)
    ]
    if source.random() < 0.3:
        question, plan = _up(source, surface, units, factors)
    else:
        question, plan = _down(source, surface, units, factors)
    return Drawn(question=" ".join([*rates, question]), plan=tuple(plan), arithmetic=NUMBERS)


def _down(source: Random, surface: _Surface, units: tuple[str, ...], factors: list[int]) -> tuple[str, list[PlanStep]]:
    amounts = [source.randint(2, 9)]
    amounts += [0 if source.random() < 0.25 else source.randint(1, max(1, factor - 1)) for factor in factors]
    plan: list[PlanStep] = []
    last: Operand = amounts[0]
    for small, factor, rest in zip(units[1:], factors, amounts[1:], strict=True):
        plan.append(PlanStep(op="*", left=last, right=factor, note=f"In {small}", unit=small))
        last = Ref(len(plan) - 1)
        if rest:
            plan.append(PlanStep(op="+", left=last, right=rest, note=f"Adding {small}", unit=small))
            last = Ref(len(plan) - 1)
    parts = [f"{n} {_of(n, unit)}" for n, unit in zip(amounts, units, strict=True) if n]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return source.choice(surface.down).format(amounts=listed, small=units[-1]), plan


def _up(source: Random, surface: _Surface, units: tuple[str, ...], factors: list[int]) -> tuple[str, list[PlanStep]]:
    people = source.randint(2, 5) if source.random() < 0.5 else 1
    total = source.randint(2, 9) * people
    for factor in factors:
        total *= factor
    plan: list[PlanStep] = []
    last: Operand = total
    for big, factor in zip(units[-2::-1], reversed(factors), strict=True):
        plan.append(PlanStep(op="/", left=last, right=factor, note=f"In {big}", unit=big))
        last = Ref(len(plan) - 1)
    values = {"big": units[0], "small": units[-1], "n": total, "k": people}
    if people > 1:
        plan.append(PlanStep(op="/", left=last, right=people, note="Shared", unit=units[0]))
        return source.choice(surface.shared).format(**values), plan
    return source.choice(surface.up).format(**values), plan


_ODD: Final = {"boxes": "box", "feet": "foot", "pence": "penny"}


def _one(unit: str) -> str:
    return _ODD.get(unit, unit.removesuffix("s"))


def _of(n: int, unit: str) -> str:
    return _one(unit) if n == 1 else unit
