"""Reward models with known scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reward_models import load_outcome_model, load_process_model
from reward_models.errors import RewardModelError, StepCountError
from reward_models.scripted import ScriptedORM, ScriptedPRM, draw
from reward_models.steps import join_steps
from reward_models.types import Solution

TWO_STEPS = Solution(question="q", text="One is 1. Two is 2.")


def test_outcomes_by_text_and_by_function() -> None:
    model = ScriptedORM({"a": 0.25, "b": None})
    found = model.score([Solution(question="q", text=text) for text in ("a", "b", "c")])
    assert [score.value for score in found] == [0.25, None, None]
    assert [score.unscored.code if score.unscored else None for score in found] == [None, "failed", "failed"]
    assert ScriptedORM(lambda solution: len(solution.text) / 100).score([TWO_STEPS])[0].value == 0.19
    model.score([])
    assert model.batches == [3, 0]


def test_step_scores_by_text_and_by_function() -> None:
    [score] = ScriptedPRM({TWO_STEPS.text: [0.5, None]}, aggregation="min").score([TWO_STEPS])
    assert [entry.value for entry in score.scores] == [0.5, None]
    assert score.aggregation == "min"
    [other] = ScriptedPRM(lambda solution: [0.1 * step.start for step in solution.steps]).score([TWO_STEPS])
    assert [entry.value for entry in other.scores] == [0.0, 1.0]
    [unknown] = ScriptedPRM({}).score([TWO_STEPS])
    assert [entry.value for entry in unknown.scores] == [None, None]


def test_a_wrong_number_of_scores_is_refused() -> None:
    with pytest.raises(StepCountError, match="3 scores for 2 steps"):
        ScriptedPRM({TWO_STEPS.text: [0.1, 0.2, 0.3]}).score([TWO_STEPS])


def test_from_files(tmp_path: Path) -> None:
    orm, prm = tmp_path / "orm.json", tmp_path / "prm.json"
    orm.write_text(json.dumps({TWO_STEPS.text: 0.75}))
    prm.write_text(json.dumps({TWO_STEPS.text: [0.75, 0.25]}))
    assert load_outcome_model(f"scripted:{orm}").score([TWO_STEPS])[0].value == 0.75
    [scores] = load_process_model(f"scripted:{prm}").score([TWO_STEPS])
    assert [entry.value for entry in scores.scores] == [0.75, 0.25]
    for text, says in (
        ("[]", "no JSON object"),
        ('{"a": 2}', "score in"),
        ("{", "cannot be read"),
        (None, "cannot be"),
    ):
        if text is None:
            orm.unlink()
        else:
            orm.write_text(text)
        with pytest.raises(RewardModelError, match=says):
            load_outcome_model(f"scripted:{orm}")
    prm.write_text('{"a": 0.5}')
    with pytest.raises(RewardModelError, match="a list of step scores is wanted"):
        load_process_model(f"scripted:{prm}")
    with pytest.raises(RewardModelError, match="scripted:FILE"):
        load_process_model("scripted")


def test_constants() -> None:
    assert load_outcome_model("constant").score([TWO_STEPS])[0].value == 0.5
    [scores] = load_process_model("constant:0.9").score([TWO_STEPS])
    assert [entry.value for entry in scores.scores] == [0.9, 0.9]
    for name in ("constant:1.5", "constant:much", "constant:nan"):
        with pytest.raises(RewardModelError, match=r"a score in \[0, 1\] is wanted"):
            load_outcome_model(name)


def test_random_scores_depend_on_content_and_seed_alone() -> None:
    first, again, other = (load_outcome_model(name) for name in ("random:7", "random:7", "random:8"))
    batch = [Solution(question="q", text=str(number)) for number in range(200)]
    drawn = [score.value for score in first.score(batch)]
    assert drawn[::-1] == [score.value for score in again.score(batch[::-1])]
    assert drawn != [score.value for score in other.score(batch)]
    known = [value for value in drawn if value is not None]
    assert len(set(known)) == 200 and 0.4 < sum(known) / 200 < 0.6
    assert load_outcome_model("random", seed=7).name == "random:7"
    with pytest.raises(RewardModelError, match="a whole number is wanted"):
        load_process_model("random:x")


def test_random_step_scores_differ_between_equal_steps() -> None:
    text, steps = join_steps(["same\n", "same\n"])
    [scores] = load_process_model("random").score([Solution(question="q", text=text, steps=steps)])
    assert len({entry.value for entry in scores.scores}) == 2


def test_draws_are_fixed_for_ever() -> None:
    assert draw(0, "q", "t") == pytest.approx(0.41568637450093865, abs=1e-15)
    assert 0 <= draw(1, "\ud800", 3) < 1
