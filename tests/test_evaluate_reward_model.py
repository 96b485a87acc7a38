"""Judging reward models: every figure by hand, ties and missing scores included, and ProcessBench's format."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magicore.cli.app import app
from magicore.datasets.families import draw_family, family_id
from magicore.datasets.families.plan import with_error
from magicore.errors import InputError
from magicore.evaluate.first_error import best_threshold, first_error_report, predicted_first_error
from magicore.evaluate.judged import read_judged
from magicore.evaluate.judging import evaluate_reward_model
from magicore.evaluate.ranking import auroc, brier, calibration_error, reliability
from magicore.evaluate.selection import expected_best_of, expected_vote, vote_is_right
from reward_models.types import OutcomeScore, Solution, StepScore, StepScores, Unscored


def write_rows(file: Path, rows: Sequence[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([0.9, 0.1], [True, False], 1.0),
        ([0.1, 0.9], [True, False], 0.0),
        ([0.5, 0.5], [True, False], 0.5),
        ([0.9, 0.8, 0.3, 0.3], [True, False, True, False], 0.625),  # pairs: 1, 1, 0, 1/2 of 4
        ([0.2, 0.2, 0.2], [True, True, False], 0.5),
        ([0.4, 0.6, 0.6, 0.8], [False, False, True, True], 0.875),  # 1, 1/2, 1, 1
        ([0.4, 0.6], [True, True], None),
        ([], [], None),
    ],
)
def test_auroc(scores: list[float], labels: list[bool], expected: float | None) -> None:
    assert auroc(scores, labels) == expected


def test_auroc_is_the_share_of_pairs() -> None:
    scores = [((37 * at) % 11) / 10 for at in range(40)]
    labels = [at % 3 == 0 for at in range(40)]
    pairs = [
        (a > b) + (a == b) / 2
        for a, good in zip(scores, labels, strict=True)
        if good
        for b, other in zip(scores, labels, strict=True)
        if not other
    ]
    assert auroc(scores, labels) == pytest.approx(sum(pairs) / len(pairs))


def test_calibration_by_hand() -> None:
    scores, labels = [0.1, 0.3, 0.35, 0.9, 1.0], [False, False, True, True, False]
    # (0.01 + 0.09 + 0.4225 + 0.01 + 1) / 5
    assert brier(scores, labels) == pytest.approx(0.3065)
    bins = reliability(scores, labels, bins=2)
    assert [(one.n, one.mean_score, one.share_right) for one in bins] == [
        (3, pytest.approx(0.25), pytest.approx(1 / 3)),
        (2, pytest.approx(0.95), pytest.approx(0.5)),
    ]
    assert calibration_error(bins) == pytest.approx(0.6 * (1 / 3 - 0.25) + 0.4 * 0.45)
    assert brier([], []) is None
    assert calibration_error(reliability([], [])) is None
    with pytest.raises(ValueError, match="lie in"):
        reliability([1.5], [True])
    with pytest.raises(ValueError, match="1 scores for 2 labels"):
        auroc([1.0], [True, False])


def test_first_error_f1_by_hand() -> None:
    scores = [(0.9, 0.2, 0.1), (0.9, 0.9, 0.3), (0.9, None, 0.8), (0.4, 0.9, 0.9), (0.9, 0.9, 0.9)]
    labels = [1, 1, -1, -1, 2]
    assert [predicted_first_error(one, 0.5) for one in scores] == [1, 2, -1, 0, -1]
    found = first_error_report(scores, labels, 0.5)
    assert (found.erroneous, found.right) == (3, 2)
    assert found.accuracy_erroneous == pytest.approx(1 / 3)
    assert found.accuracy_right == 0.5
    assert found.f1 == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
    assert first_error_report([(0.1,)], [0], 0.5).f1 is None, "there is no right solution"
    assert first_error_report([(0.9,), (0.1,)], [0, -1], 0.5).f1 == 0.0
    assert best_threshold(scores, labels).threshold == 0.25, "1/3 and 1: no other finds more"


def test_best_of_k_against_every_subset() -> None:
    chains = [(0.9, False), (0.7, True), (0.7, False), (0.2, True), (None, True)]
    for k in range(1, 6):
        found = []
        for subset in combinations(chains, k):
            scored = [(score, right) for score, right in subset if score is not None]
            best = max((score for score, _ in scored), default=None)
            winners = [right for score, right in scored if score == best]
            found.append(sum(winners) / len(winners) if winners else 0.0)
        assert expected_best_of(chains, k) == pytest.approx(sum(found) / len(found))
    assert expected_best_of([(None, True)], 1) == 0.0
    with pytest.raises(ValueError, match="between 1 and the 5"):
        expected_best_of(chains, 6)


def test_votes_by_hand() -> None:
    chains = [(0, 0.9, True), (1, 0.3, False), (1, 0.3, False), (None, 0.9, False), (0, None, True)]
    assert vote_is_right(chains, weighted=False) == 0.5, "two against two"
    assert vote_is_right(chains, weighted=True) == 1.0, "0.9 against 0.6"
    assert vote_is_right([(None, 0.5, True)], weighted=False) == 0.0
    assert expected_vote(chains, 5, weighted=True) == 1.0
    every = [vote_is_right(list(subset), weighted=False) for subset in combinations(chains, 3)]
    assert expected_vote(chains, 3, weighted=False) == pytest.approx(sum(every) / len(every))
    sampled = expected_vote(chains, 3, weighted=False, draws=9)
    assert sampled == expected_vote(chains, 3, weighted=False, draws=9)
    assert 0 <= sampled <= 1


class Knowing:
    """Scores a step .9, or .2 where it says wrong; silent steps have no score."""

    name = "knowing"
    fingerprint = "knowing/1"
    aggregation = "min"

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        return [
            StepScores(
                steps=one.steps,
                scores=tuple(
                    StepScore(value=None, unscored=Unscored(code="no_equation", reason="silent"))
                    if "silent" in step.text
                    else StepScore(value=0.2 if "wrong" in step.text else 0.9)
                    for step in one.steps
                ),
                aggregation="min",
            )
            for one in solutions
        ]


class Whole:
    name = "whole"
    fingerprint = "whole/1"

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [OutcomeScore(value=0.8 if "42" in one.text else 0.3) for one in solutions]


def process_bench(file: Path) -> Path:
    rows = [
        {"steps": ["fine", "wrong", "fine"], "label": 1, "final_answer_correct": False},
        {"steps": ["fine", "silent", "fine"], "label": -1, "final_answer_correct": True},
        {"steps": ["fine", "fine"], "label": 1, "final_answer_correct": False},
        {"steps": ["wrong"], "label": -1, "final_answer_correct": True},
    ]
    shared = {"generator": "m", "problem": "What?"}
    file.write_text(json.dumps([{"id": f"gsm8k-{at}", **shared, **row} for at, row in enumerate(rows)]))
    return file


def test_processbench_files(tmp_path: Path) -> None:
    judged = read_judged(process_bench(tmp_path / "gsm8k.json"))
    assert [one.truth for one in judged] == [(True, False, None), (True, True, True), (True, False), (True,)]
    found = evaluate_reward_model(Knowing(), tmp_path / "gsm8k.json", kind="process").report
    assert found.first_error is not None
    assert (found.first_error.accuracy_erroneous, found.first_error.accuracy_right, found.first_error.f1) == (0.5,) * 3
    assert found.steps is not None
    # right: .9 .9 .9 .9 .2; wrong: .2 .9 -> wins 4 + 1/2 and 4/2 of 10
    assert (found.steps.n, found.steps.right, found.steps.unscored) == (7, 5, 1)
    assert found.steps.auroc == pytest.approx((4 + 0.5 + 2) / 10)
    assert found.outcomes is not None
    assert found.outcomes.auroc == pytest.approx(0.5), "by the smallest step: .2, .9, .9, .2"
    assert found.unscored == {"no_equation": 1}
    assert found.selection == ()
    assert found.by_length["1-3"]["solutions"] == 4


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"label": 3}, "index of the first wrong step"),
        ({"label": True}, "index of the first wrong step"),
        ({"steps": []}, "list of texts"),
        ({"final_answer_correct": "yes"}, "true or false"),
    ],
)
def test_a_broken_processbench_file_names_the_place(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    row = {"id": "a", "problem": "?", "steps": ["x"], "label": -1, "final_answer_correct": True, **changed}
    (tmp_path / "bench.json").write_text(json.dumps([row]))
    with pytest.raises(InputError, match=f"item 1.*{says}"):
        read_judged(tmp_path / "bench.json")


def test_an_outcome_model_and_what_it_gains(tmp_path: Path) -> None:
    answers = {"p": ["42", "41", "41", "42"], "q": ["7", "42", "42", "7"]}
    gold = {"p": "42", "q": "7"}
    rows = [
        {"id": name, "question": f"{name}?", "answer": gold[name], "solution": f"Step 1: The final answer is {answer}."}
        for name, given in answers.items()
        for answer in given
    ]
    found = evaluate_reward_model(Whole(), write_rows(tmp_path / "s.jsonl", rows), kind="outcome").report
    assert found.steps is None
    assert found.outcomes is not None
    assert found.outcomes.auroc == pytest.approx(0.5), "right .8 .8 .3 .3, wrong .3 .3 .8 .8"
    by_k = {one.k: one for one in found.selection}
    assert list(by_k) == [1, 2, 4]
    assert by_k[1].single == by_k[1].best_of == by_k[1].majority == 0.5
    assert by_k[4].majority == 0.5, "both tie, and half of each tie is right"
    assert by_k[4].weighted == by_k[4].best_of == 0.5, "p is won, q is lost"
    assert by_k[2].any_right == pytest.approx(1 - 1 / 6)
    assert by_k[4].any_right == 1.0


def test_generated_families_have_exact_step_truth(tmp_path: Path) -> None:
    from random import Random

    rows = []
    for at, drawn in enumerate(draw_family("stories", 30, 3, "test")):
        planted = with_error(drawn, Random(at))
        row = {"id": family_id("stories", "test", 3, at), "question": drawn.question, "answer": drawn.answer}
        texts = drawn.steps if planted is None or at % 2 else planted[0]
        rows.append({**row, "solution": "\n".join(texts)})
    file = write_rows(tmp_path / "chains.jsonl", rows)
    judged = read_judged(file)
    assert all(one.truth is not None for one in judged)
    assert 8 < sum(one.first_error != -1 for one in judged) <= 15
    found = evaluate_reward_model("arithmetic", file)
    assert found.kind == "process"
    steps = found.report.steps
    assert steps is not None
    assert steps.auroc is not None
    assert 0.6 < steps.auroc < 1.0, "slips are seen, misreadings are not"
    assert not math.isnan(steps.auroc)


def test_labels_files_are_judged_by_their_labels(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "Q?", "steps": ["fine", "wrong", "hm"], "step_labels": [0.9, 0.2, None]}]
    (one,) = read_judged(write_rows(tmp_path / "labels.jsonl", rows))
    assert one.truth == (True, False, None)
    assert one.first_error == 1
    nothing = write_rows(tmp_path / "n.jsonl", [{"question": "Q?", "solution": "x"}])
    with pytest.raises(InputError, match="nothing is known"):
        read_judged(nothing)


def test_the_threshold_is_chosen_on_another_file(tmp_path: Path) -> None:
    bench = process_bench(tmp_path / "bench.json")
    found = evaluate_reward_model(Knowing(), bench, kind="process", tune=bench)
    assert found.threshold == 0.25
    assert found.tuned_on == str(bench)
    with pytest.raises(InputError, match="outcome or a process"):
        evaluate_reward_model("random", bench)
    with pytest.raises(InputError, match="threshold lies"):
        evaluate_reward_model(Knowing(), bench, kind="process", threshold=2)


def test_the_command(tmp_path: Path) -> None:
    bench = process_bench(tmp_path / "bench.json")
    call = ["evaluate-reward-model", "constant:0.7", str(bench), "--kind", "process", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, call, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "First error (ProcessBench)" in result.output
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written["steps"]["auroc"] == 0.5
    assert written["first_error"]["accuracy_right"] == 1.0
    assert written["first_error"]["f1"] == 0.0
