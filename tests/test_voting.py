"""Every aggregation, by hand, against a plain re-computation, and by properties."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magicore.vote_table import VoteTable, table_of_chains
from magicore.voting import AGGREGATIONS, vote, vote_all, vote_table

LOW = [0.30, 0.28, 0.26, 0.22, 0.25]
LOW_S = [0.20, 0.30, 0.28, 0.18, 0.25]


@pytest.mark.parametrize(
    ("classes", "o", "s", "expected", "chosen"),
    [
        (
            [0, 0, 1, 0, None],
            [0.91, 0.85, 0.30, 0.88, 0.10],
            [0.81, 0.76, 0.14, 0.8019, 0.5],
            {0: 5.0119, 1: 0.44},
            0,
        ),
        ([0, 1, 2, 3, 0], LOW, LOW_S, {0: 1.0, 1: 0.58, 2: 0.54, 3: 0.4}, 0),
        ([0, 1, 0, 1, 0], LOW, LOW_S, {0: 1.54, 1: 0.98}, 2),
    ],
)
def test_worked_votes(
    classes: list[int | None], o: list[float | None], s: list[float | None], expected: dict[int, float], chosen: int
) -> None:
    found = vote(classes, o, s)
    assert {answer_class: round(weight, 4) for answer_class, weight in found.weights.items()} == expected
    assert found.winner == 0
    assert found.chosen == chosen  # the largest S in the winning class


# Three classes that every aggregation sees differently.
CLASSES = [0, 0, 0, 1, 1, 2, None]
OUTCOME = [0.30, 0.20, 0.10, 0.90, 0.10, 0.80, 1.0]
PROCESS = [0.10, 0.10, 0.10, 0.10, 0.10, 0.90, 1.0]
LOGPROB = [-3.0, -3.0, -3.0, -0.1, -0.1, -0.5, -0.01]


@pytest.mark.parametrize(
    ("method", "weights", "winner", "chosen", "weight"),
    [
        ("cot", None, 0, 0, 1.0),
        ("self-consistency", None, 0, 0, 3.0),
        ("weighted-self-consistency", "S", 2, 5, 1.7),
        ("weighted-self-consistency", None, 2, 5, 1.7),
        ("weighted-self-consistency", "o", 1, 3, 1.0),
        ("weighted-self-consistency", "s", 2, 5, 0.9),
        ("weighted-self-consistency", "mean-S", 2, 5, 1.7),
        ("weighted-self-consistency", "logprob", 1, 3, 2 * math.exp(-0.1)),
        ("best-of-k", None, 1, 3, 0.9),
        ("best-of-k", "o", 1, 3, 0.9),
        ("best-of-k", "s", 2, 5, 0.9),
        ("best-of-k", "S", 2, 5, 1.7),
        ("sc+prm", None, 2, 5, 0.9),
    ],
)
def test_each_aggregation_by_hand(method: str, weights: str | None, winner: int, chosen: int, weight: float) -> None:
    found = vote(CLASSES, OUTCOME, PROCESS, method, weights, logprob=LOGPROB)
    assert (found.winner, found.chosen) == (winner, chosen)
    assert found.weights[winner] == pytest.approx(weight)
    assert found.warnings == ()


def test_mean_weighs_quality_and_not_number() -> None:
    o, s = [0.5, 0.5, 0.9], [0.5, 0.5, 0.9]
    assert vote([0, 0, 1], o, s, weights="S").winner == 0
    assert vote([0, 0, 1], o, s, weights="mean-S").winner == 1


def test_what_took_part_is_reported() -> None:
    found = vote([0, None, 1, 1, None], [0.5, 0.9, 0.5, None, None], [0.5, 0.9, 0.2, 0.9, None])
    assert found.winner == 0
    assert found.counts == {0: 1, 1: 2}
    assert found.weights == {0: 1.0, 1: 0.7}
    assert (found.abstained, found.left_out, found.effective_k) == ((1, 4), (3,), 2)


def test_a_chain_without_s_counts_in_the_majority() -> None:
    assert vote([0, 1, 1], [0.9, 0.1, None], [0.9, 0.1, None], "self-consistency").winner == 1
    assert vote([0, 1, 1], [0.9, 0.1, None], [0.9, 0.1, None]).winner == 0


def test_one_reward_is_enough_for_its_own_weight() -> None:
    found = vote([0, 1, 1], [0.9, 0.3, 0.3], None, "weighted-self-consistency", "o")
    assert (found.winner, found.effective_k, found.warnings) == (0, 3, ())


@pytest.mark.parametrize(("method", "weights"), [pair for pair in AGGREGATIONS if pair[0] not in {"cot"}])
def test_without_any_weight_self_consistency_decides_and_says_so(method: str, weights: str | None) -> None:
    found = vote([0, 1, None, 1], method=method, weights=weights)
    assert (found.winner, found.chosen, found.effective_k) == (1, 1, 3)
    assert found.weights == {0: 1.0, 1: 2.0}
    expected = [] if method == "self-consistency" else [f"self-consistency decided instead of {method}"]
    assert [warning.partition("so ")[2] for warning in found.warnings] == expected


@pytest.mark.parametrize(("method", "weights"), AGGREGATIONS)
@pytest.mark.parametrize("classes", [[], [None], [None, None, None]])
def test_no_answer_wins_nothing(method: str, weights: str | None, classes: list[int | None]) -> None:
    found = vote(classes, [1.0] * len(classes), [1.0] * len(classes), method, weights)
    assert (found.winner, found.chosen, found.counts, found.weights, found.warnings) == (None, None, {}, {}, ())
    assert found.effective_k == 0


def test_an_abstaining_first_chain_leaves_cot_without_an_answer() -> None:
    found = vote([None, 0, 0], method="cot")
    assert (found.winner, found.abstained, found.effective_k) == (None, (0,), 0)


@pytest.mark.parametrize(
    ("classes", "o", "winner", "chosen"),
    [
        ([0, 1, 0, 1], [0.1, 0.9, 0.1, 0.9], 1, 1),  # larger total S
        ([0, 0, 1, 1], [0.4, 0.4, 0.1, 0.7], 1, 3),  # then larger best S
        ([7, 3, 3, 7], [0.5] * 4, 7, 0),  # then first seen
        ([0, 1, 0, 1, 0, 1], [0.3, 0.1, 0.2, 0.2, 0.1, 0.3], 0, 0),  # sums that differ in the last bit are equal
    ],
)
def test_ties(classes: list[int], o: list[float], winner: int, chosen: int) -> None:
    found = vote(classes, o, [0.0] * len(o), "self-consistency")
    assert (found.winner, found.chosen) == (winner, chosen)


def test_ties_by_first_seen_alone() -> None:
    assert vote([0, 1], [0.1, 0.9], [0.1, 0.9], "self-consistency", ties="first-seen").winner == 0
    assert vote([0, 1], [0.1, 0.9], [0.1, 0.9], ties="first-seen").winner == 1


def test_best_of_k_never_takes_a_chain_without_an_answer() -> None:
    found = vote([None, 0, 1], [1.0, 0.2, 0.3], None, "best-of-k")
    assert (found.winner, found.chosen) == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "self-consistancy"}, "no aggregation is named 'self-consistancy': did you mean self-consistency"),
        ({"method": "plurality"}, "there are cot, self-consistency"),
        ({"weights": "p"}, "weighted-self-consistency cannot weigh by 'p': there are S, o, s, mean-S, logprob"),
        ({"method": "best-of-k", "weights": "mean-S"}, "there are o, s, S"),
        ({"method": "cot", "weights": "p"}, "cot cannot weigh by 'p'"),
        ({"o": [0.1]}, "o needs one entry a chain"),
        ({"o": [0.1, 1.2]}, r"o of chain 1 of problem 0 is 1.2, outside \[0, 1\]"),
        ({"logprob": [0.5, -1.0]}, "logprob of chain 0"),
        ({"classes": [0, -2]}, "an answer class is -2"),
    ],
)
def test_what_cannot_be_voted_on_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vote(**{"classes": [0, 1], **arguments})


# A second, plain implementation of the table of methods.


def plain_winner(
    rows: list[tuple[int | None, float | None, float | None, float | None]], method: str, weights: str | None
) -> int | None:
    def weight(row: tuple[int | None, float | None, float | None, float | None]) -> float | None:
        _, o, s, logprob = row
        if method in {"cot", "self-consistency"}:
            return 1.0
        match weights or "s":
            case "o":
                return o
            case "s":
                return s
            case "logprob":
                return None if logprob is None else math.exp(logprob)
        return None if o is None or s is None else o + s

    def combined(members: list[Any]) -> list[float]:
        return [o + s for _, o, s, _ in members if o is not None and s is not None]

    if method == "cot":
        rows = rows[:1]
    members: dict[int, list[Any]] = {}
    for row in rows:
        if row[0] is not None:
            members.setdefault(row[0], []).append(row)
    primary: dict[int, float] = {}
    for answer_class, chains in members.items():
        known = [value for row in chains if (value := weight(row)) is not None]
        if known and method == "best-of-k":
            primary[answer_class] = max(known)
        elif known:
            primary[answer_class] = math.fsum(known) / (len(known) if weights == "mean-S" else 1)
    if not primary:
        primary = {answer_class: len(chains) for answer_class, chains in members.items()}
    keys = [
        primary,
        {c: math.fsum(combined(members[c])) if combined(members[c]) else -math.inf for c in primary},
        {c: max(combined(members[c]), default=-math.inf) for c in primary},
    ]
    standing = list(primary)  # in order of first sight
    for key in keys:
        top = max((key[c] for c in standing), default=0.0)
        standing = [c for c in standing if key[c] >= top - 1e-9]
    return standing[0] if standing else None


scores = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 1.0]))
chains = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 3)),
        scores,
        scores,
        st.one_of(st.none(), st.sampled_from([-2.0, -0.5, 0.0])),
    ),
    min_size=1,
    max_size=10,
)


@settings(deadline=None)
@given(problems=st.lists(chains, min_size=1, max_size=5))
def test_table_scalar_and_plain_votes_agree(
    problems: list[list[tuple[int | None, float | None, float | None, float | None]]],
) -> None:
    columns = [[list(column) for column in zip(*rows, strict=True)] for rows in problems]
    table = VoteTable.of(*([problem[index] for problem in columns] for index in range(4)))
    votes = vote_all(table)
    assert tuple(votes) == AGGREGATIONS
    for (method, weights), found in votes.items():
        assert np.array_equal(found.winner, vote_table(table, method, weights).winner)
        for index, (classes, o, s, logprob) in enumerate(columns):
            one = vote(classes, o, s, method, weights, logprob=logprob)
            assert one.winner == plain_winner(problems[index], method, weights)
            assert found.winner[index] == (-1 if one.winner is None else one.winner)
            assert found.chosen[index] == (-1 if one.chosen is None else one.chosen)
            assert found.effective_k[index] == one.effective_k
            assert found.left_out[index] == len(one.left_out)
            assert bool(found.fell_back[index]) is bool(one.warnings)
            if one.winner is not None:
                assert found.weight[index] == one.weights[one.winner]
                assert found.count[index] <= one.counts[one.winner]
                assert classes[one.chosen or 0] == one.winner
                assert found.abstained[index] == len(one.abstained)


@settings(deadline=None)
@given(rows=chains, data=st.data())
def test_a_vote_over_fewer_chains_is_the_vote_of_a_shorter_run(
    rows: list[tuple[int | None, float | None, float | None, float | None]], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(rows)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    classes, o, s, logprob = (list(column) for column in zip(*rows, strict=True))
    table = VoteTable.of([classes], [o], [s], [logprob])
    kept = np.flatnonzero(mask).tolist()
    for method, weights in AGGREGATIONS:
        short = vote(classes[:k], o[:k], s[:k], method, weights, logprob=logprob[:k])
        assert vote_table(table.first(k), method, weights).winner[0] == (-1 if short.winner is None else short.winner)
        c_kept, o_kept, s_kept, logprob_kept = ([column[i] for i in kept] for column in (classes, o, s, logprob))
        some = vote(c_kept, o_kept, s_kept, method, weights, logprob=logprob_kept)
        found = vote_table(table.subset(mask), method, weights)
        assert found.winner[0] == (-1 if some.winner is None else some.winner)
        assert found.chosen[0] == (-1 if some.chosen is None else kept[some.chosen])
        assert found.abstained[0] == len(some.abstained)


@settings(deadline=None)
@given(rows=chains)
def test_an_abstaining_chain_changes_no_vote(
    rows: list[tuple[int | None, float | None, float | None, float | None]],
) -> None:
    classes, o, s, logprob = (list(column) for column in zip(*rows, strict=True))
    for method, weights in AGGREGATIONS:
        before = vote(classes, o, s, method, weights, logprob=logprob)
        after = vote([*classes, None], [*o, 1.0], [*s, 1.0], method, weights, logprob=[*logprob, 0.0])
        assert (after.winner, after.chosen, after.weights) == (before.winner, before.chosen, before.weights)


def test_a_table_of_arrays_must_have_one_shape() -> None:
    with pytest.raises(ValueError, match=r"one shape \(problems, chains\): got classes \(1, 2\), o \(1, 3\)"):
        VoteTable(
            classes=np.zeros((1, 2), np.int64),
            o=np.zeros((1, 3)),
            s=np.zeros((1, 2)),
            logprob=np.zeros((1, 2)),
            include=np.ones((1, 2), np.bool_),
        )
    with pytest.raises(ValueError, match="k = 0"):
        VoteTable.of([[0]]).first(0)


def test_a_table_of_nothing() -> None:
    for table in (VoteTable.of([]), VoteTable.of([[], []])):
        assert all((found.winner == -1).all() for found in vote_all(table).values())


def chain(problem: str, index: int, answer: str | None, orm: float | None = None, **more: Any) -> dict[str, Any]:
    return {"problem": problem, "round": 0, "index": index, "answer": answer, "orm": orm, "prm": 0.5, **more}


def test_votes_from_the_lines_of_a_finished_run() -> None:
    lines = [
        chain("b", 1, "7", 0.2),
        chain("a", 0, None, 0.9),
        chain("b", 0, "5", 0.9, token_logprobs=[-1.0, -3.0]),
        chain("b", 2, "7", 0.2, token_logprobs=[-1.0, None]),
        chain("b", 0, "9", 1.0, round=1),
    ]
    problems, table = table_of_chains(lines)
    assert problems == ["b", "a"]
    assert table.classes.tolist() == [[0, 1, 1], [-1, -1, -1]]
    assert table.include.tolist() == [[True, True, True], [True, False, False]]
    assert table.logprob[0, 0] == -2.0
    assert np.isnan(table.logprob[0, 1:]).all()
    assert vote_table(table, "self-consistency").winner.tolist() == [1, -1]
    assert vote_table(table, "weighted-self-consistency").winner.tolist() == [0, -1]
    assert vote_table(table, "self-consistency").abstained.tolist() == [0, 1]


def test_a_finished_run_can_be_keyed_anew_and_other_chains_chosen() -> None:
    lines = [chain("a", 0, "1/2"), chain("a", 0, "0.5", round=1), chain("a", 1, "3", round=1)]
    _, table = table_of_chains(
        lines,
        keep=lambda record: True,
        classes=lambda problem, answers: [{"1/2": 0, "0.5": 0, "3": 1}[str(answer)] for answer in answers],
    )
    assert table.classes.tolist() == [[0, 0, 1]]
    with pytest.raises(ValueError, match="chain 1 has no round, index"):
        table_of_chains([{"problem": "a"}])


def test_the_benchmark_runs_and_its_two_ways_agree(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    command = ["scripts/bench_votes.py", "--problems", "20", "--chains", "6", "--repeat", "1", "--pairs", "3"]
    done = subprocess.run(
        [sys.executable, *command, "--json", str(tmp_path / "votes.json")],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads((tmp_path / "votes.json").read_text())
    assert json.loads(done.stdout) == figures
    assert len(figures["each_s"]) == len(AGGREGATIONS)
    assert figures["sizes"] == [1, 2, 4, 6]
    assert figures["disagreements_with_single_votes"] == 0
