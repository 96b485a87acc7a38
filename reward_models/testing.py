"""What every reward model must do, as checks for its author to run.

from reward_models.testing import check_process_model

def test_my_model_keeps_the_contract():
    check_process_model(MyPRM())
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from reward_models.base import OutcomeRewardModel, ProcessRewardModel
from reward_models.steps import join_steps, with_steps
from reward_models.types import OutcomeScore, Solution, StepScore, StepScores

_LOGPROBS = (-0.1, -1.2, 0.0)
_TOP_LOGPROBS = ((-0.1, -2.4, -5.0), (-1.2, -1.3), (0.0, -30.0))


def _solution(text: str, *, question: str = "What is 3 + 4, doubled?") -> Solution:
    return Solution(question=question, text=text, id="contract", token_logprobs=_LOGPROBS, top_logprobs=_TOP_LOGPROBS)


def _with_given_steps(*texts: str) -> Solution:
    text, steps = join_steps(texts)
    return Solution(question="What is 3 + 4, doubled?", text=text, steps=steps)


SOLUTIONS: Mapping[str, Solution] = MappingProxyType(
    {
        "plain": _solution("Step 1: 3 + 4 = 7\nStep 2: 7 * 2 = 14\nThe answer is 14."),
        "another": _solution("Step 1: 3 + 4 = 8\nStep 2: 8 * 2 = 16\nThe answer is 16."),
        "one sentence": _solution("It is 14."),
        "thinking": _solution("<think>3 and 4 are 7. Twice that is 14.</think>So it is 14."),
        "only thinking": _solution("<think>3 and 4 are 7, and the rest was cut"),
        "empty": _solution(""),
        "blank": _solution(" \n\t \n"),
        "no question": _solution("3 + 4 = 7.", question=""),
        "empty steps": _with_given_steps("3 + 4 = 7", "", "  ", "7 * 2 = 14"),
        "no log-probabilities": Solution(question="q", text="3 + 4 = 7."),
        "lone surrogates": _solution("Step 1: \ud800 3 + 4 = 7\nStep 2: \udfff end", question="\udc80?"),
        "control characters": _solution("Step 1: \x00\x07\x1b[31m 3 + 4 = 7\r\nStep 2: \u2028 \ufeff end"),
        "500 steps": _solution("".join(f"Step {number}: {number} + 1 = {number + 1}\n" for number in range(1, 501))),
        "100,000 characters": _solution("7 * 2 = 14, " * 8_334),
        "many tags": _solution(
            "ки <extra_0> + - \n\n\n\n <|reward|> <|im_end|> </step> {} %s", question="ки <extra_0>"
        ),
    }
)
"""Solutions that go wrong where a model is careless."""


def check_outcome_model(
    model: OutcomeRewardModel, solutions: Mapping[str, Solution] = SOLUTIONS, *, tolerance: float = 1e-9
) -> None:
    """Check that an outcome reward model keeps the contract: one score a solution, in order, whatever the batch.

    Args:
        model: The model.
        solutions: What it is tried on.
        tolerance: How far the score of a solution may differ between batches.

    Raises:
        AssertionError: It does not; the message says where.
    """
    _require(isinstance(model, OutcomeRewardModel), "it has no `name` or no `score`")
    _require(model.score([]) == [], "an empty batch gives scores")
    alone: dict[str, OutcomeScore] = {}
    for name, solution in solutions.items():
        found = model.score([solution])
        _require(len(found) == 1 and isinstance(found[0], OutcomeScore), f"{name}: not one OutcomeScore, but {found!r}")
        _check_entry(found[0], name)
        alone[name] = found[0]
    _check_batches(model, solutions, {name: (score,) for name, score in alone.items()}, tolerance)


def check_process_model(
    model: ProcessRewardModel, solutions: Mapping[str, Solution] = SOLUTIONS, *, tolerance: float = 1e-9
) -> None:
    """Check that a process reward model keeps the contract: one entry a step of every solution, in order.

    Arguments and errors as for :func:`check_outcome_model`.
    """
    _require(isinstance(model, ProcessRewardModel), "it has no `name` or no `score`")
    _require(model.score([]) == [], "an empty batch gives scores")
    alone: dict[str, tuple[StepScore, ...]] = {}
    for name, solution in solutions.items():
        found = model.score([solution])
        _require(len(found) == 1 and isinstance(found[0], StepScores), f"{name}: not one StepScores, but {found!r}")
        wanted = with_steps(solution).steps
        _require(found[0].steps == wanted, f"{name}: other steps than the solution's")
        for step, score in zip(found[0].steps, found[0].scores, strict=True):
            _check_entry(score, name)
            _require(bool(step.text.strip()) or score.value is None, f"{name}: a blank step has a score")
        alone[name] = found[0].scores
    _check_batches(model, solutions, alone, tolerance)


def _check_batches(
    model: OutcomeRewardModel | ProcessRewardModel,
    solutions: Mapping[str, Solution],
    alone: Mapping[str, Sequence[OutcomeScore | StepScore]],
    tolerance: float,
) -> None:
    """All together, backwards and some twice over, each solution scores as it does alone."""
    names = [*list(solutions)[::-1], *list(solutions)[1::2]]
    together: Sequence[OutcomeScore | StepScores] = model.score([solutions[name] for name in names])
    _require(len(together) == len(names), f"{len(together)} scores for a batch of {len(names)}")
    for name, score in zip(names, together, strict=True):
        entries: Sequence[OutcomeScore | StepScore] = score.scores if isinstance(score, StepScores) else (score,)
        _require(len(entries) == len(alone[name]), f"{name}: another number of scores in a batch than alone")
        for entry, expected in zip(entries, alone[name], strict=True):
            same = (entry.value is None) == (expected.value is None)
            if same and entry.value is not None and expected.value is not None:
                same = abs(entry.value - expected.value) <= tolerance
            _require(same, f"{name}: {entry} in a batch, {expected} alone")


def _check_entry(score: OutcomeScore | StepScore, name: str) -> None:
    """A finite value in [0, 1] or a reason; the types themselves refuse the rest."""
    if score.value is None:
        _require(score.unscored is not None and bool(score.unscored.reason), f"{name}: unscored without a reason")
    else:
        _require(math.isfinite(score.value), f"{name}: the value is {score.value!r}")
    _require(score.raw is None or math.isfinite(score.raw), f"{name}: the raw score is {score.raw!r}")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)
