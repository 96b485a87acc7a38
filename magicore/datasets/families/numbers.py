"""Whole-number arithmetic, shared by the families whose steps are equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from magicore.datasets.families.plan import Arithmetic, PlanStep, Value, other_number
from reward_models.equations import check_equations

_SWAPPED = {"+": ("-", "Taking away"), "-": ("+", "Adding"), "*": ("+", "Adding"), "/": ("-", "Taking away")}
_LARGEST = 100_000


def compute(op: str, left: Value, right: Value) -> Value | None:
    """The result; ``None`` where it is negative, very large, or no whole number."""
    if op == "+":
        found = left + right
    elif op == "-":
        found = left - right
    elif op == "*":
        found = left * right
    else:
        if right == 0 or left % right:
            return None
        found = left // right
    return found if 0 <= found <= _LARGEST else None


def write(step: PlanStep, left: Value, right: Value, result: Value) -> str:
    """``Adding: 12 + 30 = 42 pens.``"""
    note = step.note.format(left=left, right=right)
    return f"{note}{': ' if note else ''}{left} {step.op} {right} = {result}{' ' if step.unit else ''}{step.unit}."


def read(text: str) -> Sequence[tuple[Value | Fraction, bool]]:
    """The right-hand side of every equation, and whether it holds."""
    return [(equation.right, equation.holds) for equation in check_equations(text)]


def slip(value: Value, draw: Random) -> Value:
    """Off by one, two or ten, or two digits swapped."""
    changed = [value - 10, value - 2, value - 1, value + 1, value + 2, value + 10]
    digits = str(value)
    if len(digits) > 1 and digits[-1] != digits[-2]:
        changed.append(int(digits[:-2] + digits[-1] + digits[-2]))
    return draw.choice([one for one in changed if one > 0])


def misread(step: PlanStep, draw: Random) -> PlanStep:
    """Another operation, or a number misread."""
    if step.op in _SWAPPED and draw.random() < 0.5:
        op, note = _SWAPPED[step.op]
        return replace(step, op=op, note=note)
    return other_number(step, draw)


def show(value: Value) -> str:
    """The number in digits."""
    return str(value)


NUMBERS = Arithmetic(kind="number", compute=compute, write=write, read=read, show=show, slip=slip, misread=misread)
