"""The exact truth of generated problems' steps in the place of a process reward model: what perfect step scores would
be worth. ``exact:gen:stories:100:9:test`` knows the problems of that source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magicore.datasets.families import FAMILIES, draw_family
from magicore.datasets.families.plan import Drawn, step_truth
from magicore.datasets.tasks import parse_task_name
from magicore.errors import InputError
from reward_models import ModelName, Solution, StepScore, StepScores, Unscored, register_process, with_steps
from reward_models.arithmetic import RIGHT, WRONG

EXACT: Final = "exact"
"""The name's first word; importing this module registers it."""
_UNKNOWN = Unscored(code="no_truth", reason="the problem is none of the source's")
_NEITHER = Unscored(code="no_truth", reason="the step derives nothing that could be right or wrong")
_OF_TRUTH: Final = {
    True: StepScore(value=RIGHT),
    False: StepScore(value=WRONG),
    None: StepScore(value=None, unscored=_NEITHER),
}


class ExactSteps:
    """Scores a step 1 if it is right and 0.05 if it is wrong, as the rule ``arithmetic`` does, by
    :func:`~magicore.datasets.families.plan.step_truth`; a step that derives nothing, and every step of another problem,
    is unscored (``no_truth``).
    """

    aggregation = "product"

    def __init__(self, name: str, problems: Sequence[Drawn]) -> None:
        self.name = self.fingerprint = name
        self._plans = {drawn.question.strip(): drawn for drawn in problems}

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        """One entry a step."""
        return [self._score(with_steps(solution)) for solution in solutions]

    def _score(self, solution: Solution) -> StepScores:
        drawn = self._plans.get(solution.question.strip())
        if drawn is None:
            scores = [StepScore(value=None, unscored=_UNKNOWN) for _ in solution.steps]
        else:
            truth = step_truth(drawn, [step.text for step in solution.steps])
            scores = [_OF_TRUTH[right] for right in truth]
        return StepScores(steps=solution.steps, scores=tuple(scores), aggregation=self.aggregation)


@register_process(EXACT)
def exact(name: ModelName) -> ExactSteps:
    """The factory behind the name ``exact``.

    Raises:
        InputError: It names no generated family.
    """
    task = parse_task_name(name.name)
    if task.name not in FAMILIES:
        raise InputError(
            f"{name}: only the steps of {', '.join(FAMILIES)} are known; write exact:gen:stories:100:9:test"
        )
    return ExactSteps(str(name), draw_family(task.name, task.n, task.seed, task.split))
