"""The check of a reward model: a sound one passes, and each kind of broken one fails where it should."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reward_models.check import check_reward_model
from reward_models.errors import StepCountError
from reward_models.registry import load_process_model
from reward_models.types import OutcomeScore, Solution, StepScore, StepScores


class Outcome:
    """An outcome model whose score is a function of the text."""

    name = "fake"

    def __init__(self, value) -> None:
        self.value = value

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [OutcomeScore(value=self.value(solution.text)) for solution in solutions]


def failed(report) -> list[str]:
    return [check.name for check in report.checks if check.passed is False]


def test_a_rule_that_checks_equations_orders_what_can_be_checked() -> None:
    report = check_reward_model(load_process_model("arithmetic"))
    assert report.sound and not failed(report)
    assert report.pairs[0].ordered and report.pairs[2].ordered
    assert {check.name: check.passed for check in report.checks}["token ids"] is None


def test_an_outcome_model_that_knows_the_answers() -> None:
    right = ("79", "is 5.", "24")
    report = check_reward_model(Outcome(lambda text: 0.9 if any(answer in text for answer in right) else 0.2))
    assert report.sound and report.orders
    report = check_reward_model(Outcome(lambda text: 0.2 if any(answer in text for answer in right) else 0.9))
    assert report.sound and not report.orders


def test_a_constant_is_no_score() -> None:
    report = check_reward_model(Outcome(lambda _text: 0.5))
    assert failed(report) == ["spread"] and not report.orders


def test_scores_that_depend_on_the_batch_are_found() -> None:
    calls = iter(range(1000))
    report = check_reward_model(Outcome(lambda _text: next(calls) / 1000 * 50 % 1))
    assert "order" in failed(report)


class Failing:
    name = "failing"

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        if self.error:
            raise self.error
        one = StepScore(value=0.5)
        return [StepScores(steps=s.steps[:1], scores=(one,)) for s in solutions]


def test_an_error_of_the_model_is_a_failed_check_and_a_wrong_count_too() -> None:
    report = check_reward_model(Failing(StepCountError("2 scores for 3 steps", model="failing")))
    assert failed(report) == ["scores"] and report.pairs == () and not report.orders
    assert "counts" in failed(check_reward_model(Failing(None)))
    with pytest.raises(ZeroDivisionError):
        check_reward_model(Failing(ZeroDivisionError()))
