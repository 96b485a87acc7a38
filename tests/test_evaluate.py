"""Accuracy, intervals, paired tests, coverage and cost against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import magicore
from difficulty import Verdict
from magicore.config import RunConfig
from magicore.errors import InputError
from magicore.evaluate import (
    Cost,
    CostPoint,
    Price,
    accuracy,
    accuracy_at,
    accuracy_of,
    chains_within,
    compare,
    compare_all,
    correctness,
    cost_of,
    coverage,
    frontier,
    holm,
    mcnemar_exact,
    money_of,
    paired_bootstrap,
    pass_at_k,
    summarise,
    wilson,
)
from magicore.store.files import SUMMARY_KEYS
from magicore.types import Chain, Failure, Result, RoleUsage, Round, ScoredChain, Usage


def result(name: str, *, gold: str | None = "1", correct: bool | None = True, **more: Any) -> Result:
    base = Result(id=name, kind="number", method="magicore", answer="1", gold=gold, correct=correct)
    return replace(base, **more)


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [
        # (p + z²/2n ± z sqrt(p q / n + z²/4n²)) / (1 + z²/n) with z = 1.959964
        (8, 10, 0.4901625, 0.9433178),
        (0, 10, 0.0, 0.2775328),  # z² / (n + z²)
        (10, 10, 0.7224672, 1.0),
        (50, 100, 0.4038315, 0.5961685),
    ],
)
def test_wilson(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct, n) == pytest.approx((low, high), abs=1e-7)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_share(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n))
    low, high = wilson(correct, n)
    assert 0 <= low <= correct / n <= high <= 1
    assert wilson(n - correct, n) == pytest.approx((1 - high, 1 - low))
    assert wilson(correct, n, confidence=0.5).high <= high


@pytest.mark.parametrize(("correct", "n", "confidence"), [(0, 0, 0.95), (3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_wilson_refuses(correct: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match=r"proportion|confidence"):
        wilson(correct, n, confidence=confidence)


RESULTS = [
    result("right"),
    result("wrong", correct=False),
    result("abstained", answer=None, correct=False),
    result("failed", answer=None, correct=False, stop="failed", error=Failure(type="BadReply", message="no")),
    result("undecided", correct=None),
    result("ungraded", gold=None, correct=None),
]


def test_accuracy_counts_abstentions_and_failures_as_not_right() -> None:
    found = accuracy(RESULTS)
    assert (found.n, found.graded, found.correct, found.value) == (6, 5, 1, 0.2)
    assert found.interval == wilson(1, 5)
    assert list(correctness(RESULTS)) == ["right", "wrong", "abstained", "failed", "undecided"]


def test_accuracy_of_nothing_graded_is_missing() -> None:
    found = accuracy([result("u", gold=None, correct=None)])
    assert (found.n, found.graded, found.value, found.interval) == (1, 0, None, None)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (0, 0, 1.0),
        (4, 4, 1.0),
        (5, 0, 2 / 2**5),
        (1, 7, 2 * (1 + 8) / 2**8),
        (2, 10, 2 * (1 + 12 + 66) / 2**12),
        (10, 2, 2 * (1 + 12 + 66) / 2**12),
    ],
)
def test_mcnemar(first: int, second: int, p: float) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p, rel=1e-12)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_tail(first: int, second: int) -> None:
    n = first + second
    tail = 2 * sum(Fraction(comb(n, i), 2**n) for i in range(min(first, second) + 1))
    assert mcnemar_exact(first, second) == pytest.approx(float(min(Fraction(1), tail)), rel=1e-9)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        mcnemar_exact(-1, 2)


def test_holm() -> None:
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, and never below the one before: the last is .06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(ValueError, match="p-values"):
        holm([1.5])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_lies_between_the_value_and_bonferroni(values: list[float]) -> None:
    for value, adjusted in zip(values, holm(values), strict=True):
        assert value <= adjusted <= min(1.0, len(values) * max(values))


def test_bootstrap_of_a_constant_difference_has_no_width() -> None:
    assert paired_bootstrap([True] * 5, [False] * 5) == (1.0, 1.0)
    assert paired_bootstrap([0.25, 0.5], [0.25, 0.5], resamples=10) == (0.0, 0.0)


def test_bootstrap_follows_its_seed_and_the_normal_interval() -> None:
    # 120 gained, 60 lost, 220 equal: mean .15; variance of a difference .45 - .0225 = .4275, of the mean .4275/400.
    first = [True] * 120 + [False] * 60 + [True] * 220
    second = [False] * 120 + [True] * 60 + [True] * 220
    found = paired_bootstrap(first, second, seed=3)
    half = 1.959964 * (0.4275 / 400) ** 0.5
    assert found == pytest.approx((0.15 - half, 0.15 + half), abs=0.006)
    assert found == paired_bootstrap(first, second, seed=3)
    assert paired_bootstrap(first, second, resamples=50, seed=4) != paired_bootstrap(
        first, second, resamples=50, seed=5
    )


def test_bootstrap_intervals_cover_the_truth() -> None:
    draw = np.random.default_rng(5)
    covered = 0
    for trial in range(200):
        first, second = draw.random(150) < 0.6, draw.random(150) < 0.5
        low, high = paired_bootstrap(first.tolist(), second.tolist(), resamples=400, seed=trial)
        covered += low <= 0.1 <= high
    assert 0.90 <= covered / 200 <= 0.99


@pytest.mark.parametrize(("first", "second", "resamples"), [([], [], 10), ([1.0], [1.0, 0.0], 10), ([1.0], [1.0], 0)])
def test_bootstrap_refuses(first: list[float], second: list[float], resamples: int) -> None:
    with pytest.raises(ValueError, match=r"values|resamples"):
        paired_bootstrap(first, second, resamples=resamples)


def answers(pattern: str) -> dict[str, bool]:
    return {str(index): sign == "+" for index, sign in enumerate(pattern)}


def test_compare_pairs_by_problem() -> None:
    method, baseline = answers("++++++++--"), answers("+------+-+") | {"extra": True}
    found = compare(dict(reversed(method.items())), baseline, resamples=500)
    assert (found.n, found.unpaired, found.only_method, found.only_baseline) == (10, 1, 6, 1)
    assert (found.accuracy, found.baseline, found.difference) == (0.8, 0.3, 0.5)
    assert found.p_value == pytest.approx(2 * (1 + 7) / 2**7)
    assert (found.shown, found.verdict) == (False, "no difference shown")
    assert found.interval.low < 0.5 < found.interval.high


def test_compare_all_corrects_by_holm() -> None:
    base = answers("-" * 12)
    table = compare_all(
        {"better": answers("+" * 7 + "-" * 5), "base": base, "near": answers("+" * 6 + "-" * 6)}, "base", resamples=50
    )
    assert list(table) == ["better", "near"]
    assert table["better"].p_value == pytest.approx(2 / 2**7)
    assert table["better"].p_adjusted == pytest.approx(4 / 2**7)
    assert table["near"].p_adjusted == pytest.approx(2 / 2**6)
    assert [found.verdict for found in table.values()] == ["better", "better"]
    assert compare_all({"base": answers("++++++"), "worse": answers("------")}, "base")["worse"].verdict == "worse"


def test_compare_refuses() -> None:
    with pytest.raises(InputError, match="no graded problem in common"):
        compare({"a": True}, {"b": True})
    with pytest.raises(InputError, match="'x' is none of"):
        compare_all({"a": {"p": True}}, "x")


@pytest.mark.parametrize(("n", "correct", "k"), [(5, 2, 1), (5, 2, 3), (5, 2, 4), (6, 0, 3), (6, 6, 1), (7, 3, 7)])
def test_pass_at_k_is_the_share_of_subsets(n: int, correct: int, k: int) -> None:
    subsets = list(combinations(range(n), k))
    hits = sum(any(member < correct for member in subset) for subset in subsets)
    assert pass_at_k(n, correct, k) == pytest.approx(hits / len(subsets))


def test_pass_at_k_is_exact_for_many_chains() -> None:
    assert pass_at_k(4000, 1, 1000) == pytest.approx(0.25, rel=1e-15)


@pytest.mark.parametrize(("n", "correct", "k"), [(5, 6, 1), (5, -1, 1), (5, 2, 0), (5, 2, 6)])
def test_pass_at_k_refuses(n: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"impossible|between"):
        pass_at_k(n, correct, k)


def test_coverage() -> None:
    assert coverage([(2, 1), (4, 0), (4, 4)], 2) == pytest.approx(2 / 3)
    assert coverage([], 1) is None


def spent(
    role: str, prompt: int, completion: int, *, calls: int = 1, unmetered: int = 0, model: str = "m"
) -> RoleUsage:
    usage = Usage(prompt=prompt, completion=completion, calls=calls, unmetered=unmetered)
    return RoleUsage(role=role, model=model, usage=usage)


COSTLY = [
    result("a", usage=(spent("solver", 100, 50), spent("orm", 30, 0), spent("judge", 7, 1))),
    result("b", usage=(spent("reviewer", 10, 5, calls=2, model="r"), spent("prm", 40, 0))),
]


def test_cost_by_group() -> None:
    assert cost_of(COSTLY) == Cost(generation_tokens=165, reward_tokens=70, judge_tokens=8, calls=6, unmetered=0)
    assert cost_of(COSTLY).tokens == 243


def test_unknown_tokens_are_not_zero() -> None:
    found = cost_of([result("a", usage=(spent("solver", 0, 0, unmetered=1),))])
    assert (found.generation_tokens, found.reward_tokens, found.tokens, found.unmetered) == (None, 0, None, 1)


def test_money() -> None:
    prices = {"m": Price(prompt=1.0, completion=10.0), "r": Price(prompt=2.0, completion=0.0)}
    assert money_of(COSTLY, prices) == pytest.approx((177 + 510 + 20) / 1e6)
    assert money_of(COSTLY, {"m": prices["m"]}) is None


def test_frontier() -> None:
    points = [
        CostPoint(method=name, cost=cost, accuracy=value)
        for name, cost, value in [
            ("d", 4, 0.9),
            ("b", 2, 0.4),
            ("a", 1, 0.5),
            ("c", 2, 0.7),
            ("e", 5, 0.9),
            ("f", 4, 0.9),
        ]
    ]
    assert [point.method for point in frontier(points)] == ["a", "c", "d", "f"]
    assert frontier([]) == []


def test_accuracy_at_a_cost() -> None:
    curve = [CostPoint(method="m", cost=cost, accuracy=value) for cost, value in [(4, 0.8), (1, 0.5), (2, 0.6)]]
    assert accuracy_at(curve, 3) == pytest.approx(0.7)
    assert accuracy_at(curve, 1) == pytest.approx(0.5)
    assert accuracy_at(curve, 0.5) is None
    assert accuracy_at(curve, 4.5) is None
    assert accuracy_at(curve[:1], 4) == 0.8


def test_chains_within_a_budget() -> None:
    assert chains_within([3, 3, 3], 6) == 2
    assert chains_within([3, 3], 100) == 2
    assert chains_within([3], 2) == 0
    assert chains_within([1, None], 5) is None


def test_summary() -> None:
    chains = tuple(
        ScoredChain(chain=Chain(id=str(i), problem="p", role="solver", round=0, index=i, text="", stop="stop"))
        for i in range(3)
    )
    easy, hard = Verdict(router="magicore", easy=True), Verdict(router="magicore", easy=False)
    results = [
        replace(RESULTS[0], verdict=easy, rounds=(Round(number=0, chains=chains, kept=()),), usage=COSTLY[0].usage),
        replace(RESULTS[1], verdict=hard),
        replace(RESULTS[2], verdict=hard),
        *RESULTS[3:],
    ]
    config = RunConfig(model="m", orm="o", method="magicore", seed=3)
    found = summarise(results, config=config, wall_s=1.5)
    low, high = wilson(1, 5)
    assert tuple(found) == SUMMARY_KEYS
    assert found == {
        "n": 6,
        "graded": 5,
        "correct": 1,
        "accuracy": 0.2,
        "accuracy_low": low,
        "accuracy_high": high,
        "easy": 1,
        "hard": 2,
        "abstained": 1,
        "failed": 1,
        "usage": {"generation_tokens": 150, "reward_tokens": 30, "judge_tokens": 8},
        "calls": 3,
        "wall_s": 1.5,
        "method": "magicore",
        "model": "m",
        "orm": "o",
        "prm": None,
        "k": 3,
        "seed": 3,
        "version": magicore.__version__,
    }


def test_summary_without_gold_or_routing() -> None:
    found = summarise([RESULTS[5]], config=RunConfig(options={"k": 8}), wall_s=None)
    assert (found["accuracy"], found["accuracy_low"], found["easy"], found["hard"], found["k"]) == (None,) * 4 + (8,)


def test_accuracy_of_plain_outcomes() -> None:
    assert accuracy_of([True, False], n=3).value == 0.5
