"""Does a reward model work here: are its tags found, is there one score a step, does it tell right from wrong?

``magicore check-reward-model NAME`` loads the model and prints the report made here. A model that fails only the last
check may still be loaded correctly and be weak; one that fails an earlier check gives numbers that mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reward_models.aggregate import aggregate
from reward_models.base import OutcomeRewardModel, ProcessRewardModel, RewardModel
from reward_models.errors import RewardModelError
from reward_models.steps import join_steps
from reward_models.types import OutcomeScore, Solution, StepScores

_TOLERANCE = 0.02  # two runs of one text may differ by rounding in half precision, not by more


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at; ``passed`` is ``None`` where it does not apply to this model."""

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A right and a wrong solution of one question, and the score of each (missing where unscored)."""

    question: str
    right: float | None
    wrong: float | None

    @property
    def ordered(self) -> bool:
        """Whether the right one scores higher."""
        return self.right is not None and self.wrong is not None and self.right > self.wrong


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What was found.

    ``sound`` says that scores can be read at all, ``orders`` that every right solution scored above the wrong one.
    """

    model: str
    checks: tuple[Check, ...]
    pairs: tuple[Pair, ...]

    @property
    def sound(self) -> bool:
        """Whether no check failed."""
        return all(check.passed is not False for check in self.checks)

    @property
    def orders(self) -> bool:
        """Whether the model prefers the right solution in every pair."""
        return bool(self.pairs) and all(pair.ordered for pair in self.pairs)


@dataclass(frozen=True, kw_only=True)
class _Problem:
    question: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


_PROBLEMS = (
    _Problem(
        question="A box holds 12 eggs. How many eggs are in 7 boxes if 5 of all the eggs are broken and removed?",
        right=(
            "Step 1: 7 boxes hold 7 * 12 = 84 eggs.",
            "Step 2: After removing the broken ones there are 84 - 5 = 79 eggs.",
            "Step 3: The answer is 79.",
        ),
        wrong=(
            "Step 1: 7 boxes hold 7 + 12 = 19 eggs.",
            "Step 2: After adding the broken ones there are 19 + 5 = 27 eggs.",
            "Step 3: The answer is 27.",
        ),
    ),
    _Problem(
        question="Solve for x: 3x + 4 = 19.",
        right=(
            "Step 1: Subtract 4 from both sides: 3x = 15.",
            "Step 2: Divide both sides by 3: x = 5.",
            "Step 3: The answer is 5.",
        ),
        wrong=(
            "Step 1: Add 4 to both sides: 3x = 15.",
            "Step 2: Multiply both sides by 3: x = 60.",
            "Step 3: The answer is 60.",
        ),
    ),
    _Problem(
        question="What is the area of a right triangle whose legs are 6 and 8 long?",
        right=(
            "Step 1: The area of a right triangle is half the product of its legs.",
            "Step 2: That is 6 * 8 / 2 = 24.",
            "Step 3: The answer is 24.",
        ),
        wrong=(
            "Step 1: The area of a right triangle is the sum of its legs.",
            "Step 2: That is 6 + 8 = 15.",
            "Step 3: The answer is 15.",
        ),
    ),
)


def check_reward_model(model: RewardModel) -> CheckReport:
    """Try a loaded model on a few solutions whose worth is known.

    Raises nothing of the model's own: an error is a check that failed, with the error as its detail.
    """
    right = [_solution(problem.question, problem.right) for problem in _PROBLEMS]
    wrong = [_solution(problem.question, problem.wrong) for problem in _PROBLEMS]
    try:
        scores = model.score([*right, *wrong])
    except RewardModelError as error:
        return CheckReport(
            model=model.name, checks=(*_tokens(model), Check(name="scores", passed=False, detail=str(error))), pairs=()
        )
    values = [_value(score) for score in scores]
    count = len(_PROBLEMS)
    pairs = tuple(
        Pair(question=problem.question, right=values[index], wrong=values[count + index])
        for index, problem in enumerate(_PROBLEMS)
        if len(values) == 2 * count
    )
    checks = [
        *_tokens(model),
        _counts(scores, [*right, *wrong]),
        _scored(scores),
        _differ(values),
        _attempt("order", lambda: _order(model, [*right, *wrong], values)),
        _attempt("empty step", lambda: _empty_step(model)),
    ]
    return CheckReport(model=model.name, checks=tuple(checks), pairs=pairs)


def _solution(question: str, texts: Sequence[str]) -> Solution:
    text, steps = join_steps(texts)
    return Solution(question=question, text=text, steps=steps)


def _value(score: OutcomeScore | StepScores) -> float | None:
    if isinstance(score, OutcomeScore):
        return score.value
    return aggregate([step.value for step in score.scores], score.aggregation)


def _attempt(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except RewardModelError as error:
        return Check(name=name, passed=False, detail=str(error))


def _tokens(model: RewardModel) -> list[Check]:
    """The token ids of a family's tags, where the model has a family and a tokenizer."""
    family, tokenizer = getattr(model, "family", None), getattr(model, "tokenizer", None)
    if family is None or tokenizer is None:
        return [Check(name="token ids", passed=None, detail="this model reads no tags")]
    try:
        family.check_tokenizer(tokenizer)
    except RewardModelError as error:
        return [Check(name="token ids", passed=False, detail=str(error))]
    found = ", ".join(f"{text!r} is {token}" for text, token in family.tokens.items())
    return [Check(name="token ids", passed=True, detail=found or "this family reads no particular token")]


def _counts(scores: Sequence[OutcomeScore | StepScores], solutions: Sequence[Solution]) -> Check:
    if len(scores) != len(solutions):
        detail = f"{len(scores)} outcomes for {len(solutions)} solutions"
        return Check(name="counts", passed=False, detail=detail)
    wrong = [
        f"{len(score.scores)} scores for {len(solution.steps)} steps"
        for score, solution in zip(scores, solutions, strict=True)
        if isinstance(score, StepScores) and len(score.scores) != len(solution.steps)
    ]
    steps = sum(len(solution.steps) for solution in solutions)
    fine = f"{len(solutions)} solutions, {steps} steps, one outcome each"
    return Check(name="counts", passed=not wrong, detail=wrong[0] if wrong else fine)


def _scored(scores: Sequence[OutcomeScore | StepScores]) -> Check:
    entries = [entry for score in scores for entry in (score.scores if isinstance(score, StepScores) else (score,))]
    reasons = [entry.unscored.reason for entry in entries if entry.unscored]
    detail = (
        f"{len(reasons)} of {len(entries)} unscored: {reasons[0]}" if reasons else f"{len(entries)} numbers in [0, 1]"
    )
    return Check(name="scores", passed=len(reasons) < len(entries), detail=detail)


def _differ(values: Sequence[float | None]) -> Check:
    known = [value for value in values if value is not None]
    spread = max(known) - min(known) if known else 0.0
    constant = "all scores are the same: the head may not be the model's own" if known else "there are no scores"
    return Check(name="spread", passed=spread > 0, detail=f"scores spread over {spread:.3g}" if spread else constant)


def _order(model: RewardModel, solutions: Sequence[Solution], values: Sequence[float | None]) -> Check:
    """Each solution alone must score as it did among the others."""
    alone = [_value(model.score([solution])[0]) for solution in reversed(solutions)][::-1]
    worst = max(
        (abs(a - b) for a, b in zip(alone, values, strict=True) if a is not None and b is not None), default=0.0
    )
    same = worst <= _TOLERANCE and [a is None for a in alone] == [b is None for b in values]
    return Check(name="order", passed=same, detail=f"alone or in a batch, scores agree within {worst:.2g}")


def _empty_step(model: OutcomeRewardModel | ProcessRewardModel) -> Check:
    problem = _PROBLEMS[0]
    score = model.score([_solution(problem.question, (problem.right[0], "", *problem.right[1:]))])[0]
    if not isinstance(score, StepScores):
        return Check(name="empty step", passed=None, detail="this model scores whole solutions")
    if len(score.scores) != len(problem.right) + 1:
        return Check(
            name="empty step", passed=False, detail=f"{len(score.scores)} scores for {len(problem.right) + 1} steps"
        )
    entry = score.scores[1]
    found = entry.unscored.code if entry.unscored else f"a score of {entry.value}"
    return Check(name="empty step", passed=True, detail=f"an empty step gets {found}")
