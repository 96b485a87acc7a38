"""Times of day: 2 to 4 events, each so many minutes or hours after or before the last.

Each step shows the sums behind it, over the full hour, so that no step is a leap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.plan import Arithmetic, Drawn, PlanStep, Ref, Split, Value

FEWEST, MOST = 2, 4
"""Events after the first."""
_HOUR: Final = 60
_DAY: Final = 24 * _HOUR
_MOST_HOURS: Final = 5
_STEP = re.compile(
    r"(?P<n>\d{1,4}) (?P<unit>minute|hour)s? (?P<way>after|before) (?P<from>\d{1,2}:\d{2}) "
    r"(?:is|was|will be|comes to) (?P<to>\d{1,2}:\d{2})\b"
)


class _Surface(NamedTuple):
    events: tuple[str, ...]
    start: tuple[str, ...]
    after: tuple[str, ...]
    before: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        events=("the concert", "the fair", "the exam", "the dinner", "the race", "the trip", "the meeting", "the film"),
        start=(
            "{event} is at {t}.",
            "{event} starts at {t}.",
            "The time of {event} is {t}.",
            "At {t} comes {event}.",
        ),
        after=(
            "{event} is {n} {unit} after {last}.",
            "{n} {unit} later comes {event}.",
            "{event} begins {n} {unit} after {last}.",
            "{n} {unit} after {last} comes {event}.",
            "From {last} it takes {n} {unit} until {event}.",
            "{event} is planned {n} {unit} later than {last}.",
        ),
        before=(
            "{event} is {n} {unit} before {last}.",
            "{event} takes place {n} {unit} earlier than {last}.",
            "{event} was over {n} {unit} before {last}.",
            "{n} {unit} before {last} comes {event}.",
            "{n} {unit} earlier there was {event}.",
            "{event} is set {n} {unit} ahead, before {last}.",
        ),
        ask=("At what time is {event}?", "When is {event}?", "Give the time of {event}."),
    ),
    "test": _Surface(
        events=("the auction", "the launch", "the picnic", "the lecture", "the match", "the opening", "the visit"),
        start=("At {t} there is {event}.", "{event} was planned for {t}."),
        after=("{event} follows {n} {unit} after {last}.", "{n} {unit} after {last} there is {event}."),
        before=("{event} comes {n} {unit} before {last}.", "{n} {unit} before {last} there is {event}."),
        ask=("What is the time of {event}?", "At which time does {event} start?"),
    ),
}


def compute(op: str, left: Value, right: Value) -> Value | None:
    """``left`` is the number of units, ``right`` the minutes since midnight; ``None`` where the day is left."""
    unit, way = op.split()
    count = left * (_HOUR if unit == "hours" else 1)
    found = right + (count if way == "after" else -count)
    return found if 0 <= found < _DAY else None


def show(value: Value) -> str:
    """``9:05`` or ``14:30``."""
    return f"{value // _HOUR}:{value % _HOUR:02}"


def write(step: PlanStep, left: Value, right: Value, result: Value) -> str:
    """``35 + 50 = 85, 85 - 60 = 25, 9 + 1 = 10. 50 minutes after 9:35 is 10:25.``

    The result is the one that is given, right or not: it ends the sums too.
    """
    unit, way = step.op.split()
    sums = _sums(unit, left if way == "after" else -left, right, result)
    return f"{', '.join(sums)}. {left} {unit if left != 1 else unit[:-1]} {way} {show(right)} is {show(result)}."


def _sums(unit: str, count: int, start: Value, result: Value) -> list[str]:
    """The sums that lead from a time over a count, negative for back, to the hours and minutes of the result."""
    (hour, minute), (to_hour, to_minute) = divmod(start, _HOUR), divmod(result, _HOUR)
    if unit == "hours":
        return [_sum(hour, count, to_hour)]
    sums: list[str] = []
    if minute + count < 0:
        sums.append(_sum(minute, _HOUR, minute + _HOUR))
        sums += [_sum(minute + _HOUR, count, to_minute), _sum(hour, -1, to_hour)]
    elif minute + count >= _HOUR:
        sums.append(_sum(minute, count, minute + count))
        sums += [_sum(minute + count, -_HOUR, to_minute), _sum(hour, 1, to_hour)]
    else:
        sums.append(_sum(minute, count, to_minute))
    return sums


def _sum(left: int, right: int, result: int) -> str:
    return f"{left} {'+' if right >= 0 else '-'} {abs(right)} = {result}"


def read(text: str) -> Sequence[tuple[Value | Fraction, bool]]:
    """The time that every ``N minutes after TIME is TIME`` states, and whether it is so."""
    found: list[tuple[Value | Fraction, bool]] = []
    for match in _STEP.finditer(text):
        start, end = _time(match["from"]), _time(match["to"])
        right = None if start is None else compute(f"{match['unit']}s {match['way']}", int(match["n"]), start)
        found.append((end if end is not None else Fraction(-1), end is not None and right == end))
    return found


def _time(text: str) -> Value | None:
    hours, minutes = (int(part) for part in text.split(":"))
    return hours * _HOUR + minutes if hours * _HOUR < _DAY and minutes < _HOUR else None


def slip(value: Value, draw: Random) -> Value:
    """A minute or two, ten minutes, or an hour off."""
    changed = [value + off for off in (-60, -10, -2, -1, 1, 2, 10, 60)]
    return draw.choice([one for one in changed if 0 <= one < _DAY])


def misread(step: PlanStep, draw: Random) -> PlanStep:
    """The other way in time, another unit, or another number."""
    assert isinstance(step.left, int)
    unit, way = step.op.split()
    choice = draw.randrange(3)
    if choice == 0:
        return replace(step, op=f"{unit} {'before' if way == 'after' else 'after'}")
    if choice == 1 and (unit == "hours" or step.left <= _MOST_HOURS):
        return replace(step, op=f"{'minutes' if unit == 'hours' else 'hours'} {way}")
    return replace(step, left=step.left + draw.choice([1, 2, 10]))


CLOCK = Arithmetic(kind="text", compute=compute, write=write, read=read, show=show, slip=slip, misread=misread)


def draw(source: Random, split: Split) -> Drawn:
    """One question."""
    surface = _SURFACES[split]
    wanted = source.randint(FEWEST, MOST)
    events = source.sample(surface.events, wanted + 1)
    value = source.randint(5 * _HOUR, 20 * _HOUR)
    sentences = [source.choice(surface.start).format(event=events[0], t=show(value))]
    plan: list[PlanStep] = []
    while len(plan) < wanted:
        unit = source.choices(("minutes", "hours"), (4, 1))[0]
        way = source.choice(("after", "after", "before"))
        number = source.randint(2, _MOST_HOURS) if unit == "hours" else source.randint(3, 59)
        result = compute(f"{unit} {way}", number, value)
        if result is None:
            continue
        last, event = events[len(plan)], events[len(plan) + 1]
        frames = surface.after if way == "after" else surface.before
        sentences.append(source.choice(frames).format(event=event, last=last, n=number, unit=unit))
        plan.append(PlanStep(op=f"{unit} {way}", left=number, right=Ref(len(plan) - 1) if plan else value))
        value = result
    sentences.append(source.choice(surface.ask).format(event=events[wanted]))
    question = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    return Drawn(question=question, plan=tuple(plan), arithmetic=CLOCK)
