"""Given solutions, the input of `score` and `refine`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magicore.errors import InputError
from magicore.store.files import chain_row, read_solutions
from magicore.store.json_lines import json_line
from magicore.types import Chain, Problem, ScoredChain
from reward_models.types import OutcomeScore, Step


def written(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_solution_as_text(tmp_path: Path) -> None:
    row = {"id": 3, "question": "2+2?", "answer": "#### 4", "solution": "It is 4.", "token_logprobs": [-0.5, -1]}
    (given,) = read_solutions(written(tmp_path, row))
    assert (given.problem.id, given.problem.kind, given.problem.answer) == ("3", "number", "4")
    solution = given.solution
    assert (solution.id, solution.question, solution.text) == ("3/solver/0/0/0", "2+2?", "It is 4.")
    assert (solution.steps, solution.token_logprobs, solution.stop) == ((), (-0.5, -1.0), "stop")
    assert (given.step_labels, given.chain) == (None, None)


def test_steps_are_joined_and_keep_their_places(tmp_path: Path) -> None:
    row = {"question": "q", "steps": ["a", "b\n\n", {"text": "c"}], "step_labels": [True, "-", None]}
    (given,) = read_solutions(written(tmp_path, row))
    assert given.solution.text == "a\nb\n\nc"
    assert [step.text for step in given.solution.steps] == ["a\n", "b\n\n", "c"]
    assert all(given.solution.text[step.start : step.end] == step.text for step in given.solution.steps)
    assert given.step_labels == (1.0, 0.0, None)


def test_steps_of_a_given_text_are_found_in_it(tmp_path: Path) -> None:
    row = {"question": "q", "solution": "So: a a, then b.", "steps": ["a", "a,", "b."]}
    (given,) = read_solutions(written(tmp_path, row))
    assert [step.text for step in given.solution.steps] == ["So: a ", "a, then ", "b."]


def test_solutions_of_one_id_are_chains_of_one_problem(tmp_path: Path) -> None:
    rows = [{"id": "p", "question": "q", "solution": text} for text in ("x", "y")]
    first, second = read_solutions(written(tmp_path, *rows, {"id": "r", "question": "s", "solution": "z"}))[:2]
    assert first.problem is second.problem
    assert [first.solution.id, second.solution.id] == ["p/solver/0/0/0", "p/solver/0/0/1"]


def test_problems_add_what_the_solutions_do_not_say(tmp_path: Path) -> None:
    problem = Problem(id="p", question="q", kind="number", answer="4")
    (given,) = read_solutions(written(tmp_path, {"id": "p", "solution": "x"}), [problem])
    assert given.problem == problem
    assert given.solution.question == "q"


def test_chains_with_their_questions(tmp_path: Path) -> None:
    scored = ScoredChain(
        chain=Chain(
            id="p/solver/0/0/0",
            problem="p",
            role="solver",
            round=0,
            index=0,
            text="x",
            stop="length",
            steps=(Step(text="x", start=0, end=1),),
        ),
        orm=OutcomeScore(value=0.25),
        o=0.25,
    )
    path = tmp_path / "chains.jsonl"
    path.write_bytes(json_line(chain_row(scored, [0])))
    problem = Problem(id="p", question="q", kind="number")
    (given,) = read_solutions(path, [problem])
    assert (given.problem, given.chain, given.kept) == (problem, scored, (0,))
    assert given.solution == scored.chain.solution("q")
    with pytest.raises(InputError, match=r"no question for problem 'p'.*--data"):
        read_solutions(path)
    path.write_bytes(json_line(chain_row(scored) | {"question": "How many?", "answer": "7"}))
    (given,) = read_solutions(path)
    assert (given.problem.question, given.problem.answer, given.problem.kind) == ("How many?", None, "number")


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([{"question": "q"}], ["no `solution` and no `steps`", "question"]),
        ([{"question": "q", "solution": " "}], ["`solution` is empty"]),
        ([{"solution": "x"}], ["no `question`; every solution"]),
        ([{"question": "q", "solution": 5}], ["`solution` is a text", "a number"]),
        ([{"question": "q", "steps": "x"}], ["`steps` is a list of texts"]),
        ([{"question": "q", "steps": []}], ["`steps` is a list of texts"]),
        ([{"question": "q", "steps": ["x", " "]}], ["a step is empty"]),
        ([{"question": "q", "steps": ["x", "z"], "solution": "x y"}], ["step 2 is not in `solution`"]),
        ([{"question": "q", "steps": ["x"], "step_labels": [1, 0]}], ["2 `step_labels` for 1 `steps`"]),
        ([{"question": "q", "steps": ["x"], "step_labels": [2]}], ["`step_labels` is a list of true, false"]),
        ([{"question": "q", "steps": ["x"], "step_labels": ["good"]}], ["`step_labels` is a list of true, false"]),
        ([{"question": "q", "steps": ["x"], "step_labels": 1}], ["`step_labels` is a list"]),
        ([{"question": "q", "solution": "x", "token_logprobs": "x"}], ["`token_logprobs`"]),
        ([{"id": 1, "question": "q", "solution": "x"}, {"question": "q", "solution": "x"}], ["line 2", "or none"]),
        (
            [{"id": 1, "question": "q", "solution": "x"}, {"id": 1, "question": "r", "solution": "x"}],
            ["line 2", "another question"],
        ),
    ],
)
def test_a_bad_solution_is_one_sentence(tmp_path: Path, rows: list[dict[str, Any]], parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_solutions(written(tmp_path, *rows))
    for part in ["s.jsonl", *parts]:
        assert part in str(caught.value)
