"""Shopping: so many of one thing and of another at their prices, something off or on top, perhaps change: the guide's
own domain, in which no embedded model is trained.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.numbers import NUMBERS
from magicore.datasets.families.plan import Drawn, PlanStep, Ref, Split


class _Surface(NamedTuple):
    goods: tuple[str, ...]
    people: tuple[str, ...]
    price: tuple[str, ...]
    buys: tuple[str, ...]
    fee: tuple[str, ...]
    coupon: tuple[str, ...]
    pays: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        goods=("lamp", "chair", "plate", "towel", "bowl", "pillow"),
        people=("Adil", "Berta", "Carl", "Dana", "Emil", "Fatma"),
        price=("A {good} costs {x} dollars and a {other} costs {y} dollars.",),
        buys=("{who} buys {a} {good}s and {b} {other}s.", "{who} takes {a} {good}s and {b} {other}s."),
        fee=("Delivery costs {c} dollars more.", "A fee of {c} dollars is added."),
        coupon=("A coupon takes {c} dollars off.", "The shop takes {c} dollars off."),
        pays=("{who} pays with {p} dollars. How many dollars come back?",),
        ask=("How many dollars is that?", "How many dollars does {who} pay?"),
    ),
    "test": _Surface(
        goods=("mug", "scarf", "basket", "candle", "hammer", "notebook"),
        people=("Gabor", "Helga", "Ines", "Jonas", "Kemal", "Lucia"),
        price=("The shop asks {x} dollars for a {good} and {y} dollars for a {other}.",),
        buys=("{who} wants {a} {good}s and {b} {other}s.", "{who} orders {a} {good}s and {b} {other}s."),
        fee=("Packing adds {c} dollars.", "Insurance adds {c} dollars."),
        coupon=("A voucher saves {c} dollars.", "The seller lowers the sum by {c} dollars."),
        pays=("{who} gives {p} dollars. What is the change in dollars?",),
        ask=("What has to be paid, in dollars?", "What is the sum in dollars?"),
    ),
}


def draw(source: Random, split: Split) -> Drawn:
    """One purchase of 3 to 5 steps."""
    surface = _SURFACES[split]
    good, other = source.sample(surface.goods, 2)
    words = {"good": good, "other": other, "who": source.choice(surface.people)}
    first, second = source.sample(range(2, 10), 2)
    many, few = source.randint(2, 6), source.randint(2, 6)
    sentences = [
        source.choice(surface.price).format(x=first, y=second, **words),
        source.choice(surface.buys).format(a=many, b=few, **words),
    ]
    total = many * first + few * second
    plan = [
        PlanStep(op="*", left=many, right=first, note="{left} times {right}"),
        PlanStep(op="*", left=few, right=second, note="{left} times {right}"),
        PlanStep(op="+", left=Ref(0), right=Ref(1), note="Adding"),
    ]
    extra = source.choice(("none", "fee", "coupon"))
    if extra != "none":
        amount = source.randint(2, 9)
        sign, note = ("+", "Adding") if extra == "fee" else ("-", "Taking away")
        sentences.append(source.choice(surface.fee if extra == "fee" else surface.coupon).format(c=amount))
        plan.append(PlanStep(op=sign, left=Ref(2), right=amount, note=note))
        total += amount if extra == "fee" else -amount
    if source.random() < 0.3:
        paid = total + source.randint(1, 20)
        sentences.append(source.choice(surface.pays).format(p=paid, **words))
        plan.append(PlanStep(op="-", left=paid, right=Ref(len(plan) - 1), note="Taking away"))
    else:
        sentences.append(source.choice(surface.ask).format(**words))
    return Drawn(question=" ".join(sentences), plan=tuple(plan), arithmetic=NUMBERS)
