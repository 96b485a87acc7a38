"""Solutions of which it is known what is right in them: what reward models are judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from magicore.answers import equivalent
from magicore.chains import read_chain
from magicore.datasets import load_problems
from magicore.datasets.families import drawn_by_id
from magicore.datasets.families.plan import step_truth
from magicore.datasets.problems import read_problem
from magicore.datasets.readers import file_records
from magicore.errors import InputError
from magicore.evaluate.first_error import NONE_WRONG
from magicore.store.json_lines import Record, json_type
from magicore.store.solutions import GivenSolution, read_solutions
from magicore.types import CallKey, Chain, Completion, Problem
from reward_models.steps import join_steps, with_steps
from reward_models.types import Solution

PROCESS_BENCH: Final = ("problem", "steps", "label", "final_answer_correct")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One solution.

    Attributes:
        given: The solution, its problem, and steps.
        truth: Whether each step is right, ``None`` where that is not known; ``None`` for no step truth at all.
        first_error: ProcessBench's label, the index of the first wrong step, -1 for none; ``None`` where not known.
        outcome: Whether the final answer is right.
        answer: The answer that was read, for votes.
    """

    given: GivenSolution
    truth: tuple[bool | None, ...] | None
    first_error: int | None
    outcome: bool | None
    answer: str | None

    def __post_init__(self) -> None:
        steps = len(self.given.solution.steps)
        if self.truth is not None and len(self.truth) != steps:
            raise ValueError(f"{len(self.truth)} truths for {steps} steps: one a step is required")


def read_judged(path: Path | str, data: str | None = None) -> list[Judged]:
    """Read judged solutions: a file of ProcessBench's, labels.jsonl, or chains with gold answers.

    Chains and solutions of generated families (``gen:stories:...``) get the exact truth of every step; of others the
    outcome alone is known, unless the file has ``step_labels``, of which those above one half are right.

    Args:
        path: The file.
        data: The problems behind a chains.jsonl, which holds no questions.

    Raises:
        InputError: The file cannot be read, or nothing in it is known to be right or wrong.
    """
    records = list(file_records(Path(path)))
    if records and all(name in records[0].row for name in PROCESS_BENCH):
        return [_process_bench(record) for record in records]
    problems = None if data is None else load_problems(data)
    given = read_solutions(path, problems)
    outcomes = [record.row.get("outcome") for record in records]
    judged = [_judged(one, outcome) for one, outcome in zip(given, outcomes, strict=True)]
    if all(one.truth is None and one.outcome is None for one in judged):
        raise InputError(f"{path}: nothing is known to be right or wrong: no gold answers and no step_labels")
    return judged


def _process_bench(record: Record) -> Judged:
    row = record.row
    steps, label, final = row["steps"], row["label"], row["final_answer_correct"]
    if not isinstance(steps, list) or not steps or not all(isinstance(step, str) for step in steps):
        raise InputError(f"{record.where}: `steps` is a list of texts, at least one")
    if isinstance(label, bool) or not isinstance(label, int) or not NONE_WRONG <= label < len(steps):
        raise InputError(f"{record.where}: `label` is the index of the first wrong step or -1, not {label!r}")
    if not isinstance(final, bool):
        raise InputError(f"{record.where}: `final_answer_correct` is true or false, this is {json_type(final)}")
    name = str(row.get("id", record.where))
    problem = read_problem({"question": row["problem"]}, record.where, name)
    text, split = join_steps(steps)
    truth = tuple(
        True if label == NONE_WRONG or at < label else (False if at == label else None) for at in range(len(steps))
    )
    solution = Solution(question=problem.question, text=text, steps=split, id=name)
    given = GivenSolution(problem=problem, solution=solution)
    return Judged(given=given, truth=truth, first_error=label, outcome=final, answer=None)


def _judged(given: GivenSolution, stated: Any) -> Judged:
    given = replace(given, solution=with_steps(given.solution))
    solution, problem = given.solution, given.problem
    chain = _chain(given)
    outcome = stated if isinstance(stated, bool) else _outcome(problem, chain.answer)
    truth: tuple[bool | None, ...] | None = None
    drawn = drawn_by_id(problem.id)
    if drawn is not None and drawn.question == problem.question:
        truth = step_truth(drawn, [step.text for step in solution.steps])
    elif given.step_labels is not None:
        if len(given.step_labels) != len(solution.steps):
            raise InputError(
                f"solution {solution.id!r}: {len(given.step_labels)} step labels for {len(solution.steps)} steps"
            )
        truth = tuple(None if label is None else label > 0.5 for label in given.step_labels)
    return Judged(given=given, truth=truth, first_error=_first_error(truth), outcome=outcome, answer=chain.answer)


def _first_error(truth: Sequence[bool | None] | None) -> int | None:
    """The first wrong step where every step up to it, or all, have a truth."""
    if truth is None:
        return None
    wrong = next((at for at, right in enumerate(truth) if right is False), None)
    if wrong is not None:
        return wrong
    return None if any(right is None for right in truth) else NONE_WRONG


def _chain(given: GivenSolution) -> Chain:
    if given.chain is not None:
        return given.chain.chain
    stop: Any = given.solution.stop or "stop"
    completion = Completion(index=0, text=given.solution.text, stop=stop)
    return read_chain(given.problem, CallKey(problem=given.problem.id, role="solver"), completion)


def _outcome(problem: Problem, answer: str | None) -> bool | None:
    """``None`` without a gold; a chain without an answer is not right."""
    if problem.answer is None:
        return None
    return answer is not None and equivalent(answer, problem.answer, problem.kind, problem.options)


def by_problem(judged: Sequence[Judged]) -> Mapping[str, list[int]]:
    """The indices of each problem's solutions, in order."""
    found: dict[str, list[int]] = {}
    for at, one in enumerate(judged):
        found.setdefault(one.given.problem.id, []).append(at)
    return found
