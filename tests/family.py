"""Run one method on one question with scripted models, and look at what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from magicore.errors import BadReply
from magicore.llms.base import LanguageModel, Request
from magicore.llms.scripted import Reply, ScriptedModel, ScriptedReply
from magicore.methods.base import AnyMethod
from magicore.prompts import load_prompts
from magicore.runtime.run import run_method
from magicore.runtime.runtime import Engine
from magicore.runtime.scoring import ScoringService
from magicore.runtime.stored import StoredModel
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result, Review
from reward_models.types import OutcomeScore, Solution, StepScore, StepScores, Unscored

PROBLEM = Problem(id="q", question="How many?", kind="number", answer="72")
Tell = Callable[[Request], Reply]
Answer = str | ScriptedReply | Tell | Sequence[str] | Exception


def answer(value: object, *steps: str) -> str:
    """A solution in steps that ends on ``value``."""
    texts = [*(steps or ("think",)), f"The final answer is {value}."]
    return "\n".join(f"Step {number}: {text}" for number, text in enumerate(texts, 1))


def verdict(decision: str, value: object = 72, *, suggestions: str = "none", confidence: int = 4) -> str:
    """A review in the form that is asked for."""
    return (
        f"Decision: {decision}\nConfidence: {confidence}\nJustification: so it is\n"
        f"Suggestions: {suggestions}\nAnswer: {value}"
    )


@dataclass
class Script:
    """Answers by role; an answer may be a function of the request, a list by sample index, or an error."""

    replies: Mapping[str, Answer]
    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request, index: int) -> Reply:
        self.asked.append(request)
        reply = self.replies[request.key.role]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str | ScriptedReply):
            return reply
        return reply(request) if callable(reply) else reply[index]

    def of(self, role: str, round: int | None = None) -> list[Request]:
        """The requests of one role, in the order of round, instance, parent and index."""
        found = [one for one in self.asked if one.key.role == role and round in (None, one.key.round)]
        return sorted(found, key=lambda r: (r.key.round, r.key.instance, r.key.parent or "", r.indices))

    def text(self, role: str, round: int, instance: int = 0) -> str:
        """The last message of one call."""
        (found,) = [r for r in self.of(role, round) if r.key.instance == instance]
        return found.messages[-1]["content"]


def refused(text: str = "no") -> BadReply:
    """A failure of one call that no retry mends."""
    return BadReply(text, model="scripted", retryable=False)


def solve(
    method: AnyMethod,
    script: Script,
    *,
    problem: Problem = PROBLEM,
    models: Mapping[str, LanguageModel] | None = None,
    prompts: str = "default",
    orm: Any = None,
    prm: Any = None,
    logprobs: bool = False,
) -> Result:
    """The method's result on one problem. ``models`` are for single roles."""
    store = RunStore()
    named: dict[str, LanguageModel] = {"default": ScriptedModel(script, logprobs=logprobs), **(models or {})}
    engine = Engine(
        models={role: StoredModel(model, store) for role, model in named.items()},
        prompts=load_prompts(prompts),
        orm=None if orm is None else ScoringService(orm, store, kind="orm"),
        prm=None if prm is None else ScoringService(prm, store, kind="prm"),
    )

    async def run() -> Result:
        try:
            return (await run_method(method, [problem], engine)).results[0]
        finally:
            await engine.aclose()

    return asyncio.run(run())


def calls(result: Result) -> dict[str, int]:
    """Requests by role."""
    return {entry.role: entry.usage.calls for entry in result.usage}


def reviews(result: Result) -> list[Review]:
    """Every review of every round."""
    return [review for round in result.rounds for review in round.reviews]


class TableORM:
    """Outcome scores by solution text; texts that are not in the table are unscored."""

    name = "table-orm"

    def __init__(self, table: Mapping[str, float]) -> None:
        self._table = table
        self.seen: list[str] = []

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        self.seen += [solution.text for solution in solutions]
        return [self._one(solution.text) for solution in solutions]

    def _one(self, text: str) -> OutcomeScore:
        if text not in self._table:
            return OutcomeScore(value=None, unscored=Unscored(code="unreadable", reason="not in the table"))
        return OutcomeScore(value=self._table[text], raw=self._table[text])


class TablePRM:
    """Step scores by solution text, one for each step."""

    name = "table-prm"
    aggregation = "product"

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        self._table = table

    def score(self, solutions: Sequence[Solution]) -> list[StepScores]:
        return [
            StepScores(
                steps=solution.steps,
                scores=tuple(StepScore(value=v) for v in self._table[solution.text]),
            )
            for solution in solutions
        ]


def chain_text(*steps: str) -> str:
    return "\n".join(f"Step {i}: {step}" for i, step in enumerate(steps, 1))


# An easy question of five chains, worked by hand: S = 1.72 1.61 .44 1.6819 .6
EASY = [
    chain_text("a", "The final answer is 72."),
    chain_text("b", "The final answer is 72."),
    chain_text("c", "The final answer is 36."),
    chain_text("d", "d2", "The final answer is 72."),
    chain_text("I do not know."),
]
EASY_O = dict(zip(EASY, (0.91, 0.85, 0.30, 0.88, 0.10), strict=True))
EASY_S = dict(zip(EASY, ([0.9, 0.9], [0.8, 0.95], [0.7, 0.2], [0.99, 0.9, 0.9], [0.5]), strict=True))
# A hard one.
HARD = [chain_text(f"h{i}", f"The final answer is {a}.") for i, a in enumerate((5, 7, 9, 11, 5))]
HARD_O = dict(zip(HARD, (0.30, 0.28, 0.26, 0.22, 0.25), strict=True))
HARD_S = dict(zip(HARD, ([0.5, 0.4], [0.6, 0.5], [0.4, 0.7], [0.3, 0.6], [0.5, 0.5]), strict=True))

CALIBRATION = {
    "mu": 1.0,
    "sigma": 0.4,
    "n": 10,
    "population": "batch",
    "orm": "o",
    "prm": "p",
    "aggregation": "product",
}
