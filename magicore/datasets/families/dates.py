"""Date arithmetic: 2 or 3 steps of days, weeks and months forward and back in the calendar.

Each step shows the sums behind it, over the ends of months and years, so that no step is a leap.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from random import Random
from typing import Final, NamedTuple

from magicore.datasets.families.plan import Arithmetic, Drawn, PlanStep, Ref, Split, Value

FEWEST, MOST = 2, 3
"""Operations in a question."""
_DATE = re.compile(r"\b(\d{2})/(\d{2})/(\d{4})\b")
_STEP = re.compile(
    r"(?P<n>\d{1,4}) (?P<unit>day|week|month)s? (?P<way>after|before) (?P<from>\d{2}/\d{2}/\d{4}) "
    r"(?:is|was|will be|comes to) (?P<to>\d{2}/\d{2}/\d{4})"
)
_FIRST, _LAST = date(2001, 1, 1), date(2039, 12, 31)
_MOST_OF: Final = {"days": 15, "weeks": 3, "months": 6}


class _Surface(NamedTuple):
    events: tuple[str, ...]
    start: tuple[str, ...]
    after: tuple[str, ...]
    before: tuple[str, ...]
    ask: tuple[str, ...]


_SURFACES: Final[dict[Split, _Surface]] = {
    "train": _Surface(
        events=("the concert", "the fair", "the exam", "the wedding", "the race", "the trip", "the meeting"),
        start=("{event} is on {d}.", "The date of {event} is {d}."),
        after=("{event} is {n} {unit} after {last}.", "{n} {unit} later comes {event}."),
        before=("{event} is {n} {unit} before {last}.", "{event} takes place {n} {unit} earlier than {last}."),
        ask=("What is the date of {event}? Answer as MM/DD/YYYY.",),
    ),
    "test": _Surface(
        events=("the auction", "the launch", "the picnic", "the lecture", "the match", "the opening", "the visit"),
        start=("On {d} there is {event}.", "{event} was planned for {d}."),
        after=("{event} follows {n} {unit} after {last}.", "{n} {unit} after {last} there is {event}."),
        before=("{event} comes {n} {unit} before {last}.", "{n} {unit} before {last} there is {event}."),
        ask=("On which date is {event}? Give it as MM/DD/YYYY.",),
    ),
}


def compute(op: str, left: Value, right: Value) -> Value | None:
    """``left`` is the number of units, ``right`` the date; ``None`` where the result leaves the years 2001 to 2039, or
    the month has no such day.
    """
    assert isinstance(left, int) and isinstance(right, date)
    unit, way = op.split()
    count = left if way == "after" else -left
    if unit in ("days", "weeks"):
        found = right + timedelta(days=count * (7 if unit == "weeks" else 1))
    else:
        months = right.year * 12 + right.month - 1 + count
        try:
            found = date(months // 12, months % 12 + 1, right.day)
        except ValueError:
            return None
    return found if _FIRST <= found <= _LAST else None


def show(value: Value) -> str:
    """MM/DD/YYYY."""
    assert isinstance(value, date)
    return value.strftime("%m/%d/%Y")


def write(step: PlanStep, left: Value, right: Value, result: Value) -> str:
    """``14 + 23 = 37, 37 - 31 = 6. 23 days after 03/14/2021 is 04/06/2021.``"""
    unit, way = step.op.split()
    assert isinstance(left, int) and isinstance(right, date) and isinstance(result, date)
    *sums, (last, _) = _sums(unit, left if way == "after" else -left, right)
    found = result.month if unit == "months" else result.day
    working = ", ".join(f"{sum_} = {value}" for sum_, value in [*sums, (last, found)])
    return f"{working}. {left} {unit if left != 1 else unit[:-1]} {way} {show(right)} is {show(result)}."


def _sums(unit: str, count: int, start: date) -> list[tuple[str, int]]:
    """The sums that lead from a date over a count, negative for back, to the day or month of the result."""
    if unit == "months":
        return _around(start.month, count, lambda _: 12)
    weeks: list[tuple[str, int]] = []
    if unit == "weeks":
        weeks = [(f"{abs(count)} * 7", abs(count) * 7)]
        count *= 7

    def days_of(distance: int) -> int:
        years, month = divmod(start.month - 1 + distance, 12)
        return monthrange(start.year + years, month + 1)[1]

    return weeks + _around(start.day, count, days_of)


def _around(at: int, count: int, length: Callable[[int], int]) -> list[tuple[str, int]]:
    """Sums in a cycle that begins anew at 1, whose turn so many turns from here has that ``length``."""
    sums: list[tuple[str, int]] = []
    turn = 0
    while at + count < 1:
        turn -= 1
        sums.append(_sum(at, length(turn)))
        at = sums[-1][1]
    sums.append(_sum(at, count))
    while sums[-1][1] > length(turn):
        sums.append(_sum(sums[-1][1], -length(turn)))
        turn += 1
    return sums


def _sum(left: int, right: int) -> tuple[str, int]:
    return f"{left} {'+' if right >= 0 else '-'} {abs(right)}", left + right


def read(text: str) -> Sequence[tuple[Value | Fraction, bool]]:
    """The date that every ``N days after DATE is DATE`` states, and whether it is so."""
    found: list[tuple[Value | Fraction, bool]] = []
    for match in _STEP.finditer(text):
        start, end = _date(match["from"]), _date(match["to"])
        right = None if start is None else compute(f"{match['unit']}s {match['way']}", int(match["n"]), start)
        found.append((end if end is not None else Fraction(-1), end is not None and right == end))
    return found


def _date(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    assert match is not None
    try:
        return date(int(match[3]), int(match[1]), int(match[2]))
    except ValueError:
        return None


def slip(value: Value, draw: Random) -> Value:
    """A day or two, ten days, or a month off."""
    assert isinstance(value, date)
    return value + timedelta(days=draw.choice([-30, -10, -2, -1, 1, 2, 10, 30]))


def misread(step: PlanStep, draw: Random) -> PlanStep:
    """The other way in time, another unit, or another number."""
    unit, way = step.op.split()
    choice = draw.randrange(3)
    if choice == 0:
        return replace(step, op=f"{unit} {'before' if way == 'after' else 'after'}")
    if choice == 1:
        return replace(step, op=f"{'days' if unit == 'weeks' else 'weeks'} {way}")
    assert isinstance(step.left, int)
    return replace(step, left=step.left + draw.choice([1, 2, 10]))


DATES = Arithmetic(kind="date", compute=compute, write=write, read=read, show=show, slip=slip, misread=misread)


def draw(source: Random, split: Split) -> Drawn:
    """One question."""
    surface = _SURFACES[split]
    wanted = source.randint(FEWEST, MOST)
    events = source.sample(surface.events, wanted + 1)
    start = date(source.randint(2015, 2029), source.randint(1, 12), source.randint(1, 28))
    sentences = [source.choice(surface.start).format(event=events[0], d=show(start))]
    plan: list[PlanStep] = []
    value: Value = start
    while len(plan) < wanted:
        unit = source.choices(("days", "weeks", "months"), (5, 3, 2))[0]
        way = source.choice(("after", "after", "before"))
        number = source.randint(2, _MOST_OF[unit])
        result = compute(f"{unit} {way}", number, value)
        if result is None:
            continue
        last, event = events[len(plan)], events[len(plan) + 1]
        frames = surface.after if way == "after" else surface.before
        sentences.append(source.choice(frames).format(event=event, last=last, n=number, unit=unit))
        plan.append(PlanStep(op=f"{unit} {way}", left=number, right=Ref(len(plan) - 1) if plan else start))
        value = result
    sentences.append(source.choice(surface.ask).format(event=events[wanted]))
    question = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    return Drawn(question=question, plan=tuple(plan), arithmetic=DATES)
