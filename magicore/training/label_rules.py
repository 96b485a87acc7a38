"""Step labels by rule: from a worked solution, and from the arithmetic that a step writes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from magicore.answers import equivalent, extract
from magicore.datasets.load import source_records
from magicore.errors import InputError
from magicore.training.labels import StepLabel, without_label
from magicore.types import Problem
from reward_models.arithmetic import Arithmetic
from reward_models.equations import check_equations
from reward_models.types import Solution

_WORKED_FIELDS = ("gold_solution", "solution", "answer")


def labels_by_arithmetic(solution: Solution) -> tuple[StepLabel, ...]:
    """1 where every equation of a step holds, 0 where one does not; a step without an equation has no label."""
    scores = Arithmetic().score([solution])[0].scores
    labels = []
    for score in scores:
        if score.value is not None:
            labels.append(StepLabel(value=float(score.raw == 1)))
        elif score.unscored is not None and score.unscored.code == "empty_step":
            labels.append(without_label("empty_step", score.unscored.reason))
        else:
            labels.append(without_label("no_equation", "the step writes out no equation that can be checked"))
    return tuple(labels)


def labels_by_gold(problem: Problem, solution: Solution, worked: str | None) -> tuple[StepLabel, ...]:
    """Compare the values that steps derive with those that a worked gold solution derives.

    A step derives the right-hand side of each of its equations, and the last step that states a final answer derives
    that. It is right if every equation holds and every derived value stands in the worked solution too, else wrong. A
    step that derives nothing has no label. What the rule cannot see: a right value that lies on another way than the
    worked solution's is taken for wrong.
    """
    if worked is None:
        missing = without_label("no_worked_solution", f"there is no worked solution for problem {problem.id!r}")
        return (missing,) * len(solution.steps)
    values = {equation.right for equation in check_equations(worked)}
    values |= {equation.left for equation in check_equations(worked)}
    return tuple(_by_values(problem, step.text, values) for step in solution.steps)


def _by_values(problem: Problem, text: str, values: set[Fraction]) -> StepLabel:
    if not text.strip():
        return without_label("empty_step", "the step is blank")
    equations = check_equations(text)
    if equations:
        right = all(equation.holds and equation.right in values for equation in equations)
        return StepLabel(value=float(right))
    stated = extract(text, problem.kind, options=problem.options)
    if stated.certainty in ("stated", "boxed") and problem.answer is not None:
        return StepLabel(value=float(equivalent(stated.value, problem.answer, problem.kind, problem.options)))
    return without_label("no_value", "the step derives no value that can be compared")


def read_worked(source: str) -> Mapping[str, str]:
    """Worked solutions of a data source by problem id: ``gold_solution``, ``solution`` or a worked ``answer``.

    Raises:
        InputError: The source cannot be read, or a record has no worked solution.
    """
    worked: dict[str, str] = {}
    for number, record in enumerate(source_records(source)):
        text = _worked(record.row)
        if text is None:
            raise InputError(f"{record.where}: no worked solution in any of the fields {', '.join(_WORKED_FIELDS)}")
        worked[str(record.row.get("id", number))] = text
    return worked


def _worked(row: Mapping[str, Any]) -> str | None:
    for name in _WORKED_FIELDS:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            return value
    steps: Sequence[Any] = row.get("steps") or ()
    return "\n".join(map(str, steps)) if steps else None
