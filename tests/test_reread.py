"""The problems of a run are known again wherever its directory is read: from its data, or from what its store keeps."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import magicore
from magicore import Problem
from magicore.ablations.arms import Arm, arm_runs
from magicore.ablations.finished import read_run
from magicore.ablations.options import Options
from magicore.config import RunConfig
from magicore.report.html import report_data, write_report
from magicore.report.run_files import read_run as read_files
from magicore.runtime.directory import STORE
from magicore.store.origin import Origin, joined, note_origin, noted_origin
from magicore.store.reread import problem_of, reread_problems
from magicore.store.run_store import RunStore
from magicore.store.story import read_story
from magicore.types import Result

MODULE = """
ASKED = []

def answer(request, index):
    ASKED.append((request.key.role, request.key.problem, str(request.messages)))
    return f"Step 1: I look.\\nStep 2: The final answer is {'ABC'[index % 3]}."
"""
ROWS: list[dict[str, Any]] = [
    {"id": "skipped", "question": "Left out by the offset?", "answer": "yes", "kind": "yesno"},
    {"id": "pet", "question": "Which one barks?", "answer": "B", "options": ["a cat", "a dog", "a cow"]},
    {"id": "sum", "question": "What is 3 + 4?", "answer": "7"},
    {"id": "open", "question": "What is 1 + 1?"},
]
PET = Problem(id="pet", question="Which one barks?", kind="choice", answer="B", options=("a cat", "a dog", "a cow"))
KNOWN = (
    PET,
    Problem(id="sum", question="What is 3 + 4?", kind="number", answer="7"),
    Problem(id="open", question="What is 1 + 1?", kind="number"),
)
HARD = Arm(name="hard", settings={"router": "hard", "iterations": 1})
LOST = "the run was given its problems from Python, and {} cannot be found in its store"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model that is found by name, and notes what it is asked."""
    (tmp_path / "rereading_answers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "rereading_answers", raising=False)
    return "scripted:rereading_answers:answer"


def run(out: Path, model: str, problems: Any, **settings: Any) -> Path:
    settings = {"method": "magicore", "orm": "random:1", "prm": "random:2", "k": 3, **settings}
    if settings["method"] == "magicore":
        settings["router"] = "easy"
    magicore.solve_batch(problems, model=model, out=out, progress=False, **settings)
    return out


def without_questions(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(replace(problem, question="", options=None) for problem in problems)


def test_a_run_given_its_problems_from_python_is_known_to_all_that_read_it(tmp_path: Path, model: str) -> None:
    out = run(tmp_path / "run", model, ROWS, offset=1)
    studied, reported = read_run(out), read_files(out)
    assert (studied.problems, studied.unread) == (KNOWN, None)
    assert tuple(reported.problems.values()) == KNOWN and reported.why_no_questions is None
    assert [reported.problem(result) for result in reported.plain_results()] == list(KNOWN)
    story = read_story(out, "pet")
    assert (story.question, story.why_no_question) == ("Which one barks?", None)
    page = write_report(report_data([out]), tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Which one barks?" in page

    (out / STORE).unlink()
    studied, reported = read_run(out), read_files(out)
    assert (studied.problems, studied.unread) == (without_questions(KNOWN), LOST.format("3 of the questions"))
    assert (reported.problems, reported.why_no_questions) == ({}, studied.unread)
    story = read_story(out, "pet")
    assert (story.question, story.why_no_question) == (None, LOST.format("its question"))


@pytest.mark.parametrize("named", [True, False])
def test_a_run_given_a_file_is_known_by_it(tmp_path: Path, model: str, named: bool) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    given = {"data": str(file)} if named else {}
    out = run(tmp_path / "run", model, None if named else file, offset=1, **given)
    assert read_run(out).problems == tuple(read_files(out).problems.values()) == KNOWN
    assert read_story(out, "sum").question == "What is 3 + 4?"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:-1]))
    for why in (read_run(out).unread, read_files(out).why_no_questions):
        assert why == "the run's data no longer has 1 of its problems"
    assert read_story(out, "open").why_no_question == "the run's data no longer has 1 of its problems"
    assert read_story(out, "sum").why_no_question is None
    file.unlink()
    assert "no such file" in str(read_run(out).unread)


def test_a_study_asks_anew_what_was_given_from_python(tmp_path: Path, model: str) -> None:
    out = run(tmp_path / "run", model, ROWS, offset=1)
    asked = sys.modules["rereading_answers"].ASKED
    asked.clear()
    base = read_run(out)
    [found] = arm_runs(base, [HARD], Options(consent=lambda _: True)).runs.values()
    assert [result.id for result in found.results] == ["pet", "sum", "open"] and found.problems == KNOWN
    assert {(role, problem) for role, problem, _ in asked} == {
        (role, problem) for role in ("reviewer", "refiner") for problem in ("pet", "sum", "open")
    }  # the chains are in the store
    assert all("Which one barks?" in text for _, problem, text in asked if problem == "pet")
    again = arm_runs(base, [HARD], Options(consent=lambda _: False))
    assert again.missing == () and again.runs["hard"].problems == KNOWN


def test_merged_shards_know_the_problems_of_all(tmp_path: Path, model: str) -> None:
    parts = [
        run(tmp_path / f"{number}", model, ROWS[1:], method="self-consistency", shard=f"{number}/2")
        for number in (1, 2)
    ]
    magicore.merge_runs(parts, tmp_path / "all")
    assert read_run(tmp_path / "all").problems == KNOWN
    first, second = (Origin.of(problems) for problems in (KNOWN[:1], KNOWN[1:]))
    assert joined([first, second]) == Origin.of(KNOWN)  # what workers of a cluster note, of their own problems alone
    assert joined([Origin(), Origin(data="a.jsonl")]) == Origin(data="a.jsonl")


def test_what_the_results_say_of_a_problem_is_kept(tmp_path: Path) -> None:
    """A file may have been mended since; a store may be of before options were kept."""
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({**ROWS[1], "answer": "C"}) + "\n")
    result = Result(id="pet", kind="choice", method="cot", gold="B")
    assert reread_problems(tmp_path / STORE, RunConfig(data=str(file)), [result]) == ({"pet": PET}, None)
    store = RunStore(tmp_path / STORE)
    note_origin(store, Origin.of(KNOWN))
    assert asdict(noted_origin(store)) == {
        "data": None,
        "questions": {problem.id: problem.question for problem in KNOWN},
        "options": {"pet": list(PET.options or ())},
    }
    store.put_state("origin", {"data": None, "questions": {"pet": "Which one barks?"}})
    store.close()
    other = Result(id="other", kind="text", method="cot", gold=None)
    known, why = reread_problems(tmp_path / STORE, RunConfig(), [result, other])
    assert known == {"pet": replace(PET, options=None)} and why == LOST.format("1 of the questions")
    assert problem_of(other, known) == Problem(id="other", question="", kind="text")
    assert reread_problems(tmp_path / STORE, RunConfig(), []) == ({}, None)
