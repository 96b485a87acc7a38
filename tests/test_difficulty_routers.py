"""Routers, their registry, the published rule, and how routers are measured."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import difficulty
from difficulty import (
    Confusion,
    DifficultyError,
    Evidence,
    EvidenceError,
    FunctionRouter,
    MagicoreRouter,
    MissingEvidenceError,
    RewardStats,
    Router,
    RouterOptionError,
    UnknownRouterError,
    Verdict,
    batch_stats,
    compare_verdicts,
    confusion,
    first_chain_stats,
    published_scores,
    register_router,
    router,
    router_names,
)
from difficulty.registry import _FACTORIES

STATS = RewardStats(mu=1.0, sigma=0.4, n=100, population="fixed")
# Condition 1 fails (z = -1.25), condition 2 holds (one class).
SURE = Evidence(classes=[0, 0], o=[0.25, 0.25], s=[0.25, 0.25], stats=STATS)
# Condition 1 holds (z = 1), condition 2 fails (four equal classes).
GOOD = Evidence(classes=[0, 1, 2, 3], o=[0.7] * 4, s=[0.7] * 4, stats=STATS)
FULL: dict[str, Any] = {"draw": 0.5, "self_verified": True, "stated_confidence": 0.5, "coarse_correct": True}


@pytest.mark.parametrize(
    ("name", "sure", "good"),
    [
        ("magicore", True, True),
        ("condition-1", False, True),
        ("condition-2", True, False),
        ("easy", True, True),
        ("hard", False, False),
    ],
)
def test_routers_of_the_conditions(name: str, sure: bool, good: bool) -> None:
    for evidence, easy in ((SURE, sure), (GOOD, good)):
        verdict = router(name)(evidence)
        assert verdict.easy is easy
        assert verdict.router == name
        # Whatever the router, the numbers are there.
        paper = router("magicore")(evidence)
        assert replace(verdict, router="magicore", easy=paper.easy) == paper


@pytest.mark.parametrize(
    ("name", "options", "field", "easy", "hard"),
    [
        ("random", {"rate": 0.3}, "draw", 0.3, 0.2999),
        ("random", {"rate": 1.0}, "draw", None, 0.9999),
        ("random", {"rate": 0.0}, "draw", 0.0, None),
        ("self-verification", {}, "self_verified", True, False),
        ("stated-confidence", {}, "stated_confidence", 0.5, 0.49),
        ("stated-confidence", {"threshold": 0.9}, "stated_confidence", 0.9, 0.89),
        ("oracle", {}, "coarse_correct", True, False),
    ],
)
def test_routers_of_other_evidence(name: str, options: dict[str, float], field: str, easy: Any, hard: Any) -> None:
    made = router(name, **options)
    assert made.needs == {field}
    if easy is not None:
        assert made(replace(SURE, **{field: easy})).easy
    if hard is not None:
        assert made(replace(GOOD, **{field: hard})).hard


@pytest.mark.parametrize("name", router_names())
def test_every_router_keeps_the_contract(name: str) -> None:
    made: Any = router(name)
    assert isinstance(made, Router)
    assert made.name == name
    assert made.needs <= {"stats", *FULL}
    full = replace(SURE, **FULL)
    assert made(full) == made(full) == router(name)(full)
    for field in made.needs:
        with pytest.raises(MissingEvidenceError, match=f"router '{name}' needs the evidence field '{field}'"):
            made(replace(full, **{field: None}))
    bare = Evidence(classes=SURE.classes, o=SURE.o, s=SURE.s, **{field: getattr(full, field) for field in made.needs})
    assert made(bare).easy is made(full).easy
    with pytest.raises(FrozenInstanceError):
        made.name = "other"


@pytest.mark.parametrize("name", [name for name in router_names() if name not in {"easy", "random", "published"}])
def test_without_an_answer_a_problem_is_hard(name: str) -> None:
    assert router(name)(Evidence(classes=[None, None], o=[1.0, 1.0], s=[1.0, 1.0])).hard


def test_thresholds_are_parameters() -> None:
    assert router("magicore", z_threshold=1.1)(GOOD).hard
    assert router("magicore", z_threshold=1.1, confidence_threshold=0.4)(GOOD).easy
    assert router("condition-1", z_threshold=-2)(SURE).easy
    assert router("condition-2", confidence_threshold=0.4)(GOOD).easy
    assert MagicoreRouter(z_threshold=0.5) == router("magicore", z_threshold=0.5)


@settings(deadline=None)
@given(draw=st.floats(0, 1, exclude_max=True), low=st.floats(0, 1), high=st.floats(0, 1))
def test_a_larger_rate_keeps_the_hard_problems_hard(draw: float, low: float, high: float) -> None:
    low, high = sorted((low, high))
    evidence = replace(SURE, draw=draw)
    assert router("random", rate=high)(evidence).hard or router("random", rate=low)(evidence).easy


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("random", {"rate": 1.5}, "rate must be from 0 to 1, got 1.5"),
        ("random", {"rate": "half"}, "rate must be a finite number, got 'half'"),
        ("random", {"share": 0.5}, "it takes rate"),
        ("oracle", {"rate": 0.5}, "it takes no options"),
        ("magicore", {"z_threshold": float("inf")}, "z_threshold must be a finite number"),
        ("condition-2", {"confidence_threshold": -0.1}, "confidence_threshold must be from 0 to 1"),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RouterOptionError, match=message):
        router(name, **options)


def test_a_typo_is_answered_with_what_is_near() -> None:
    with pytest.raises(UnknownRouterError, match="no router is named 'magicor': did you mean magicore"):
        router("magicor")
    with pytest.raises(UnknownRouterError, match="there are condition-1, condition-2, easy"):
        router("zzz")


def test_any_function_is_a_router() -> None:
    made = FunctionRouter(function=lambda evidence: len(evidence.classes) > 2, name="long")
    assert made(GOOD).easy
    assert made(SURE).hard
    assert made(SURE).z == router("magicore")(SURE).z
    whole = FunctionRouter(function=lambda evidence: Verdict(router="x", easy=True, z=3.0), name="whole")
    assert whole(SURE) == Verdict(router="whole", easy=True, z=3.0)
    text: Any = "easy"
    with pytest.raises(DifficultyError, match=r"must return True \(easy\), False \(hard\) or a Verdict: got str"):
        FunctionRouter(function=lambda evidence: text, name="wrong")(SURE)
    with pytest.raises(RouterOptionError, match="needs weather, which evidence does not have"):
        FunctionRouter(function=lambda evidence: True, name="w", needs=frozenset({"weather"}))


def always_easy(evidence: Evidence) -> bool:
    """A user's function."""
    return True


READY_MADE = MagicoreRouter(z_threshold=5.0)
NOT_A_ROUTER = 5


def test_a_router_is_found_by_module_and_attribute() -> None:
    named = router(f"{__name__}:always_easy")
    assert (named.name, named(GOOD).easy) == (f"{__name__}:always_easy", True)
    assert router(f"{__name__}:READY_MADE") is READY_MADE
    assert router("difficulty:RandomRouter", rate=0.25) == router("random", rate=0.25)
    for name, message in (
        (f"{__name__}:absent", "has no 'absent'"),
        ("no_such_module_anywhere:x", "cannot import 'no_such_module_anywhere'"),
        (f"{__name__}:NOT_A_ROUTER", "is a int, which cannot be called"),
        (":x", "cannot import ''"),
        ("difficulty:Verdict", "Verdict"),
    ):
        with pytest.raises(DifficultyError, match=message):
            router(name)
    with pytest.raises(RouterOptionError, match="takes no options: got rate"):
        router(f"{__name__}:always_easy", rate=0.5)


def test_registering_a_router() -> None:
    @register_router("by-length")
    def by_length(*, longest: int = 3) -> Router:
        return FunctionRouter(function=lambda evidence: len(evidence.classes) <= longest, name="by-length")

    try:
        assert router("by-length", longest=2)(SURE).easy
        assert router("by-length")(GOOD).hard
        with pytest.raises(RouterOptionError, match="already a router named 'by-length'"):
            register_router("by-length")
    finally:
        del _FACTORIES["by-length"]
    with pytest.raises(RouterOptionError, match="without a colon"):
        register_router("a:b")


# The published rule, by hand: statistics 1.0 and 0.4, majority = the two chains without an answer (s counts as 0),
# z = ((.6 - 1) + (.8 - 1)) / 2 / .4 = -.75; outcome sums none 1.4, class 0 .3, class 1 .3.
PUBLISHED = Evidence(
    classes=[None, 0, None, 1], o=[0.6, 0.3, 0.8, 0.3], s=[0.9, 0.2, None, 0.2], stats=STATS, coarse_correct=None
)


def test_the_published_rule_counts_the_abstaining_chains() -> None:
    verdict = router("published")(PUBLISHED)
    assert verdict.z == pytest.approx(-0.75)
    # H_o of (.7, .15, .15) is .8188 nats, H_s of (0, .5, .5) is ln 2: 2 / (1 + e^H)
    assert verdict.confidence_orm == pytest.approx(0.6121, abs=1e-4)
    assert verdict.confidence_prm == pytest.approx(2 / 3)
    assert (verdict.condition_1, verdict.condition_2, verdict.easy, verdict.majority) == (False, True, True, None)
    ours = router("magicore")(PUBLISHED)
    assert (ours.majority, ours.z) == (0, pytest.approx(-1.25))


def test_the_published_rule_never_recomputes_the_majority() -> None:
    evidence = replace(GOOD, initial_majority=2, o=[0.7, 0.7, 0.1, 0.7], s=[0.7, 0.7, 0.1, 0.7])
    verdict = router("published")(evidence)
    assert (verdict.majority, verdict.z) == (2, pytest.approx(-2.0))
    assert verdict.hard
    gone = router("published")(replace(evidence, initial_majority=9))
    assert (gone.z, gone.condition_1, gone.easy) == (None, True, True)
    abstaining = router("published")(replace(PUBLISHED, initial_majority=-1))
    assert abstaining == router("published")(PUBLISHED)


def test_the_published_rule_takes_rewards_that_are_all_zero_for_confident() -> None:
    evidence = Evidence(classes=[0, 1, 0], o=[0.3, 0.2, 0.3], s=[0.0] * 3, stats=STATS)
    assert router("published")(evidence).easy
    assert router("magicore")(evidence).hard


def test_published_scores_and_statistics() -> None:
    o, s = published_scores(PUBLISHED.classes, PUBLISHED.o, PUBLISHED.s)
    assert (o, s) == ([0.6, 0.3, 0.8, 0.3], [0.0, 0.2, 0.0, 0.2])
    combined = [a + b for a, b in zip(o, s, strict=True)]
    assert first_chain_stats([combined, [1.0]]).mu == pytest.approx(0.8)
    assert batch_stats(PUBLISHED.combined).n == 3
    with pytest.raises(EvidenceError, match="chain 1 has no s"):
        published_scores([0, 0], [0.5, 0.5], [0.5, None])
    with pytest.raises(EvidenceError, match="chain 0 has no o"):
        published_scores([None], [None], [0.5])


def test_precision_and_recall_take_hard_as_positive() -> None:
    found = confusion([True, True, True, False, False, False], [True, True, False, True, False, False])
    assert found == Confusion(hard_as_hard=2, easy_as_hard=1, hard_as_easy=1, easy_as_easy=2)
    assert (found.precision, found.recall, found.f1, found.accuracy) == (2 / 3, 2 / 3, 2 / 3, 4 / 6)
    assert (found.hard_rate, found.n) == (0.5, 6)


def test_an_undefined_share_is_none_and_not_zero() -> None:
    none_routed = confusion([False, False], [True, False])
    assert (none_routed.precision, none_routed.recall, none_routed.f1) == (None, 0.0, 0.0)
    none_hard = confusion([True], [False])
    assert (none_hard.precision, none_hard.recall) == (0.0, None)
    empty = confusion([], [])
    assert (empty.precision, empty.recall, empty.f1, empty.accuracy, empty.hard_rate) == (None,) * 5
    with pytest.raises(EvidenceError, match="got 2 and 1"):
        confusion([True, False], [True])


def test_verdicts_against_the_oracle() -> None:
    problems = [replace(SURE, coarse_correct=False), replace(GOOD, coarse_correct=True)]
    verdicts = [router("condition-1")(evidence) for evidence in problems]
    oracle = [router("oracle")(evidence) for evidence in problems]
    assert compare_verdicts(verdicts, oracle) == confusion([True, False], [True, False])


def test_the_public_names_are_sorted_and_there() -> None:
    assert difficulty.__all__ == sorted(difficulty.__all__)
    assert all(hasattr(difficulty, name) for name in difficulty.__all__)


def test_importing_the_package_is_light() -> None:
    heavy = ("scipy", "torch", "magicore", "reward_models")
    code = f"import difficulty, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
