"""What policies, reviewers and refiners are trained on: conversations in the toolkit's own prompts, the reply last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from magicore.datasets.load import source_records
from magicore.datasets.options import with_options
from magicore.datasets.problems import FIELDS, read_problem
from magicore.errors import InputError
from magicore.llms.base import Message
from magicore.prompts import PromptSet
from magicore.prompts.shown import shown_solution
from magicore.store.json_lines import Record
from magicore.training.examples import Conversation
from magicore.training.labels import LabelledRow
from magicore.types import Problem
from reward_models.equations import check_equations
from reward_models.steps import with_steps
from reward_models.types import Step

_ROLES = ("system", "user", "assistant")
_WRONG_BELOW = 0.5
_ALL_RIGHT = "All steps are right."


def read_conversations(source: str, prompts: PromptSet) -> Iterator[tuple[str, Conversation]]:
    """``(problem, messages)`` of a data source, a record each.

    A record has ``messages`` (chat messages, the assistant's last), or is a problem with a worked ``solution`` or
    ``steps``, which becomes the solver's reply to the prompt set's solver prompt.

    Raises:
        InputError: A record has neither.
    """
    for number, record in enumerate(source_records(source)):
        name = str(record.row.get("problem", record.row.get("id", number)))
        if "messages" in record.row:
            yield name, _messages(record)
        else:
            row = {key: value for key, value in record.row.items() if key in FIELDS}
            problem = read_problem(row, record.where, name)
            yield name, solver_conversation(problem, _worked(record), prompts)


def solver_conversation(problem: Problem, worked: str, prompts: PromptSet) -> Conversation:
    """The question as the solver is asked it, and the worked solution."""
    asked = prompts.messages("solver", problem.kind, question=with_options(problem.question, problem.options))
    return (*asked, Message(role="assistant", content=worked))


def review_conversation(
    problem: Problem, steps: Sequence[Step], scores: Sequence[float | None] | None, feedback: str, prompts: PromptSet
) -> Conversation:
    """A solution as the reviewer is shown it, with step scores or without, and the feedback."""
    template = "reviewer" if scores is not None else "reviewer-unscored"
    shown = shown_solution(steps, scores)
    asked = prompts.messages(
        template, problem.kind, question=with_options(problem.question, problem.options), solution=shown
    )
    return (*asked, Message(role="assistant", content=feedback))


def refine_conversation(
    problem: Problem,
    steps: Sequence[Step],
    scores: Sequence[float | None] | None,
    feedback: str,
    worked: str,
    prompts: PromptSet,
) -> Conversation:
    """A solution and the feedback on it as the refiner is shown them, and the worked solution."""
    template = "refiner" if scores is not None else "refiner-unscored"
    values = {
        "question": with_options(problem.question, problem.options),
        "solution": shown_solution(steps, scores),
        "feedback": feedback,
    }
    asked = prompts.messages(template, problem.kind, **values)
    return (*asked, Message(role="assistant", content=worked))


def feedback_from_labels(steps: Sequence[Step], labels: Sequence[float | None]) -> str:
    """What a reviewer should say, from the steps' labels: which step is wrong first, what is wrong with it, and what
    hangs on it. It states no right value, as the reviewer's prompt asks.

    A step is wrong where its label is below one half. What is wrong is read from its equations: one that does not hold
    is named, else the step is not what the question asks for.
    """
    wrong = next((at for at, label in enumerate(labels) if label is not None and label < _WRONG_BELOW), None)
    if wrong is None:
        return _ALL_RIGHT
    broken = next((one for one in check_equations(steps[wrong].text) if not one.holds), None)
    number = wrong + 1
    why = (
        f"{broken.written.partition('=')[0].strip()} is not {broken.right}; work it out again."
        if broken is not None
        else "it does not do what the question says at this point; read the question again."
    )
    parts = [f"Step {number} is wrong: {why}"]
    if number < len(steps):
        later = (
            f"Step {number + 1} changes" if number + 1 == len(steps) else f"Steps {number + 1} to {len(steps)} change"
        )
        parts.append(f"{later} with it.")
    if wrong:
        parts.append("Step 1 is right." if wrong == 1 else f"Steps 1 to {wrong} are right.")
    return " ".join(parts)


def refining_conversations(
    rows: Iterable[LabelledRow], worked: Mapping[str, str], prompts: PromptSet, *, seed: int = 0
) -> Iterator[tuple[str, Conversation]]:
    """A review and a refinement of every labelled solution that has a worked one.

    The step scores shown are the labels, blurred (:func:`blurred_scores`). One solution in four is shown without.

    Raises:
        InputError: A solution's labels are not as many as its steps.
    """
    draw = Random(f"refining:{seed}")
    for row in rows:
        solution, problem = with_steps(row.given.solution), row.given.problem
        steps = [step for step in solution.steps if step.part == "text"]
        if len(row.labels) != len(steps):
            raise InputError(f"solution {solution.id!r}: {len(row.labels)} step labels for {len(steps)} steps")
        if problem.id not in worked or all(label is None for label in row.labels):
            continue
        scores = None if draw.random() < 0.25 else blurred_scores(row.labels, draw)
        feedback = feedback_from_labels(steps, row.labels)
        yield problem.id, review_conversation(problem, steps, scores, feedback, prompts)
        yield problem.id, refine_conversation(problem, steps, scores, feedback, worked[problem.id], prompts)


def blurred_scores(labels: Sequence[float | None], draw: Random) -> list[float | None]:
    """Labels as a process reward model might give them: each moves towards the other side by up to 0.4, and one in ten
    crosses over.
    """
    return [_blurred(label, draw) for label in labels]


def _blurred(label: float | None, draw: Random) -> float | None:
    if label is None:
        return None
    towards = 0.4 * draw.random() if draw.random() < 0.9 else 0.5 + 0.5 * draw.random()
    return label + towards * (1 - 2 * label)


def _messages(record: Record) -> Conversation:
    given: Any = record.row["messages"]
    if not isinstance(given, list) or len(given) < 2 or not all(isinstance(one, dict) for one in given):
        raise InputError(f"{record.where}: `messages` is a list of at least two objects with `role` and `content`")
    turns = []
    for one in given:
        if one.get("role") not in _ROLES or not isinstance(one.get("content"), str):
            raise InputError(f"{record.where}: a message has a `role` of {', '.join(_ROLES)} and a text as `content`")
        turns.append(Message(role=one["role"], content=one["content"]))
    if turns[-1]["role"] != "assistant" or any(a["role"] == b["role"] for a, b in pairwise(turns)):
        raise InputError(f"{record.where}: roles take turns in `messages`, and the last is the assistant's")
    return tuple(turns)


def _worked(record: Record) -> str:
    steps = record.row.get("steps")
    text = record.row.get("solution") or ("\n".join(map(str, steps)) if isinstance(steps, list) else None)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{record.where}: neither `messages` nor a worked `solution` to train on")
    return text
