"""Prices that rise and fall by percentages and fixed amounts, and are paid several times: the guide's own domain."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.numbers import NUMBERS
from magicore.datasets.families.plan import Drawn, Operand, PlanStep, Ref, Split


class _Surface(NamedTuple):
    goods: tuple[str, ...]
    start: tuple[str, ...]
    rises: tuple[str, ...]
    falls: tuple[str, ...]
    fee: tuple[str, ...]
    coupon: tuple[str, ...]
    many: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        goods=("coat", "lamp", "chair", "bike", "phone", "table"),
        start=("A {good} costs {x} dollars.", "The price of a {good} is {x} dollars."),
        rises=("Then the price goes up by {p}%.", "The price rises by {p}%."),
        falls=("Then the price goes down by {p}%.", "The price falls by {p}%."),
        fee=("A fee of {x} dollars is added.", "Delivery costs {x} dollars more."),
        coupon=("A coupon takes {x} dollars off.", "The shop takes {x} dollars off."),
        many=("Someone pays this for {m} of them.",),
        ask=("How many dollars is that?", "How many dollars is it now?"),
    ),
    "test": _Surface(
        goods=("tent", "guitar", "camera", "desk", "scooter", "carpet"),
        start=("The shop asks {x} dollars for a {good}.", "You see a {good} for {x} dollars."),
        rises=("It gets {p}% dearer.", "A tax of {p}% is put on it."),
        falls=("It gets {p}% cheaper.", "A discount of {p}% is given."),
        fee=("Packing adds {x} dollars.", "Insurance adds {x} dollars."),
        coupon=("A voucher saves {x} dollars.", "The seller lowers it by {x} dollars."),
        many=("A school orders {m} at that price.",),
        ask=("What has to be paid, in dollars?", "What is the amount in dollars?"),
    ),
}


def draw(source: Random, split: Split) -> Drawn:
    """One price with 2 to 4 changes, of which at least one is a percentage of a whole number of dollars."""
    surface = _SURFACES[split]
    value = 20 * source.randint(2, 20)
    sentences = [source.choice(surface.start).format(good=source.choice(surface.goods), x=value)]
    plan: list[PlanStep] = []
    last: Operand = value
    changes = source.randint(2, 4)
    for number in range(changes):
        percents = [p for p in (5, 10, 20, 25, 30, 40, 50) if value * p % 100 == 0]
        sort = source.choice(["percent", "percent", "fixed"]) if number else "percent"
        if number == changes - 1 and number and source.random() < 0.3:
            factor = source.randint(2, 6)
            sentences.append(source.choice(surface.many).format(m=factor))
            plan.append(PlanStep(op="*", left=last, right=factor, note="{right} times"))
        elif sort == "percent" and percents:
            percent, up = source.choice(percents), source.random() < 0.5
            change = value * percent // 100
            sentences.append(source.choice(surface.rises if up else surface.falls).format(p=percent))
            plan.append(PlanStep(op="% of", left=percent, right=last, note="The change"))
            sign, note = ("+", "Adding") if up else ("-", "Taking away")
            plan.append(PlanStep(op=sign, left=last, right=Ref(len(plan) - 1), note=note))
            value = value + change if up else value - change
        else:
            up = source.random() < 0.5 or value < 30
            amount = source.randint(2, 40 if up else value // 2)
            sentences.append(source.choice(surface.fee if up else surface.coupon).format(x=amount))
            sign, note = ("+", "Adding") if up else ("-", "Taking away")
            plan.append(PlanStep(op=sign, left=last, right=amount, note=note))
            value = value + amount if up else value - amount
        last = Ref(len(plan) - 1)
    sentences.append(source.choice(surface.ask))
    return Drawn(question=" ".join(sentences), plan=tuple(plan), arithmetic=NUMBERS)
