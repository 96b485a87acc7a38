"""Given solutions, the input of ``score`` and ``refine``: ``{id, question, solution | steps, ...}`` or chains.jsonl."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, get_args

from magicore.datasets.options import with_options
from magicore.datasets.problems import FIELDS, checked_kind, read_problem
from magicore.datasets.readers import file_records
from magicore.errors import InputError
from magicore.store.chain_rows import read_chain_row
from magicore.store.json_lines import Record, json_type
from magicore.store.rows import Row
from magicore.types import Problem, ScoredChain, StopReason
from reward_models.types import Solution, Step

_LABELS: Final[dict[object, float]] = {"+": 1.0, "-": 0.0}
_SEPARATOR: Final = "\n"
_QUESTION_FIELDS: Final = ("question", "kind", "options")
_STOPS: Final[tuple[StopReason, ...]] = get_args(StopReason)


@dataclass(frozen=True, kw_only=True)
class GivenSolution:
    """One solution that came from elsewhere.

    Attributes:
        problem: The question it answers. Solutions of equal ids share one problem and are its chains, in file order.
        solution: The text, and its steps where the file gave them; ``id`` is the chain's id.
        step_labels: For each step how right it is, 0 (wrong) to 1 (right), ``None`` where it has no label. Their number
            is checked here where the file gave steps, else whoever splits the text has to.
        chain: The chain and the scores it came with, out of a chains.jsonl.
        kept: The rounds after which that chain was kept.
    """

    problem: Problem
    solution: Solution
    step_labels: tuple[float | None, ...] | None = None
    chain: ScoredChain | None = None
    kept: tuple[int, ...] = ()


def read_solutions(
    path: Path | str,
    problems: Iterable[Problem] | None = None,
    *,
    kind: str | None = None,
    limit: int | None = None,
) -> list[GivenSolution]:
    """Read a file of solutions.

    Args:
        path: A file in any format of a problems file.
        problems: The questions. Needed for a chains.jsonl, which holds none; beside solutions that bring their own
            question they add gold answers, kinds and options.
        kind: The kind of all questions that ``problems`` does not hold.
        limit: At most so many solutions.

    Raises:
        InputError: The file or a line of it cannot be read, or a question is missing or differs between two lines.
    """
    reader = _Reader({problem.id: problem for problem in problems or ()}, kind)
    given: list[GivenSolution] = []
    for number, record in enumerate(file_records(Path(path))):
        if limit is not None and number >= limit:
            break
        given.append(reader.chain(record) if _is_chain(record.row) else reader.solution(record, number))
    return given


def _is_chain(row: Mapping[str, Any]) -> bool:
    return "problem" in row and "text" in row and "role" in row


class _Reader:
    """Keeps the problems met so far and counts the solutions of each."""

    def __init__(self, problems: dict[str, Problem], kind: str | None) -> None:
        self._problems = problems
        self._kind = None if kind is None else checked_kind(kind, "the kind asked for")
        self._counts: dict[str, int] = {}
        self._chains: set[str] = set()
        self._has_ids: bool | None = None

    def chain(self, record: Record) -> GivenSolution:
        """A line of chains.jsonl."""
        read = read_chain_row(record.row, record.where)
        chain = read.scored.chain
        if chain.id in self._chains:
            raise InputError(f"{record.where}: the chain {chain.id!r} is there twice")
        self._chains.add(chain.id)
        if "question" in record.row or chain.problem in self._problems:
            row = {key: value for key, value in record.row.items() if key in _QUESTION_FIELDS}
            problem = self._problem(row, record.where, chain.problem)
        else:
            raise InputError(
                f"{record.where}: there is no question for problem {chain.problem!r}; chains hold none, "
                "so name the file with the problems too (--data)"
            )
        return GivenSolution(
            problem=problem,
            solution=chain.solution(with_options(problem.question, problem.options)),
            chain=read.scored,
            kept=read.kept,
        )

    def solution(self, record: Record, number: int) -> GivenSolution:
        """A line of a solutions file."""
        where, row = record
        name = self._name(row, where, number)
        problem = self._problem({key: value for key, value in row.items() if key in FIELDS}, where, name)
        index = self._counts.get(name, 0)
        self._counts[name] = index + 1
        fields = Row(row, where)
        text, steps = _read_text(fields)
        labels = _read_labels(fields)
        if labels is not None and steps and len(labels) != len(steps):
            raise InputError(f"{where}: {len(labels)} `step_labels` for {len(steps)} `steps`; one a step is expected")
        return GivenSolution(
            problem=problem,
            solution=Solution(
                question=problem.question,
                text=text,
                steps=steps,
                id=f"{name}/solver/0/0/{index}",
                token_logprobs=fields.optional_numbers("token_logprobs"),
                stop="stop" if row.get("stop") is None else fields.one_of("stop", _STOPS),
                thinking=fields.optional_text("thinking"),
            ),
            step_labels=labels,
        )

    def _name(self, row: Mapping[str, Any], where: str, number: int) -> str:
        value = row.get("id")
        has = value is not None and value != ""
        if self._has_ids is None:
            self._has_ids = has
        if has != self._has_ids:
            raise InputError(
                f"{where}: some solutions have an `id` and some have none; give every one an `id`, or none"
            )
        if has and (isinstance(value, bool) or not isinstance(value, str | int)):
            raise InputError(f"{where}: `id` is a text or a whole number, this is {json_type(value)}")
        return str(value) if has else str(number)

    def _problem(self, row: Mapping[str, Any], where: str, name: str) -> Problem:
        known = self._problems.get(name)
        if known is None:
            if "question" not in row:
                raise InputError(f"{where}: no `question`; every solution of a problem that is not yet known needs it")
            known = self._problems[name] = read_problem(row, where, name, kind=self._kind)
        elif row.get("question", known.question) != known.question:
            raise InputError(
                f"{where}: the id {name!r} stands for another question before; solutions of one id share it"
            )
        return known


def _read_text(row: Row) -> tuple[str, tuple[Step, ...]]:
    """The solution and its steps: either is enough; of both, the steps have to lie in the solution in order."""
    text = row.optional_text("solution")
    given = row.values.get("steps")
    if given is None:
        if "solution" not in row.values:
            raise InputError(f"{row.where}: no `solution` and no `steps`; it has: {', '.join(map(str, row.values))}")
        if text is None or not text.strip():
            raise InputError(f"{row.where}: `solution` is empty")
        return text, ()
    if not isinstance(given, list) or not given or not all(isinstance(item, str | dict) for item in given):
        raise row.wrong("steps", "a list of texts, at least one")
    parts = [item if isinstance(item, str) else Row(item, f"{row.where}, `steps`").text("text") for item in given]
    if not all(part.strip() for part in parts):
        raise InputError(f"{row.where}: a step is empty")
    if text is not None:
        return text, _located(text, parts, row.where)
    ends = [part if part[-1].isspace() else part + _SEPARATOR for part in parts[:-1]]
    whole = [*ends, parts[-1]]
    starts = accumulate(map(len, whole[:-1]), initial=0)
    steps = tuple(
        Step(text=part, start=start, end=start + len(part)) for part, start in zip(whole, starts, strict=True)
    )
    return "".join(whole), steps


def _located(text: str, parts: Sequence[str], where: str) -> tuple[Step, ...]:
    """The steps where they stand in the text; what lies between two of them belongs to the first."""
    starts: list[int] = []
    at = 0
    for number, part in enumerate(parts, 1):
        start = text.find(part.strip(), at)
        if start < 0:
            raise InputError(f"{where}: step {number} is not in `solution` after the steps before it")
        starts.append(start)
        at = start + len(part.strip())
    starts[0] = 0
    ends = [*starts[1:], len(text)]
    return tuple(Step(text=text[start:end], start=start, end=end) for start, end in zip(starts, ends, strict=True))


def _read_labels(row: Row) -> tuple[float | None, ...] | None:
    value = row.values.get("step_labels")
    if value is None:
        return None
    expected = "a list of true, false, null, +, - or numbers from 0 to 1"
    if not isinstance(value, list):
        raise row.wrong("step_labels", expected)
    labels: list[float | None] = []
    for label in value:
        if isinstance(label, str):
            label = _LABELS.get(label.strip(), math.nan)  # noqa: PLW2901 - a sign stands for its number
        if label is None:
            labels.append(None)
        elif isinstance(label, bool | int | float) and 0 <= label <= 1:
            labels.append(float(label))
        else:
            raise InputError(f"{row.where}: `step_labels` is {expected}")
    return tuple(labels)
