"""One contract for every reward model that runs without a checkpoint. A new one joins by adding a row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_models import load_outcome_model, load_process_model, outcome_models, process_models
from reward_models.base import Message, Reply
from reward_models.registry import Registry
from reward_models.steps import with_steps
from reward_models.testing import SOLUTIONS, check_outcome_model, check_process_model
from reward_models.types import OutcomeScore, Solution, Step, StepScore, StepScores


async def agreeable(messages: Sequence[Message], **options: Any) -> list[Reply]:
    """A language model that likes long solutions, and answers in the form it is asked for."""
    asked = messages[1]["content"]
    asked.encode("utf-8")
    numbers = re.findall(r'"(\d+)": N', asked)
    if numbers:
        return [Reply(text=json.dumps({"scores": {number: int(number) % 11 for number in numbers}}))]
    return [Reply(text=f"yes {50 + len(asked) % 50}")]


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], str]:
    """A file of known scores for some of the contract's solutions."""

    def write(kind: str) -> str:
        known = {name: with_steps(solution) for name, solution in SOLUTIONS.items() if name in ("plain", "another")}
        scores = {
            solution.text: 0.5 if kind == "outcome" else [0.5] * len(solution.steps) for solution in known.values()
        }
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(scores))
        return f"scripted:{path}"

    return write


# name, options
OUTCOME_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("constant", {}),
    ("deepconf", {}),
    ("deepconf:tail", {"window": 2}),
    ("judge", {"generate": agreeable}),
    ("judge:some:model", {"generate": agreeable}),
    ("likelihood", {}),
    ("random:3", {}),
    ("scripted", {}),
    ("self-certainty", {}),
    ("self-certainty", {"vocabulary": 32_000}),
]
PROCESS_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("arithmetic", {}),
    ("constant:0.25", {}),
    ("judge", {"generate": agreeable}),
    ("judge", {"generate": agreeable, "reading": "verdicts", "thinking": "score"}),
    ("random", {"seed": 3}),
    ("scripted", {}),
]


def identify(row: object) -> str:
    return row if isinstance(row, str) else ",".join(sorted(row)) if isinstance(row, dict) else ""


@pytest.mark.parametrize(("name", "options"), OUTCOME_ROWS, ids=identify)
def test_outcome_models(name: str, options: dict[str, Any], table: Callable[[str], str]) -> None:
    check_outcome_model(load_outcome_model(table("outcome") if name == "scripted" else name, **options))


@pytest.mark.parametrize(("name", "options"), PROCESS_ROWS, ids=identify)
def test_process_models(name: str, options: dict[str, Any], table: Callable[[str], str]) -> None:
    check_process_model(load_process_model(table("process") if name == "scripted" else name, **options))


@pytest.mark.parametrize(
    ("registry", "rows"), [(outcome_models, OUTCOME_ROWS), (process_models, PROCESS_ROWS)], ids=["outcome", "process"]
)
def test_every_model_without_a_checkpoint_has_a_row(registry: Registry[Any], rows: list[tuple[str, Any]]) -> None:
    elsewhere = ("reward_models.families.", "reward_models.remote.")  # these need a checkpoint or a server
    needs_nothing = {name for name, builtin in registry._table.items() if not builtin.target.startswith(elsewhere)}
    assert needs_nothing == {name.partition(":")[0] for name, _ in rows}


# The checks themselves notice what they are for


class Base:
    name = "broken"

    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        return [self.one(with_steps(solution)) for solution in solutions]

    def one(self, solution: Solution) -> Any:
        return OutcomeScore(value=0.5)


class Short(Base):
    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        return super().score(solutions)[:1]


class Shuffled(Base):
    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        return [OutcomeScore(value=len(solution.text) % 97 / 97) for solution in solutions][::-1]


class Dependent(Base):
    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        return [OutcomeScore(value=1 / (1 + len(solutions))) for _ in solutions]


class Infinite(Base):
    def one(self, solution: Solution) -> Any:
        return OutcomeScore(value=0.5, raw=math.inf)


class Fragile(Base):
    def one(self, solution: Solution) -> Any:
        solution.text.encode("utf-8")
        return OutcomeScore(value=0.5)


class Steps(Base):
    def one(self, solution: Solution) -> Any:
        return StepScores(steps=solution.steps, scores=tuple(StepScore(value=0.5) for _ in solution.steps))


class Merged(Base):
    def one(self, solution: Solution) -> Any:
        whole = Step(text=solution.text, start=0, end=len(solution.text))
        return StepScores(steps=(whole,), scores=(StepScore(value=0.5),))


@pytest.mark.parametrize(
    ("model", "check", "error", "says"),
    [
        (Short(), check_outcome_model, AssertionError, "1 scores for a batch of"),
        (Shuffled(), check_outcome_model, AssertionError, "in a batch"),
        (Dependent(), check_outcome_model, AssertionError, "in a batch"),
        (Infinite(), check_outcome_model, AssertionError, "the raw score is inf"),
        (Fragile(), check_outcome_model, UnicodeEncodeError, "surrogates not allowed"),
        (Steps(), check_outcome_model, AssertionError, "not one OutcomeScore"),
        (Base(), check_process_model, AssertionError, "not one StepScores"),
        (Merged(), check_process_model, AssertionError, "other steps than the solution's"),
        (Steps(), check_process_model, AssertionError, "a blank step has a score"),
        (object(), check_process_model, AssertionError, "no `name`"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Base) else "",
)
def test_a_broken_model_is_noticed(model: Any, check: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check(model)
