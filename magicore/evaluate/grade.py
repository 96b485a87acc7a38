"""Grading answers or whole responses against gold, with what was read where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from magicore.answers import Extraction, equivalent, extract
from magicore.datasets.problems import read_problem
from magicore.datasets.readers import file_records
from magicore.errors import InputError
from magicore.types import Problem

Part = Literal["answer", "response"]
FIELDS: Mapping[Part, tuple[str, ...]] = {
    "answer": ("prediction", "predicted", "answer_text"),
    "response": ("response", "solution", "text", "completion", "output"),
}
"""Where a row's answer or whole response may stand, in order of preference."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """One graded row.

    Attributes:
        problem: The question, its kind and its gold answer.
        part: Whether a bare answer or a whole response was graded.
        given: The text that was graded.
        read: What was read from a whole response, and where; ``None`` for a bare answer.
        value: The answer compared with gold; ``None`` where there is none.
        correct: Whether it equals gold; ``None`` without gold.
    """

    problem: Problem
    part: Part
    given: str
    read: Extraction | None
    value: str | None
    correct: bool | None


def grade_file(path: Path, *, kind: str | None = None, field: str | None = None) -> Iterator[Grade]:
    """Grade each row of a file: ``{id?, question?, answer (gold), kind?, options?, prediction | response, stop?}``.

    Args:
        path: JSON Lines, JSON, CSV or Parquet.
        kind: The answer kind of all rows, instead of each one's own.
        field: The field that holds the whole response, instead of the usual names.

    Raises:
        InputError: the file or a row cannot be read, or holds nothing to grade.
    """
    for number, record in enumerate(file_records(path)):
        row = {"question": "(no question)", **record.row}
        known = {name: row[name] for name in ("question", "answer", "kind", "options") if row.get(name) is not None}
        forced: Any = kind
        problem = read_problem(known, record.where, str(row.get("id", number)), kind=forced)
        yield grade_row(problem, row, record.where, field)


def grade_row(problem: Problem, row: Mapping[str, Any], where: str, field: str | None = None) -> Grade:
    """Grade one row; errors as :func:`grade_file`."""
    part, given = _given(row, where, field)
    read: Extraction | None = None
    value: str | None = given.strip() or None
    if part == "response":
        stop = row.get("stop")
        read = extract(given, problem.kind, options=problem.options, stop=stop if isinstance(stop, str) else "stop")
        value = read.value
    correct = None
    if problem.answer is not None:
        correct = value is not None and equivalent(value, problem.answer, problem.kind, options=problem.options)
    return Grade(problem=problem, part=part, given=given, read=read, value=value, correct=correct)


def _given(row: Mapping[str, Any], where: str, field: str | None) -> tuple[Part, str]:
    if field is not None:
        if not isinstance(row.get(field), str):
            raise InputError(f"{where}: there is no text in the field {field!r}")
        return "response", row[field]
    for part, names in FIELDS.items():
        for name in names:
            if isinstance(row.get(name), str):
                return part, row[name]
            if part == "answer" and isinstance(row.get(name), int | float):
                return part, str(row[name])
    usual = ", ".join(name for names in FIELDS.values() for name in names)
    raise InputError(f"{where}: nothing to grade; give one of {usual}, or name the field with --field")
