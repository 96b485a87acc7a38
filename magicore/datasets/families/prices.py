"""Prices that fees and coupons change and that are paid several times: the guide's own domain, in which no embedded
model is trained.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.numbers import NUMBERS
from magicore.datasets.families.plan import Drawn, Operand, PlanStep, Ref, Split

FEWEST, MOST = 2, 4
"""Changes of a price."""


class _Surface(NamedTuple):
    goods: tuple[str, ...]
    start: tuple[str, ...]
    fee: tuple[str, ...]
    coupon: tuple[str, ...]
    many: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        goods=("lamp", "chair", "plate", "towel", "bowl", "pillow"),
        start=("A {good} costs {x} dollars.", "The price of a {good} is {x} dollars."),
        fee=(
            "Then the price goes up by {x} dollars.",
            "A fee of {x} dollars is added.",
            "Delivery is {x} dollars more.",
        ),
        coupon=(
            "Then the price falls by {x} dollars.",
            "A coupon takes {x} dollars off.",
            "The shop takes {x} dollars off.",
        ),
        many=("Someone pays this for {m} of them.",),
        ask=("How many dollars is that?", "How many dollars is it now?"),
    ),
    "test": _Surface(
        goods=("mug", "scarf", "basket", "candle", "hammer", "notebook"),
        start=("The shop asks {x} dollars for a {good}.", "You see a {good} for {x} dollars."),
        fee=("It gets {x} dollars dearer.", "Packing adds {x} dollars.", "Insurance adds {x} dollars."),
        coupon=("It gets {x} dollars cheaper.", "A voucher saves {x} dollars.", "The seller lowers it by {x} dollars."),
        many=("A school orders {m} at that price.",),
        ask=("What has to be paid, in dollars?", "What is the amount in dollars?"),
    ),
}


def draw(source: Random, split: Split) -> Drawn:
    """One price with 2 to 4 changes, of which the last may be that several are bought."""
    surface = _SURFACES[split]
    value = source.randint(6, 30)
    sentences = [source.choice(surface.start).format(good=source.choice(surface.goods), x=value)]
    plan: list[PlanStep] = []
    last: Operand = value
    changes = source.randint(FEWEST, MOST)
    for number in range(1, changes + 1):
        if number == changes and value <= 50 and source.random() < 0.4:
            factor = source.randint(2, 5)
            sentences.append(source.choice(surface.many).format(m=factor))
            plan.append(PlanStep(op="*", left=last, right=factor, note="{right} times as many"))
        else:
            up = value < 10 or source.random() < 0.5
            amount = source.randint(2, 20 if up else min(20, value - 3))
            sentences.append(source.choice(surface.fee if up else surface.coupon).format(x=amount))
            sign, note = ("+", "Adding") if up else ("-", "Taking away")
            plan.append(PlanStep(op=sign, left=last, right=amount, note=note))
            value += amount if up else -amount
        last = Ref(len(plan) - 1)
    sentences.append(source.choice(surface.ask))
    return Drawn(question=" ".join(sentences), plan=tuple(plan), arithmetic=NUMBERS)
