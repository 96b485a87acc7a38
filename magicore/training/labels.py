"""Step labels: how right each step of a solution is, or why that is not known. Pure functions and the file's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from magicore.datasets.problems import problem_row
from magicore.errors import InputError
from magicore.store.json_lines import JsonLinesWriter, json_type
from magicore.store.solutions import GivenSolution, read_solutions
from magicore.types import Problem
from reward_models.types import Solution

LabelSource = Literal["model", "gold", "arithmetic"]
LABEL_SOURCES: Final[tuple[LabelSource, ...]] = get_args(LabelSource)

UnlabelledCode = Literal[
    "budget", "cut", "failed", "no_gold", "thinking", "empty_step", "no_equation", "no_value", "no_worked_solution"
]
"""Why a step has no label: the budget was used up; all completions were cut at the token limit, or failed; the problem
has no gold answer; the step is thinking, or blank; it writes out no equation, or derives no value; there is no worked
solution to compare with."""


@dataclass(frozen=True, kw_only=True)
class Trials:
    """What came of completing a prefix.

    Attributes:
        reached: Completions that ended and gave an answer equivalent to the gold.
        finished: Completions that ended by themselves, or stated an answer before they were cut. One that ended
            without a readable answer is among them: it reached nothing.
        cut: Completions cut at the token limit before any answer: they say nothing.
        failed: Samples that could not be had.
    """

    reached: int = 0
    finished: int = 0
    cut: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.reached <= self.finished or min(self.cut, self.failed) < 0:
            raise ValueError(f"{self.reached} of {self.finished} completions cannot have reached the answer")


@dataclass(frozen=True, kw_only=True)
class Unlabelled:
    """Stands where a label would be, and says why there is none."""

    code: UnlabelledCode
    reason: str


@dataclass(frozen=True, kw_only=True)
class StepLabel:
    """The label of one step, from 0 (wrong) to 1 (right); missing exactly when ``unlabelled`` is set."""

    value: float | None
    unlabelled: Unlabelled | None = None
    trials: Trials | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.unlabelled is None):
            raise ValueError("a StepLabel has a value or an `unlabelled` reason, never both and never neither")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a step label lies in [0, 1], got {self.value!r}")


@dataclass(frozen=True, kw_only=True)
class LabelledSolution:
    """A solution, one label a step, and whether its own final answer is right (``None``: no gold, or no answer)."""

    problem: Problem
    solution: Solution
    labels: tuple[StepLabel, ...]
    outcome: bool | None
    source: LabelSource
    chain: str | None = None

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.solution.steps):
            raise ValueError(f"{len(self.labels)} labels for {len(self.solution.steps)} steps: one a step is required")


def without_label(code: UnlabelledCode, reason: str, trials: Trials | None = None) -> StepLabel:
    """A step without a label, and why."""
    return StepLabel(value=None, unlabelled=Unlabelled(code=code, reason=reason), trials=trials)


def label_of_trials(trials: Trials, *, soft: bool, over_budget: bool = False) -> StepLabel:
    """Math-Shepherd's estimates (Wang et al., 2024, arXiv 2312.08935, equations 3 and 4).

    Hard: 1 if any completion reached the gold answer, else 0. Soft: the share of completions that did. Departure from
    the paper: completions that were cut or failed are counted out and not taken for wrong; where none is left, the
    step has no label.
    """
    if trials.finished == 0:
        if over_budget:
            return without_label("budget", "the budget was used up before this step", trials)
        if trials.cut:
            return without_label("cut", f"all {trials.cut} completions were cut before an answer", trials)
        return without_label("failed", f"all {trials.failed} completions failed", trials)
    value = trials.reached / trials.finished if soft else float(trials.reached > 0)
    return StepLabel(value=value, trials=trials)


def label_row(labelled: LabelledSolution) -> dict[str, Any]:
    """An object of labels.jsonl, a solutions file that ``train``, ``refine`` and ``evaluate-reward-model`` read.

    ``{id, question, answer, kind, options, solution, thinking, stop, steps: [text], step_labels: [0 to 1 | null],
    unlabelled: [{code, reason} | null], trials: [{reached, finished, cut, failed} | null], outcome: true|false|null,
    source, chain}``: the lists have one entry a step of the solution; ``id`` is the problem's, ``chain`` the chain's.
    """
    problem = {key: value for key, value in problem_row(labelled.problem).items() if key != "id"}
    return {
        "id": labelled.problem.id,
        **problem,
        "solution": labelled.solution.text,
        "thinking": labelled.solution.thinking,
        "stop": labelled.solution.stop,
        "steps": [step.text for step in labelled.solution.steps if step.part == "text"],
        "step_labels": [
            label.value
            for step, label in zip(labelled.solution.steps, labelled.labels, strict=True)
            if step.part == "text"
        ],
        "unlabelled": [
            None if label.unlabelled is None else {"code": label.unlabelled.code, "reason": label.unlabelled.reason}
            for step, label in zip(labelled.solution.steps, labelled.labels, strict=True)
            if step.part == "text"
        ],
        "trials": [
            None
            if label.trials is None
            else {
                "reached": label.trials.reached,
                "finished": label.trials.finished,
                "cut": label.trials.cut,
                "failed": label.trials.failed,
            }
            for step, label in zip(labelled.solution.steps, labelled.labels, strict=True)
            if step.part == "text"
        ],
        "outcome": labelled.outcome,
        "source": labelled.source,
        "chain": labelled.chain,
    }


def write_labels(path: Path, labelled: Iterable[LabelledSolution]) -> int:
    """Write labels.jsonl, whole or not at all. Returns how many solutions.

    Raises:
        StoreError: It cannot be written.
    """
    writer = JsonLinesWriter(path)
    count = 0
    try:
        for one in labelled:
            writer.add(label_row(one))
            count += 1
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return count


@dataclass(frozen=True, kw_only=True)
class LabelledRow:
    """A labelled solution as a training file has it: labels in [0, 1] or ``None``, and the outcome where known."""

    given: GivenSolution
    labels: tuple[float | None, ...]
    outcome: bool | None


def read_labels(path: Path | str) -> list[LabelledRow]:
    """Read solutions with step labels: labels.jsonl, or any file with ``question``, ``steps``, ``step_labels``.

    Raises:
        InputError: The file or a line of it cannot be read, or a line has no labels and no outcome.
    """
    from magicore.datasets.readers import file_records

    rows = []
    records = list(file_records(Path(path)))
    for given, record in zip(read_solutions(path), records, strict=True):
        outcome = record.row.get("outcome")
        if outcome is not None and not isinstance(outcome, bool):
            raise InputError(f"{record.where}: `outcome` is true, false or null, this is {json_type(outcome)}")
        if given.step_labels is None and outcome is None:
            raise InputError(f"{record.where}: no `step_labels` and no `outcome`; magicore label-steps writes both")
        rows.append(LabelledRow(given=given, labels=given.step_labels or (), outcome=outcome))
    return rows


def label_summary(labelled: Sequence[LabelledSolution]) -> Mapping[str, Any]:
    """Counts for people: solutions, steps, labels above one half, and steps without a label by reason."""
    labels = [label for one in labelled for label in one.labels]
    missing = Counter(label.unlabelled.code for label in labels if label.unlabelled is not None)
    trials = [label.trials for label in labels if label.trials is not None]
    return {
        "solutions": len(labelled),
        "outcomes": {
            "right": sum(one.outcome is True for one in labelled),
            "wrong": sum(one.outcome is False for one in labelled),
            "unknown": sum(one.outcome is None for one in labelled),
        },
        "steps": len(labels),
        "labelled": len(labels) - missing.total(),
        "above_half": sum(label.value is not None and label.value > 0.5 for label in labels),
        "unlabelled": dict(sorted(missing.items())),
        "completions": sum(t.finished + t.cut for t in trials),
        "cut": sum(t.cut for t in trials),
        "failed": sum(t.failed for t in trials),
    }
