"""Reward models whose scores are known beforehand: for tests, examples and ablations. They read no model.

``scripted`` gives the scores it is told, ``constant`` the same score to all, ``random`` a score that is drawn once and
for all from the text and a seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_models.errors import RewardModelError, StepCountError
from reward_models.names import ModelName
from reward_models.steps import with_steps
from reward_models.types import OutcomeScore, Solution, StepScore, StepScores, Unscored

OutcomeScript = Mapping[str, float | None] | Callable[[Solution], float | None]
ProcessScript = Mapping[str, Sequence[float | None]] | Callable[[Solution], Sequence[float | None]]

_EMPTY = Unscored(code="empty_step", reason="the step is blank")


class ScriptedORM:
    """Gives each solution the score a script holds for it.

    Args:
        script: Scores in [0, 1] by the solution's text, or a function of the solution. ``None``, or a text that is not
            there, is unscored (``failed``).
        name: What it is called.

    Attributes:
        batches: The number of solutions in each call so far.
    """

    def __init__(self, script: OutcomeScript, *, name: str = "scripted") -> None:
        self.name = name
        self.batches: list[int] = []
        self._script = script

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        self.batches.append(len(solutions))
        return [self._score(solution) for solution in solutions]

    def _score(self, solution: Solution) -> OutcomeScore:
        script = self._script
        value = script.get(solution.text) if isinstance(script, Mapping) else script(solution)
        if value is None:
            return OutcomeScore(value=None, unscored=_not_scripted(self.name))
        return OutcomeScore(value=value, raw=value)


class ScriptedPRM:
    """Gives the steps of each solution the scores a script holds for them.

    Args:
        script: One score in [0, 1] or ``None`` (unscored, ``failed``) for each step, by the solution's text, or a
            function of the solution (whose steps are filled in). A text that is not there has no step scored.
        name: What it is called.
        aggregation: What it recommends.

    Attributes:
        batches: The number of solutions in each call so far.

    Raises (``score``):
        StepCountError: The script holds more or fewer scores than there are steps.
    """

    def __init__(self, script: ProcessScript, *, name: str = "scripted", aggregation: str = "product") -> None:
        self.name = name
        self.aggregation = aggregation
        self.batches: list[int] = []
        self._script = script

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        self.batches.append(len(solutions))
        return [self._score(with_steps(solution)) for solution in solutions]

    def _score(self, solution: Solution) -> StepScores:
        script = self._script
        values = script.get(solution.text) if isinstance(script, Mapping) else script(solution)
        if values is None:
            values = [None] * len(solution.steps)
        if len(values) != len(solution.steps):
            raise StepCountError(
                f"{len(values)} scores for {len(solution.steps)} steps", model=self.name, solution=solution.id
            )
        scores = tuple(self._step_score(step.text, value) for step, value in zip(solution.steps, values, strict=True))
        return StepScores(steps=solution.steps, scores=scores, aggregation=self.aggregation)

    def _step_score(self, text: str, value: float | None) -> StepScore:
        if not text.strip():
            return StepScore(value=None, unscored=_EMPTY)
        if value is None:
            return StepScore(value=None, unscored=_not_scripted(self.name))
        return StepScore(value=value, raw=value)


def draw(seed: int, *parts: str | int) -> float:
    """A number in [0, 1) that depends on nothing but the arguments."""
    text = json.dumps([seed, *parts])
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:7]) / 2**56


def scripted_orm(name: ModelName) -> ScriptedORM:
    """``scripted:FILE``: a JSON object of solution texts and scores."""
    table = _table(name)
    for text, value in table.items():
        _check(name, text, value)
    return ScriptedORM(table, name=str(name))


def scripted_prm(name: ModelName) -> ScriptedPRM:
    """``scripted:FILE``: a JSON object of solution texts and lists of scores, one for each step."""
    table = _table(name)
    for text, values in table.items():
        if not isinstance(values, list):
            raise RewardModelError(f"a list of step scores is wanted for {text[:60]!r}", model=str(name))
        for value in values:
            _check(name, text, value)
    return ScriptedPRM(table, name=str(name))


def constant_orm(name: ModelName) -> ScriptedORM:
    """``constant:SCORE``, 0.5 unless given."""
    value = _number(name, 0.5)
    return ScriptedORM(lambda _solution: value, name=str(name))


def constant_prm(name: ModelName) -> ScriptedPRM:
    """``constant:SCORE``, 0.5 unless given."""
    value = _number(name, 0.5)
    return ScriptedPRM(lambda solution: [value] * len(solution.steps), name=str(name))


def random_orm(name: ModelName, *, seed: int = 0) -> ScriptedORM:
    """``random:SEED``: uniform in [0, 1), the same for the same question and text."""
    chosen = _seed(name, seed)
    return ScriptedORM(lambda solution: draw(chosen, solution.question, solution.text), name=f"random:{chosen}")


def random_prm(name: ModelName, *, seed: int = 0) -> ScriptedPRM:
    """``random:SEED``: uniform in [0, 1) for each step, the same for the same question, text and place."""
    chosen = _seed(name, seed)

    def scores(solution: Solution) -> list[float]:
        return [draw(chosen, solution.question, step.part, step.text, at) for at, step in enumerate(solution.steps)]

    return ScriptedPRM(scores, name=f"random:{chosen}")


def _not_scripted(name: str) -> Unscored:
    return Unscored(code="failed", reason=f"{name} holds no score for this")


def _table(name: ModelName) -> dict[str, Any]:
    if not name.name:
        raise RewardModelError("give the file that holds the scores: scripted:FILE", model=str(name))
    try:
        table = json.loads(Path(name.name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RewardModelError(f"{name.name} cannot be read as JSON ({error})", model=str(name)) from error
    if not isinstance(table, dict):
        raise RewardModelError(f"{name.name} holds no JSON object of solution texts and scores", model=str(name))
    return table


def _check(name: ModelName, text: str, value: object) -> None:
    if value is not None and (not isinstance(value, int | float) or not 0 <= value <= 1):
        raise RewardModelError(f"a score in [0, 1] or null is wanted for {text[:60]!r}, not {value!r}", model=str(name))


def _number(name: ModelName, default: float) -> float:
    try:
        value = float(name.name) if name.name else default
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise RewardModelError(f"a score in [0, 1] is wanted after the colon, not {name.name!r}", model=str(name))
    return value


def _seed(name: ModelName, default: int) -> int:
    try:
        return int(name.name) if name.name else default
    except ValueError:
        raise RewardModelError(f"a whole number is wanted as the seed, not {name.name!r}", model=str(name)) from None
