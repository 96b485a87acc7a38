"""From step scores to one number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.aggregate import AGGREGATIONS, aggregate, aggregate_steps
from reward_models.types import Step, StepScore, StepScores, Unscored, UnscoredCode

EXPECTED = {"product": 0.0315, "min": 0.07, "last": 0.5, "mean": 0.49, "geometric-mean": 0.0315 ** (1 / 3)}


@pytest.mark.parametrize(("how", "expected"), EXPECTED.items())
def test_by_hand(how: str, expected: float) -> None:
    assert aggregate([0.9, None, 0.07, 0.5, None], how) == pytest.approx(expected, abs=1e-12)


def test_every_aggregation_is_tested_by_hand() -> None:
    assert set(EXPECTED) == set(AGGREGATIONS)


@pytest.mark.parametrize("how", AGGREGATIONS)
def test_no_score_gives_none(how: str) -> None:
    assert aggregate([], how) is None
    assert aggregate([None, None], how) is None


def test_a_zero_is_a_score() -> None:
    assert aggregate([0.0, 1.0], "geometric-mean") == 0.0
    assert aggregate([0.0, 0.5], "product") == 0.0


def test_an_unknown_name_is_answered_with_suggestions() -> None:
    with pytest.raises(ValueError, match="did you mean 'product'"):
        aggregate([0.5], "prod")


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.sampled_from(sorted(AGGREGATIONS)))
def test_stays_within_the_scores_bounds(values: list[float], how: str) -> None:
    result = aggregate(values, how)
    assert result is not None
    low = 0.0 if how == "product" else min(values)
    assert low - 1e-9 <= result <= max(values) + 1e-9


def step_scores(*values: float | UnscoredCode, aggregation: str = "product") -> StepScores:
    scores = tuple(
        StepScore(value=None, unscored=Unscored(code=value, reason="because"))
        if isinstance(value, str)
        else StepScore(value=value)
        for value in values
    )
    steps = tuple(Step(text="x", start=at, end=at + 1) for at in range(len(values)))
    return StepScores(steps=steps, scores=scores, aggregation=aggregation)


def test_unscored_steps_are_skipped_and_counted() -> None:
    found = aggregate_steps(step_scores(0.5, "no_equation", 0.5, "no_equation", "empty_step"))
    assert (found.value, found.aggregation, found.scored) == (0.25, "product", 2)
    assert found.unscored == {"no_equation": 2, "empty_step": 1}


def test_the_models_recommendation_unless_told_otherwise() -> None:
    scores = step_scores(0.9, 0.4, aggregation="min")
    assert aggregate_steps(scores).value == 0.4
    assert aggregate_steps(scores, "mean").value == pytest.approx(0.65)


def test_steps_past_the_context_leave_the_solution_without_a_score() -> None:
    found = aggregate_steps(step_scores(0.9, 0.9, "past_context"))
    assert found.value is None
    assert (found.scored, dict(found.unscored)) == (2, {"past_context": 1})


def test_long_products_do_not_lose_the_geometric_mean() -> None:
    assert aggregate([1e-200] * 4, "geometric-mean") == pytest.approx(1e-200, rel=1e-9)
    assert math.isclose(aggregate([1.0] * 500) or 0, 1.0)
