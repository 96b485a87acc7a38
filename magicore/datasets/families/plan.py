"""A problem's plan: the operations that lead to its answer, written as steps, replayed with errors, and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Literal

from magicore.answers import equivalent, extract
from magicore.answers.kinds import Kind

Split = Literal["train", "test"]
Value = int
"""What a step works out: a number, or a time in minutes since midnight."""


@dataclass(frozen=True)
class Ref:
    """The result of an earlier step, counted from 0."""

    step: int


Operand = int | Ref


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One operation. ``note`` is written in front of it (``{left}`` and ``{right}`` are the operands), ``unit`` behind
    its result.
    """

    op: str
    left: Operand
    right: Operand
    note: str = ""
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How the operations of a family are computed, written, and read back.

    Attributes:
        compute: Operation and operands to the result; ``None`` where there is none (a division with a remainder, a
            result out of range).
        write: A step and its three values as a sentence.
        read: The values that a sentence derives, in order, each with whether it follows from what the sentence states.
        show: A value as the final answer has it.
        slip: A result that a hasty reader might get instead.
        misread: The step as a hasty reader might have understood it.
    """

    kind: Kind
    compute: Callable[[str, Value, Value], Value | None]
    write: Callable[[PlanStep, Value, Value, Value], str]
    read: Callable[[str], Sequence[tuple[Value | Fraction, bool]]]
    show: Callable[[Value], str]
    slip: Callable[[Value, Random], Value]
    misread: Callable[[PlanStep, Random], PlanStep]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A problem with its plan."""

    question: str
    plan: tuple[PlanStep, ...]
    arithmetic: Arithmetic

    @property
    def values(self) -> tuple[Value, ...]:
        """The right result of every step."""
        found = _replay(self.plan, self.arithmetic, {})
        assert found is not None, self.question
        return found

    @property
    def answer(self) -> str:
        """The last step's result."""
        return self.arithmetic.show(self.values[-1])

    @property
    def steps(self) -> tuple[str, ...]:
        """The worked solution, in the step format that the default prompts ask for."""
        return written(self.plan, self.values, self.arithmetic)


def written(plan: Sequence[PlanStep], values: Sequence[Value], arithmetic: Arithmetic) -> tuple[str, ...]:
    """The steps ``Step 1: ...`` with these results, and the final answer as the last."""
    lines = [
        arithmetic.write(step, _of(step.left, values), _of(step.right, values), value)
        for step, value in zip(plan, values, strict=True)
    ]
    lines.append(f"The final answer is {arithmetic.show(values[-1])}.")
    return tuple(f"Step {number}: {line}" for number, line in enumerate(lines, 1))


def with_error(drawn: Drawn, draw: Random) -> tuple[tuple[str, ...], int] | None:
    """The solution with one error, carried through to its end, and the index of the wrong step.

    Half of the errors are slips (the step's result is wrong), half misreadings (the step holds, and is not what the
    question says). ``None`` where the error drawn cannot be carried on.
    """
    at = draw.randrange(len(drawn.plan))
    step, arithmetic = drawn.plan[at], drawn.arithmetic
    plan = drawn.plan
    forced: dict[int, Value] = {}
    if draw.random() < 0.5:
        forced[at] = arithmetic.slip(drawn.values[at], draw)
    else:
        plan = (*plan[:at], arithmetic.misread(step, draw), *plan[at + 1 :])
    values = _replay(plan, arithmetic, forced)
    if values is None or values[at] == drawn.values[at]:
        return None
    return written(plan, values, arithmetic), at


def step_truth(drawn: Drawn, steps: Sequence[str]) -> tuple[bool | None, ...]:
    """Whether each step of any solution is right: it follows from what it states, and it is what the plan needs next.

    A step is compared by the values it derives: they must be results of the plan that no right step before has
    derived. A step that states a final answer is right if it is the gold. A step that derives nothing is ``None``: it
    is neither right nor wrong. A later step that is right again after a wrong one is so called.
    """
    ahead = list(drawn.values)
    kind = drawn.arithmetic.kind
    truth: list[bool | None] = []
    sequential = _sequential(drawn)
    for text in steps:
        stated = extract(text, kind)
        derived = drawn.arithmetic.read(text)
        final = stated.certainty in ("stated", "boxed")
        if not derived and not final:
            truth.append(None)
            continue
        right = not final or equivalent(stated.value, drawn.answer, kind)
        for value, holds in derived:
            found = next((at for at, wanted in enumerate(ahead) if wanted == value), None) if holds else None
            if found is not None:
                ahead = ahead[found + 1 :] if sequential else [*ahead[:found], *ahead[found + 1 :]]
            elif not (final and holds and value == drawn.values[-1]):
                right = False
        truth.append(right)
    return tuple(truth)


def first_error(truth: Sequence[bool | None]) -> int:
    """The index of the first wrong step, -1 where there is none: ProcessBench's label."""
    return next((at for at, right in enumerate(truth) if right is False), -1)


def _sequential(drawn: Drawn) -> bool:
    """Whether every step builds on the one before, so that steps have one order."""
    return all(Ref(at - 1) in (step.left, step.right) for at, step in enumerate(drawn.plan) if at)


def _of(operand: Operand, values: Sequence[Value]) -> Value:
    return values[operand.step] if isinstance(operand, Ref) else operand


def _replay(plan: Sequence[PlanStep], arithmetic: Arithmetic, forced: dict[int, Value]) -> tuple[Value, ...] | None:
    values: list[Value] = []
    for at, step in enumerate(plan):
        result = arithmetic.compute(step.op, _of(step.left, values), _of(step.right, values))
        result = forced.get(at, result)
        if result is None:
            return None
        values.append(result)
    return tuple(values)


def other_number(step: PlanStep, draw: Random) -> PlanStep:
    """The step with one of its own numbers misread by a little."""
    sides = [side for side in ("left", "right") if isinstance(getattr(step, side), int)]
    if not sides:
        return step
    side = draw.choice(sides)
    number = getattr(step, side)
    changed = draw.choice([one for one in (number - 2, number - 1, number + 1, number + 2, number + 10) if one > 0])
    return replace(step, left=changed) if side == "left" else replace(step, right=changed)
