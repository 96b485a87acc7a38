"""Grading a file of answers or responses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from magicore.cli import main
from magicore.errors import InputError
from magicore.evaluate.grade import grade_file

ROWS = [
    {"id": "a", "answer": "1/2", "kind": "number", "response": "So the final answer is 0.5."},
    {"id": "b", "answer": "72", "kind": "number", "response": "The final answer is 71."},
    {"id": "c", "answer": "B", "kind": "choice", "options": ["x", "y"], "response": "I cannot tell."},
    {"id": "d", "answer": "\\frac{1}{2}", "kind": "math", "prediction": "0.5"},
    {"id": "e", "kind": "number", "response": "Total 12 and", "stop": "length"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def test_each_row_is_graded_with_what_was_read(path: Path) -> None:
    found = {grade.problem.id: grade for grade in grade_file(path)}
    assert [found[name].correct for name in "abcde"] == [True, False, False, True, None]
    read = found["a"].read
    assert read is not None and read.span is not None and ROWS[0]["response"][slice(*read.span)] == read.text
    assert found["c"].value is None and found["c"].read is not None and found["c"].read.reason
    assert found["e"].value is None and found["d"].read is None


def test_the_command_counts_and_writes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "graded.jsonl"
    monkeypatch.setattr(sys, "argv", ["magicore", "grade", str(path), "--json", "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    summary = json.loads(capsys.readouterr().out)
    assert (summary["n"], summary["graded"], summary["correct"], summary["without_answer"]) == (5, 4, 2, 2)
    assert [json.loads(line)["correct"] for line in out.read_text().splitlines()] == [True, False, False, True, None]


def test_nothing_to_grade_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"answer": "1"}\n')
    with pytest.raises(InputError, match="line 1: nothing to grade"):
        list(grade_file(path))
