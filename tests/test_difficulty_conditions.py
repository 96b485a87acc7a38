"""The two conditions and the paper's router, by hand-computed values and by properties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from difficulty import (
    Evidence,
    EvidenceError,
    RewardStats,
    condition_1,
    condition_2,
    condition_arrays,
    confidence,
    entropy,
    majority_class,
    router,
)
from difficulty.evidence import class_row, score_row

STATS = RewardStats(mu=1.0, sigma=0.4, n=100, population="fixed")
LOW = [0.30, 0.28, 0.26, 0.22, 0.25]
LOW_S = [0.20, 0.30, 0.28, 0.18, 0.25]  # products of [.5 .4] [.6 .5] [.4 .7] [.3 .6] [.5 .5]

# answers as class indices, o, s, mean z of the majority, both confidences, condition 1, condition 2
WORKED: dict[str, tuple[Any, ...]] = {
    "easy by both": (
        [0, 0, 1, 0, None],
        [0.91, 0.85, 0.30, 0.88, 0.10],
        [0.9 * 0.9, 0.8 * 0.95, 0.7 * 0.2, 0.99 * 0.9 * 0.9, 0.5],
        (1.6766, 0.8367, 0.8929, True, True),
    ),
    "hard": ([0, 1, 2, 3, 0], LOW, LOW_S, (-1.25, 0.4234, 0.4164, False, False)),
    "easy by 2": ([0, 1, 0, 1, 0], LOW, LOW_S, (-1.2167, 0.6793, 0.6763, False, True)),
    "easy by 1": (
        [0, 1, 2, 3, 0],
        [0.9, 0.88, 0.86, 0.82, 0.85],
        [0.64, 0.63, 0.56, 0.63, 0.72],
        (1.3875, 0.4191, 0.4248, True, False),
    ),
    "one confidence is not enough": (
        [0, 1, 2, 3, 0],
        LOW,
        [0.45, 0.02, 0.03, 0.02, 0.40],
        (-0.75, 0.4234, 0.8262, False, False),
    ),
    "no process reward at all": ([0, 1, 0], [0.3, 0.2, 0.3], [0.0] * 3, (-1.75, 0.7260, None, False, False)),
    "exactly at the bound": ([0, 1, 2], [0.2] * 3, [0.2] * 3, (-1.5, 0.5, 0.5, False, True)),
}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


@pytest.mark.parametrize("row", WORKED)
def test_worked_values(row: str) -> None:
    classes, o, s, (z, orm, prm, first, second) = WORKED[row]
    verdict = router("magicore")(Evidence(classes=classes, o=o, s=s, stats=STATS))
    assert (rounded(verdict.z), rounded(verdict.confidence_orm), rounded(verdict.confidence_prm)) == (z, orm, prm)
    assert (verdict.condition_1, verdict.condition_2) == (first, second)
    assert verdict.easy is (first or second)
    assert verdict.hard is not verdict.easy
    assert verdict.majority == 0


def test_combined_scores_of_the_first_worked_row() -> None:
    classes, o, s, _ = WORKED["easy by both"]
    combined = Evidence(classes=classes, o=o, s=s).combined
    assert [rounded(value) for value in combined] == [1.72, 1.61, 0.44, 1.6819, 0.6]


def test_entropy_and_confidence_by_hand() -> None:
    assert entropy([1.0]) == 0.0
    assert entropy([1.0, 1.0, 1.0]) == pytest.approx(math.log(3), abs=1e-12)
    assert entropy([3.0, 1.0]) == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)), abs=1e-12)
    assert entropy([2.0, 0.0]) == 0.0
    assert entropy([0.0, 0.0]) is None
    assert entropy([]) is None
    assert confidence(0.0) == 1.0
    assert confidence(math.log(3)) == pytest.approx(0.5, abs=1e-12)
    assert confidence(None) is None


@pytest.mark.parametrize(
    ("classes", "o", "s", "expected"),
    [
        ([0, 1, 0, 1], [0.1, 0.9, 0.1, 0.9], [0.1] * 4, 1),  # larger total S
        ([0, 0, 1, 1], [0.4, 0.4, 0.1, 0.7], [0.0] * 4, 1),  # equal total, larger best S
        ([4, 2, 2, 4], [0.5] * 4, [0.5] * 4, 4),  # all equal: first seen, whatever its number
        ([0, 1, 2], [0.1, 0.2, 0.3], [None, None, None], 0),  # no S anywhere: first seen
        ([0, 1], [None, 0.0], [0.5, 0.0], 1),  # a class with an S of 0 goes before one without any S
        ([None, None], [0.5, 0.5], [0.5, 0.5], None),
        ([], [], [], None),
    ],
)
def test_majority_ties(
    classes: list[int | None], o: list[float | None], s: list[float | None], expected: int | None
) -> None:
    assert majority_class(Evidence(classes=classes, o=o, s=s)) == expected


def test_a_sum_in_another_order_is_still_a_tie() -> None:
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; so do the totals of the two classes.
    evidence = Evidence(classes=[0, 1, 0, 1, 0, 1], o=[0.3, 0.1, 0.2, 0.2, 0.1, 0.3], s=[0.0] * 6)
    assert sum([0.3, 0.2, 0.1]) != sum([0.1, 0.2, 0.3])
    assert majority_class(evidence) == 0


def test_a_chain_without_s_counts_in_the_majority_and_nowhere_else() -> None:
    evidence = Evidence(classes=[0, 0, 1], o=[0.9, 0.1, 0.8], s=[0.9, None, 0.8], stats=STATS)
    verdict = router("magicore")(evidence)
    assert verdict.majority == 0
    assert verdict.z == pytest.approx((1.8 - 1.0) / 0.4)
    assert verdict.confidence_orm == confidence(entropy([0.9, 0.8]))
    assert verdict.confidence_prm == confidence(entropy([0.9, 0.8]))


def test_a_majority_without_any_s_leaves_condition_1_unjudged() -> None:
    verdict = router("magicore")(
        Evidence(classes=[0, 0, 1, 2, 3, 4], o=[None, None] + [0.2] * 4, s=[0.5] * 6, stats=STATS)
    )
    assert (verdict.majority, verdict.condition_1, verdict.z, verdict.condition_2) == (0, None, None, False)
    assert verdict.hard


def test_no_class_is_hard_and_no_score_is_left_to_self_consistency() -> None:
    unanswered = router("magicore")(Evidence(classes=[None, None], o=[0.9, 0.9], s=[0.9, 0.9], stats=STATS))
    assert unanswered.hard
    assert (unanswered.condition_1, unanswered.condition_2, unanswered.majority) == (None, None, None)
    unscored = router("magicore")(Evidence(classes=[0, 1, 0], o=[0.9] * 3, s=[None] * 3))
    assert unscored.easy
    assert (unscored.condition_1, unscored.condition_2, unscored.majority) == (None, None, 0)


def test_constant_scores_make_condition_1_hold() -> None:
    constant = replace(STATS, sigma=1e-10)
    evidence = Evidence(classes=[0, 1, 2, 3, 0], o=LOW, s=LOW_S, stats=constant)
    found = condition_1(evidence, constant, threshold=5.0)
    assert (found.holds, found.z) == (True, None)
    assert router("magicore")(evidence).easy
    assert condition_1(Evidence(classes=[0, 0], o=[None, None], s=[0.5, 0.5]), constant).holds is None


def test_comparisons_allow_one_in_a_thousand_million() -> None:
    evidence = Evidence(classes=[0], o=[0.5], s=[0.5], stats=STATS)
    assert condition_1(evidence, replace(STATS, mu=1.0 + 0.4e-10)).holds
    assert not condition_1(evidence, replace(STATS, mu=1.0 + 0.4e-8)).holds


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"o": [0.5]}, "one class, one o and one s a chain: got 2, 1 and 2"),
        ({"classes": [0, -1]}, "class of chain 1 is -1: pass None"),
        ({"o": [0.5, 1.5]}, r"o of chain 1 is 1.5, outside \[0, 1\]"),
        ({"s": [float("nan"), 0.5]}, "s of chain 0 is nan"),
        ({"draw": 1.0}, "draw is 1.0"),
        ({"stated_confidence": -0.1}, "stated_confidence is -0.1"),
    ],
)
def test_impossible_evidence_is_refused(broken: dict[str, object], message: str) -> None:
    fields: dict[str, Any] = {"classes": [0, 1], "o": [0.5, 0.5], "s": [0.5, 0.5], **broken}
    with pytest.raises(EvidenceError, match=message):
        Evidence(**fields)


scores = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.floats(0, 1, width=16))
chains = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 4)), scores, scores), min_size=1, max_size=12)
statistics = st.builds(
    RewardStats,
    mu=st.floats(0, 2),
    sigma=st.one_of(st.just(0.0), st.floats(0.01, 1)),
    n=st.just(9),
    population=st.just("fixed"),
)


def evidence_of(rows: list[tuple[int | None, float | None, float | None]], stats: RewardStats | None) -> Evidence:
    classes, o, s = zip(*rows, strict=True)
    return Evidence(classes=classes, o=o, s=s, stats=stats)


@settings(deadline=None)
@given(rows=chains, stats=statistics, data=st.data())
def test_the_order_of_chains_changes_nothing_but_first_seen_ties(
    rows: list[tuple[int | None, float | None, float | None]], stats: RewardStats, data: st.DataObject
) -> None:
    shuffled = evidence_of(data.draw(st.permutations(rows)), stats)
    straight = evidence_of(rows, stats)
    before, after = condition_2(straight), condition_2(shuffled)
    assert before == after
    if majority_class(straight) == majority_class(shuffled):
        a, b = router("magicore")(straight), router("magicore")(shuffled)
        assert (a.easy, a.condition_1, a.condition_2) == (b.easy, b.condition_1, b.condition_2)
        assert a.z == (None if b.z is None else pytest.approx(b.z, abs=1e-9))
    else:
        votes = {c: [row for row in rows if row[0] == c] for c in (majority_class(straight), majority_class(shuffled))}
        sizes = {len(members) for members in votes.values()}
        totals = [
            math.fsum(o + s for _, o, s in members if o is not None and s is not None) for members in votes.values()
        ]
        assert len(sizes) == 1
        assert totals[0] == pytest.approx(totals[1], abs=1e-8)


@settings(deadline=None)
@given(rows=chains, stats=statistics, o=scores, s=scores)
def test_an_abstaining_chain_never_matters(
    rows: list[tuple[int | None, float | None, float | None]],
    stats: RewardStats,
    o: float | None,
    s: float | None,
) -> None:
    without = router("magicore")(evidence_of(rows, stats))
    assert router("magicore")(evidence_of([*rows, (None, o, s)], stats)) == without
    assert router("magicore")(evidence_of([(None, o, s), *rows], stats)) == without


@settings(deadline=None)
@given(rows=chains, factor=st.sampled_from([0.5, 0.25, 0.125]))
def test_scaling_all_rewards_leaves_confidences_and_with_the_statistics_also_z(
    rows: list[tuple[int | None, float | None, float | None]], factor: float
) -> None:
    scaled = [(c, None if o is None else o * factor, None if s is None else s * factor) for c, o, s in rows]
    before = router("magicore")(evidence_of(rows, STATS))
    after = router("magicore")(evidence_of(scaled, replace(STATS, mu=STATS.mu * factor, sigma=STATS.sigma * factor)))
    assert before.confidence_orm == pytest.approx(after.confidence_orm, abs=1e-9)
    assert before.confidence_prm == pytest.approx(after.confidence_prm, abs=1e-9)
    if before.majority == after.majority:
        assert before.z == pytest.approx(after.z, abs=1e-9)


@settings(deadline=None)
@given(rows=chains, stats=statistics, renaming=st.permutations(range(5)))
def test_class_numbers_carry_no_meaning(
    rows: list[tuple[int | None, float | None, float | None]], stats: RewardStats, renaming: list[int]
) -> None:
    renamed = [(None if c is None else renaming[c], o, s) for c, o, s in rows]
    before, after = router("magicore")(evidence_of(rows, stats)), router("magicore")(evidence_of(renamed, stats))
    assert after == replace(before, majority=None if before.majority is None else renaming[before.majority])


@settings(deadline=None)
@given(
    problems=st.lists(chains, min_size=1, max_size=6),
    stats=statistics,
    z_threshold=st.floats(-3, 3),
    confidence_threshold=st.floats(0, 1),
    data=st.data(),
)
def test_arrays_say_what_the_scalar_functions_say(
    problems: list[list[tuple[int | None, float | None, float | None]]],
    stats: RewardStats,
    z_threshold: float,
    confidence_threshold: float,
    data: st.DataObject,
) -> None:
    width = max(len(rows) for rows in problems)
    # The chains that are not to be looked at hold other numbers, which must not be read.
    padded = [[*rows, *[(7, 1.0, 1.0)] * (width - len(rows))] for rows in problems]
    include = np.array([[column < len(rows) for column in range(width)] for rows in problems])
    classes = np.concatenate([class_row([c for c, _, _ in rows]) for rows in padded])
    o = np.concatenate([score_row([o for _, o, _ in rows]) for rows in padded])
    s = np.concatenate([score_row([s for _, _, s in rows]) for rows in padded])
    arrays = condition_arrays(classes, o, s, stats, include=include)
    easy = arrays.easy([0.0, z_threshold], [0.5, confidence_threshold])
    paper = router("magicore")
    other = router("magicore", z_threshold=z_threshold, confidence_threshold=confidence_threshold)
    for index, rows in enumerate(problems):
        evidence = evidence_of(rows, stats)
        verdict = paper(evidence)
        assert arrays.majority[index] == (-1 if verdict.majority is None else verdict.majority)
        for value, array in (
            (verdict.z, arrays.z),
            (verdict.confidence_orm, arrays.confidence_orm),
            (verdict.confidence_prm, arrays.confidence_prm),
        ):
            assert array[index] == pytest.approx(np.nan if value is None else value, abs=1e-9, nan_ok=True)
        assert bool(arrays.condition_1()[index]) is bool(verdict.condition_1)
        assert bool(arrays.condition_2()[index]) is bool(verdict.condition_2)
        assert bool(easy[0, index]) is verdict.easy
        assert bool(easy[1, index]) is other(evidence).easy


def test_arrays_of_no_chain_and_of_no_problem() -> None:
    nothing = condition_arrays(np.zeros((2, 0), np.int64), np.zeros((2, 0)), np.zeros((2, 0)), STATS)
    assert nothing.easy().tolist() == [False, False]
    assert nothing.majority.tolist() == [-1, -1]
    none = condition_arrays(np.zeros((0, 3), np.int64), np.zeros((0, 3)), np.zeros((0, 3)), STATS)
    assert none.easy([0.0, 1.0], [0.5, 0.5]).shape == (2, 0)


def test_arrays_must_have_one_shape() -> None:
    with pytest.raises(EvidenceError, match=r"got \(1, 2\), \(1, 3\) and \(1, 2\)"):
        condition_arrays(np.zeros((1, 2), np.int64), np.zeros((1, 3)), np.zeros((1, 2)), STATS)
