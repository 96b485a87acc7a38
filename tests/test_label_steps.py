"""Step labels: Math-Shepherd's estimates with hand-computed values, rules, and what is said where there is no label."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import magicore
from magicore.cli.app import app
from magicore.errors import CapabilityError, InputError, RequestRefused, UnknownNameError
from magicore.llms.base import Generation, Request
from magicore.llms.scripted import Reply, ScriptedModel, ScriptedReply
from magicore.store.solutions import GivenSolution, read_solutions
from magicore.training.label_rules import labels_by_arithmetic, labels_by_gold
from magicore.training.labels import Trials, label_of_trials, read_labels
from magicore.types import Problem
from reward_models.steps import split_steps
from reward_models.types import Solution

PROBLEM = Problem(id="p", question="Ann has 3 pens, buys 4, and doubles them. How many?", kind="number", answer="14")
RIGHT = "Step 1: 3 + 4 = 7.\nStep 2: 7 * 2 = 14.\nStep 3: The final answer is 14."
WRONG = "Step 1: 3 + 4 = 7.\nStep 2: 7 * 2 = 15.\nStep 3: The final answer is 15."


def given(text: str, problem: Problem = PROBLEM, stop: str = "stop") -> GivenSolution:
    solution = Solution(question=problem.question, text=text, steps=split_steps(text), stop=stop)
    return GivenSolution(problem=problem, solution=solution)


def completing(seen: list[str] | None = None) -> Callable[[Request, int], Reply]:
    """From a right first step on, every other completion is right; from a wrong second step on, none is."""

    def script(request: Request, index: int) -> Reply:
        begun = request.prefill or ""
        if seen is not None:
            seen.append(f"{begun}|{index}")
        if "15" in begun:
            return "Step 3: The final answer is 15."
        if "14" in begun:
            return "Step 3: The final answer is 14."
        value = 14 if index % 2 == 0 else 15
        return f"Step 2: 7 * 2 = {value}.\nStep 3: The final answer is {value}."

    return script


@pytest.mark.parametrize(
    ("trials", "hard", "soft"),
    [
        (Trials(reached=0, finished=4), 0.0, 0.0),
        (Trials(reached=1, finished=4), 1.0, 0.25),
        (Trials(reached=3, finished=4, cut=2, failed=2), 1.0, 0.75),
        (Trials(reached=2, finished=2), 1.0, 1.0),
    ],
)
def test_the_estimates_of_math_shepherd(trials: Trials, hard: float, soft: float) -> None:
    assert label_of_trials(trials, soft=False).value == hard
    assert label_of_trials(trials, soft=True).value == soft


@pytest.mark.parametrize(
    ("trials", "over", "code"),
    [
        (Trials(cut=8), False, "cut"),
        (Trials(failed=8), False, "failed"),
        (Trials(cut=3, failed=5), False, "cut"),
        (Trials(failed=8), True, "budget"),
    ],
)
def test_nothing_finished_is_no_label_and_never_zero(trials: Trials, over: bool, code: str) -> None:
    label = label_of_trials(trials, soft=True, over_budget=over)
    assert label.value is None
    assert label.unlabelled is not None
    assert label.unlabelled.code == code


def test_more_reached_than_finished_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        Trials(reached=3, finished=2)


def test_hard_and_soft_labels_of_two_solutions_with_a_common_beginning() -> None:
    seen: list[str] = []
    model = ScriptedModel(completing(seen))
    hard = magicore.label_steps([given(RIGHT), given(WRONG)], model=model, n=4, progress=False)
    assert [label.value for label in hard.labelled[0].labels] == [1.0, 1.0, 1.0]
    assert [label.value for label in hard.labelled[1].labels] == [1.0, 0.0, 0.0]
    assert [one.outcome for one in hard.labelled] == [True, False]
    assert len(seen) == len(set(seen)) == 12, "step 1 is shared and its 4 completions are drawn once"
    soft = magicore.label_steps([given(WRONG)], model=model, n=4, soft=True, progress=False)
    assert [label.value for label in soft.labelled[0].labels] == [0.5, 0.0, 0.0]
    assert soft.labelled[0].labels[0].trials == Trials(reached=2, finished=4)
    assert soft.labelled[0].labels[2].trials is None, "the last step is its answer; nothing is sampled"


def test_a_solution_without_an_answer_is_completed_from_its_last_step_too() -> None:
    cut = given("Step 1: 3 + 4 = 7.\nStep 2: 7 * 2 = 14.", stop="length")
    found = magicore.label_steps([cut], model=ScriptedModel(completing()), n=2, progress=False).labelled[0]
    assert found.outcome is None
    assert found.labels[1].trials == Trials(reached=2, finished=2)


def test_cut_and_failed_completions_are_counted_out() -> None:
    def script(request: Request, index: int) -> Reply:
        if index == 0:
            raise RequestRefused("no", model="scripted")
        if index == 1:
            return ScriptedReply(text="Step 2: 7 *", stop="length")
        return "Step 2: I give up." if index == 2 else "The final answer is 14."

    found = magicore.label_steps([given(RIGHT)], model=ScriptedModel(script), n=4, soft=True, progress=False)
    first = found.labelled[0].labels[0]
    assert first.trials == Trials(reached=1, finished=2, cut=1, failed=1)
    assert first.value == 0.5
    alone = magicore.label_steps([given(RIGHT)], model=ScriptedModel(script), n=2, progress=False)
    assert alone.labelled[0].labels[0].unlabelled is not None
    assert alone.summary["unlabelled"] == {"cut": 2}


def test_without_a_gold_answer_there_is_no_label() -> None:
    problem = Problem(id="q", question="How many?", kind="number")
    found = magicore.label_steps([given(RIGHT, problem)], model=ScriptedModel(completing()), n=2, progress=False)
    assert {label.unlabelled.code for label in found.labelled[0].labels if label.unlabelled} == {"no_gold"}
    assert found.labelled[0].outcome is None


class Talker(ScriptedModel):
    """Does not continue a message that is begun for it, as most endpoints do not."""

    async def generate(self, request: Request) -> Generation:
        if request.prefill is not None:
            raise CapabilityError("this endpoint does not continue a reply")
        return await super().generate(request)


def test_a_model_that_does_not_continue_is_asked_to_go_on() -> None:
    asked: list[tuple[str, str]] = []

    def script(request: Request, index: int) -> str:
        asked.append((request.messages[-2]["content"], request.messages[-1]["content"]))
        return "Step 2: 7 * 2 = 14.\nThe final answer is 14." if index else "The final answer is 9."

    found = magicore.label_steps([given(RIGHT)], model=Talker(script), n=2, soft=True, progress=False)
    assert [label.value for label in found.labelled[0].labels] == [0.5, 0.5, 1.0]
    assert asked[0][0] == "Step 1: 3 + 4 = 7."
    assert "Go on with the next step" in asked[0][1]


def test_an_interrupted_labelling_goes_on_and_samples_nothing_twice(tmp_path: Path) -> None:
    seen: list[str] = []
    out = tmp_path / "labels"
    halted = ScriptedModel(completing(seen))
    few = magicore.label_steps(
        [given(RIGHT), given(WRONG)], model=halted, n=4, out=out, budget={"run.calls": 1}, progress=False
    )
    assert few.summary["unlabelled"] == {"budget": 2}
    assert len(seen) == 4
    again = magicore.label_steps([given(RIGHT), given(WRONG)], model=halted, n=4, out=out, force=True, progress=False)
    assert again.summary["unlabelled"] == {}
    assert len(seen) == len(set(seen)) == 12
    rows = read_labels(out / "labels.jsonl")
    assert [row.labels for row in rows] == [(1.0, 1.0, 1.0), (1.0, 0.0, 0.0)]
    assert [row.outcome for row in rows] == [True, False]
    assert read_solutions(out / "labels.jsonl")[1].solution.steps[1].text == "Step 2: 7 * 2 = 15.\n"


def test_labels_from_arithmetic() -> None:
    text = "Step 1: We add.\nStep 2: 3 + 4 = 7.\nStep 3: 7 * 2 = 15."
    labels = labels_by_arithmetic(Solution(question="", text=text, steps=split_steps(text)))
    assert [label.value for label in labels] == [None, 1.0, 0.0]
    assert labels[0].unlabelled is not None
    assert labels[0].unlabelled.code == "no_equation"


def test_labels_from_a_worked_solution() -> None:
    text = "Step 1: Let us see.\nStep 2: 3 + 4 = 7.\nStep 3: 7 + 2 = 9.\nStep 4: The final answer is 9."
    labels = labels_by_gold(PROBLEM, Solution(question="", text=text, steps=split_steps(text)), RIGHT)
    assert [label.value for label in labels] == [None, 1.0, 0.0, 0.0], "7 + 2 = 9 holds, and is not what is asked"
    assert labels[0].unlabelled is not None
    assert labels[0].unlabelled.code == "no_value"
    none = labels_by_gold(PROBLEM, Solution(question="", text=text, steps=split_steps(text)), None)
    assert {label.unlabelled.code for label in none if label.unlabelled} == {"no_worked_solution"}


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"n": 0}, InputError, "at least 1"),
        ({"source": "gold"}, InputError, "worked"),
        ({"source": "people"}, UnknownNameError, "model, gold, arithmetic"),
    ],
)
def test_what_is_refused(options: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        magicore.label_steps([given(RIGHT)], model=ScriptedModel(completing()), progress=False, **options)


def test_the_command(tmp_path: Path) -> None:
    rows = [{"id": "p", "question": PROBLEM.question, "answer": "14", "solution": text} for text in (RIGHT, WRONG)]
    file = tmp_path / "solutions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"id": "p", "question": "?", "answer": f"{RIGHT}\n#### 14"}) + "\n")
    out = tmp_path / "out"
    call = ["label-steps", str(file), "--from", "gold", "--gold", str(gold), "--out", str(out)]
    result = CliRunner().invoke(app, call, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "6 of 6 steps of 2 solutions labelled, 4 of them above one half" in result.output
    assert [row.labels for row in read_labels(out / "labels.jsonl")] == [(1.0, 1.0, 1.0), (1.0, 0.0, 0.0)]
