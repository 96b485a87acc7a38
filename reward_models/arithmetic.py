"""A rule-based process reward model: it checks the arithmetic that each step writes out."""

from __future__ import annotations

from collections.abc import Sequence

from reward_models.equations import Equation, check_equations
from reward_models.steps import with_steps
from reward_models.types import Solution, StepScore, StepScores, Unscored

RIGHT = 1.0
"""A step whose equations all hold. Exactly 1, so that a product over many right steps stays 1."""
WRONG = 0.05
"""A step with an equation that does not hold. Low, and not 0: one misread equation should not void a whole solution."""

_NO_EQUATION = Unscored(code="no_equation", reason="the step writes out no equation that can be checked")
_EMPTY = Unscored(code="empty_step", reason="the step is blank")


class Arithmetic:
    """Scores a step 1 if every equation in it holds, 0.05 if one does not; ``raw`` is the share that holds.

    A step without an equation is unscored (``no_equation``): the rule has nothing to say on it, which does not make it
    right. What counts as an equation is told at :func:`reward_models.equations.check_equations`; the thinking part is
    read too. Steps are aggregated by the product over the scored ones: a solution scores 1, times 0.05 for each step
    with a wrong equation, whatever its length.
    """

    name = "arithmetic"
    fingerprint = "arithmetic/1"
    aggregation = "product"

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        return [self._score(with_steps(solution)) for solution in solutions]

    def _score(self, solution: Solution) -> StepScores:
        scores = tuple(_step_score(step.text) for step in solution.steps)
        return StepScores(steps=solution.steps, scores=scores, aggregation=self.aggregation)


def arithmetic() -> Arithmetic:
    """The factory behind the name ``arithmetic``."""
    return Arithmetic()


def _step_score(text: str) -> StepScore:
    if not text.strip():
        return StepScore(value=None, unscored=_EMPTY)
    equations = check_equations(text)
    if not equations:
        return StepScore(value=None, unscored=_NO_EQUATION)
    return StepScore(value=RIGHT if all(map(_holds, equations)) else WRONG, raw=_share(equations))


def _holds(equation: Equation) -> bool:
    return equation.holds


def _share(equations: Sequence[Equation]) -> float:
    return sum(map(_holds, equations)) / len(equations)
