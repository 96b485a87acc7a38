"""Stories of 2 to 4 additions, subtractions and multiplications on one growing and shrinking number of things."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.numbers import NUMBERS
from magicore.datasets.families.plan import Drawn, PlanStep, Ref, Split

FEWEST, MOST = 2, 4
"""Operations in a story."""
_TOP: Final = 150
"""No total lies above this."""


class _Surface(NamedTuple):
    names: tuple[str, ...]
    things: tuple[str, ...]
    start: tuple[str, ...]
    more: tuple[str, ...]
    fewer: tuple[str, ...]
    packs: tuple[str, ...]
    used: tuple[str, ...]
    times: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        names=("Ana", "Bilal", "Chen", "Dora", "Emeka", "Freya", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena"),
        things=("apples", "books", "coins", "marbles", "pencils", "shells", "stamps", "stickers"),
        start=(
            "{who} has {x} {things}.",
            "{who} starts with {x} {things}.",
            "There are {x} {things} in {who}'s box.",
            "In the morning {who} has {x} {things}.",
            "{x} {things} belong to {who}.",
            "{who} keeps {x} {things} on a shelf.",
        ),
        more=(
            "{who} buys {x} more.",
            "{other} gives {who} {x} more.",
            "Then {who} finds {x} {things}.",
            "{who} receives {x} {things} from {other}.",
            "Another {x} {things} come with the mail.",
            "{x} more {things} arrive.",
            "{who} wins {x} {things} in a game.",
            "Then {other} puts {x} {things} in.",
            "{who} makes {x} new ones.",
        ),
        fewer=(
            "{who} gives {x} to {other}.",
            "{who} loses {x} of them.",
            "Then {who} sells {x} {things}.",
            "{x} of the {things} are stolen.",
            "{other} borrows {x} {things}.",
            "{x} {things} fall into a river.",
            "{who} drops {x} of them on the way.",
            "A dog runs off with {x} {things}.",
            "{who} uses {x} {things} up.",
        ),
        packs=(
            "{who} buys {a} bags with {b} {things} each.",
            "{other} brings {a} boxes of {b} {things} each.",
            "{a} crates come, and {b} {things} are in each of them.",
            "{who} finds {a} tins with {b} {things} in every tin.",
            "{a} friends give {who} {b} {things} each.",
            "{other} fills {a} baskets with {b} {things} each for {who}.",
        ),
        used=(
            "{who} gives {b} {things} to each of {a} friends.",
            "{a} children take {b} {things} each.",
            "{who} sells {a} boxes of {b} {things} each.",
            "On each of {a} days {who} loses {b} {things}.",
            "{who} packs {a} bags with {b} {things} each for {other}.",
            "Each of {a} guests leaves with {b} {things}.",
        ),
        times=(
            "After that {who} gets enough to have {m} times as many.",
            "Then the number of {things} grows to {m} times what it was.",
            "By the evening there are {m} times as many {things}.",
            "A trick turns them into {m} times as many {things}.",
            "Soon {who} has {m} times the number of before.",
            "The heap grows until it is {m} times as big.",
        ),
        ask=(
            "How many {things} does {who} have now?",
            "How many {things} are there now?",
            "How many {things} remain?",
            "What is the number of {things} now?",
        ),
    ),
    "test": _Surface(
        names=("Mara", "Nils", "Omar", "Pia", "Quinn", "Rosa", "Sami", "Tara", "Uwe", "Vera", "Wim", "Yara"),
        things=("beads", "buttons", "cards", "feathers", "lemons", "nails", "pebbles", "tickets"),
        start=("At first {who} owns {x} {things}.", "{who} begins the day with {x} {things}."),
        more=("{who} gets {x} more from {other}.", "{who} picks up another {x} {things}.", "{x} {things} are added."),
        fewer=("{other} takes away {x} of them.", "{x} {things} break.", "{who} throws {x} {things} away."),
        packs=(
            "{a} parcels arrive, each with {b} {things}.",
            "{who} opens {a} packs and finds {b} {things} in each.",
        ),
        used=(
            "{who} puts {b} {things} into each of {a} letters and sends them off.",
            "{a} neighbours come and each takes {b} {things}.",
        ),
        times=(
            "Now {who} trades so well that there are {m} times as many.",
            "Overnight the number of {things} becomes {m} times as large.",
        ),
        ask=("How many {things} are left in the end?", "What is the number of {things} that {who} has in the end?"),
    ),
}


def draw(source: Random, split: Split) -> Drawn:
    """One story."""
    surface = _SURFACES[split]
    who, other = source.sample(surface.names, 2)
    words = {"who": who, "other": other, "things": source.choice(surface.things)}
    total = source.randint(5, 25)
    sentences = [source.choice(surface.start).format(x=total, **words)]
    plan: list[PlanStep] = []
    wanted = source.randint(FEWEST, MOST)
    while len(plan) < wanted:
        total = _extend(source, surface, words, sentences, plan, total, wanted - len(plan))
    sentences.append(source.choice(surface.ask).format(**words))
    return Drawn(question=" ".join(sentences), plan=tuple(plan), arithmetic=NUMBERS)


def _extend(
    source: Random,
    surface: _Surface,
    words: dict[str, str],
    sentences: list[str],
    plan: list[PlanStep],
    total: int,
    room: int,
) -> int:
    """Put one event into the story, of one step or two; returns the new total."""
    events = ["more"]
    if total > 8:
        events.append("fewer")
    if total * 2 <= _TOP // 2:
        events.append("times")
    if room > 1:
        events.append("packs")
        if total > 20:
            events.append("used")
    event = source.choice(events)
    before = Ref(len(plan) - 1) if plan else total
    if event == "times":
        factor = source.randint(2, max(2, min(5, _TOP // (2 * total))))
        plan.append(PlanStep(op="*", left=before, right=factor, note="{right} times as many"))
        sentences.append(source.choice(surface.times).format(m=factor, **words))
        return total * factor
    if event in ("more", "fewer"):
        number = source.randint(3, 25) if event == "more" else source.randint(2, min(25, total - 3))
        sign, note = ("+", "Adding") if event == "more" else ("-", "Taking away")
        plan.append(PlanStep(op=sign, left=before, right=number, note=note))
        frames = surface.more if event == "more" else surface.fewer
        sentences.append(source.choice(frames).format(x=number, **words))
        return total + number if event == "more" else total - number
    if event == "packs":
        groups, each = source.randint(2, 6), source.randint(3, 9)
    else:
        groups = source.randint(2, min(6, total // 5))
        each = source.randint(2, max(2, (total - 2) // groups))
        each = min(each, 9)
    plan.append(PlanStep(op="*", left=groups, right=each, note="{left} times {right}"))
    sign, note = ("+", "Adding") if event == "packs" else ("-", "Taking away")
    frames = surface.packs if event == "packs" else surface.used
    plan.append(PlanStep(op=sign, left=before, right=Ref(len(plan) - 1), note=note))
    sentences.append(source.choice(frames).format(a=groups, b=each, **words))
    return total + groups * each if event == "packs" else total - groups * each
