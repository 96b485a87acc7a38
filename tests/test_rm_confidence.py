"""Likelihood, self-certainty and DeepConf against values worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_models.confidence import DeepConf, SelfCertainty, deepconf, self_certainty_of
from reward_models.errors import RewardModelError
from reward_models.likelihood import Likelihood
from reward_models.names import parse_model_name
from reward_models.types import OutcomeScore, Solution

LN2 = math.log(2)


def solution(
    token_logprobs: tuple[float, ...] | None = None, top_logprobs: tuple[tuple[float, ...], ...] | None = None
) -> Solution:
    return Solution(question="q", text="t", token_logprobs=token_logprobs, top_logprobs=top_logprobs)


def test_likelihood_is_the_geometric_mean_of_token_probabilities() -> None:
    [score] = Likelihood().score([solution((math.log(0.5), math.log(0.125), 0.0))])
    assert score.raw == pytest.approx(-4 * LN2 / 3)
    assert score.value == pytest.approx(0.0625 ** (1 / 3))
    assert score.activation == "exp"
    assert Likelihood.requires == {"token_logprobs"}


@pytest.mark.parametrize("logprobs", [None, (), (-1.0, -math.inf), (float("nan"),), (0.5,)])
def test_likelihood_is_missing_where_log_probabilities_are(logprobs: tuple[float, ...] | None) -> None:
    [score] = Likelihood().score([solution(logprobs)])
    assert score.value is None and score.unscored is not None and score.unscored.code == "no_logprobs"


def test_rounding_above_zero_is_no_error() -> None:
    assert Likelihood().score([solution((1e-6,))])[0].value == 1.0


# Self-certainty


def test_a_uniform_token_has_no_certainty() -> None:
    assert self_certainty_of([math.log(0.25)] * 4) == pytest.approx(0.0, abs=1e-12)
    assert self_certainty_of([math.log(0.25)] * 2, vocabulary=4) == pytest.approx(0.0, abs=1e-12)


def test_self_certainty_by_hand() -> None:
    """p = (3/4, 1/4): -(ln(3/4) + ln(1/4))/2 - ln 2 = ln(4/sqrt 3) - ln 2 = ln(2/sqrt 3)."""
    assert self_certainty_of([math.log(0.75), math.log(0.25)]) == pytest.approx(math.log(2 / math.sqrt(3)))
    assert self_certainty_of([math.log(0.3), math.log(0.1)]) == pytest.approx(math.log(2 / math.sqrt(3)))


def test_the_rest_of_the_vocabulary_shares_what_is_left() -> None:
    """p = (1/2, 1/4) known of 4 tokens, 1/8 each left: -(1 + 2 + 3 + 3)/4 (-ln 2) - 2 ln 2 = ln 2 / 4."""
    assert self_certainty_of([math.log(0.5), math.log(0.25)], vocabulary=4) == pytest.approx(LN2 / 4)


@settings(deadline=None)
@given(st.lists(st.floats(0.001, 1), min_size=4, max_size=8), st.integers(1, 3))
def test_the_top_tokens_bound_the_whole_vocabulary_from_below(weights: list[float], known: int) -> None:
    probabilities = sorted((weight / math.fsum(weights) for weight in weights), reverse=True)
    size = len(probabilities)
    exact = -math.fsum(map(math.log, probabilities)) / size - math.log(size)
    top = [math.log(value) for value in probabilities[:known]]
    assert self_certainty_of(top, vocabulary=size) <= exact + 1e-9


def test_self_certainty_of_a_solution() -> None:
    rows = ((math.log(0.75), math.log(0.25)), (), (math.log(0.5), math.log(0.5)))
    [score] = SelfCertainty(scale=2.0).score([solution(top_logprobs=rows)])
    raw = math.log(2 / math.sqrt(3)) / 2
    assert score.raw == pytest.approx(raw)
    assert score.value == pytest.approx(raw / (raw + 2))
    assert score.activation == "saturating"


def test_a_token_that_takes_all_probability_stays_finite() -> None:
    [score] = SelfCertainty(vocabulary=32_000).score([solution(top_logprobs=((0.0, -40.0),))])
    assert score.value is not None and 0.7 < score.value < 1


# DeepConf


def traces(*confidences: float) -> Solution:
    return solution(top_logprobs=tuple((-value - 1, -value + 1) for value in confidences))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("mean", 3.0), ("tail", 2.0), ("lowest", 2.0), ("bottom", 2.25)],
)
def test_deepconf_by_hand(measure: str, expected: float) -> None:
    """Token confidences 5 4 1 4 3 1, window 2: window means 4.5 2.5 2.5 3.5 2.0; the lowest two fifths 2.0 2.5."""
    [score] = DeepConf(measure, window=2, bottom=0.4, scale=3.0).score([traces(5, 4, 1, 4, 3, 1)])
    assert score.raw == pytest.approx(expected)
    assert score.value == pytest.approx(expected / (expected + 3))


def test_a_short_trace_is_one_window() -> None:
    for measure in ("mean", "tail", "lowest", "bottom"):
        assert DeepConf(measure).score([traces(2, 4)])[0].raw == pytest.approx(3.0)


def test_the_measure_follows_the_colon() -> None:
    assert deepconf(parse_model_name("deepconf")).name == "deepconf"
    assert deepconf(parse_model_name("deepconf:tail"), window=5).name == "deepconf:tail"
    with pytest.raises(RewardModelError, match="there is no measure 'tial'; there are mean, tail, bottom, lowest"):
        deepconf(parse_model_name("deepconf:tial"))
    with pytest.raises(RewardModelError, match="window must be above 0"):
        DeepConf(window=0)


@pytest.mark.parametrize("model", [SelfCertainty(), DeepConf()], ids=lambda model: model.name)
@pytest.mark.parametrize("rows", [None, (), ((), ()), ((-math.inf, 0.0),), ((2.0,),)])
def test_confidence_is_missing_where_log_probabilities_are(
    model: SelfCertainty | DeepConf, rows: tuple[tuple[float, ...], ...] | None
) -> None:
    [score] = model.score([solution(top_logprobs=rows)])
    assert score.value is None and score.unscored is not None and score.unscored.code == "no_logprobs"
    assert model.requires == {"top_logprobs"}


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-60, 0), min_size=1, max_size=5), min_size=1, max_size=30))
def test_confidences_stay_on_their_scale(rows: list[list[float]]) -> None:
    given_rows = solution(top_logprobs=tuple(map(tuple, rows)))
    found: list[OutcomeScore] = [
        model.score([given_rows])[0]
        for model in (SelfCertainty(), SelfCertainty(vocabulary=1000), DeepConf("mean"), DeepConf(window=3))
    ]
    assert all(score.value is not None and 0 <= score.value < 1 for score in found)
