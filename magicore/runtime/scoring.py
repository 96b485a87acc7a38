"""Reward models as a run uses them: batched across problems, stored by content, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, cast

from reward_models.base import OutcomeRewardModel, ProcessRewardModel, fingerprint, requirements
from reward_models.batcher import Batcher
from reward_models.cache import ScoreCache
from reward_models.errors import StepCountError
from reward_models.types import OutcomeScore, Solution, Step, StepScore, StepScores, Unscored

ScoreT = TypeVar("ScoreT", OutcomeScore, StepScores)
_KEY_VERSION = 1


class ScoringService(Generic[ScoreT]):
    """One reward model of a run.

    Requests of many problems that wait at the same time are scored in one batch; a model with its own ``ascore`` (one
    that does I/O) is awaited directly. A deterministic one scores each request by
    itself. Every score is stored before it is returned; equal solutions are scored once.
    """

    def __init__(
        self,
        model: OutcomeRewardModel | ProcessRewardModel,
        cache: ScoreCache,
        *,
        kind: Literal["orm", "prm"],
        deterministic: bool = False,
    ) -> None:
        self.model = model
        self._kind = kind
        self.name = model.name
        self.requires = requirements(model)
        self._cache = cache
        self._asynchronous = hasattr(model, "ascore")
        # Rounding depends on what is computed together: alone, a request gives the same bits whatever else waits.
        batcher = Batcher(model, most=1) if deterministic else Batcher(model)
        self._batcher: Any = None if self._asynchronous else batcher

    async def score(self, solutions: Sequence[Solution]) -> list[ScoreT]:
        """One score a solution, in order.

        Raises:
            RewardModelError: the model failed, or gave another number of scores than there are solutions or steps.
        """
        keys = [self._key(solution) for solution in solutions]
        known = {
            key: score_from_json(text, solution)
            for key, text, solution in zip(keys, self._cache.get_many(keys), solutions, strict=True)
            if text is not None
        }
        wanted = {key: solution for key, solution in zip(keys, solutions, strict=True) if key not in known}
        if wanted:
            scores = await self._ask(list(wanted.values()))
            fresh = dict(zip(wanted, scores, strict=True))
            self._cache.put_many({key: score_to_json(score) for key, score in fresh.items() if _is_final(score)})
            known |= fresh
        return [cast(ScoreT, known[key]) for key in keys]

    async def _ask(self, solutions: list[Solution]) -> list[OutcomeScore | StepScores]:
        asked = cast(Any, self.model) if self._asynchronous else self._batcher
        scores: list[OutcomeScore | StepScores] = await asked.ascore(solutions)
        if len(scores) != len(solutions):
            raise StepCountError(f"{len(scores)} scores for {len(solutions)} solutions", model=self.name)
        for solution, score in zip(solutions, scores, strict=True):
            if isinstance(score, StepScores) and solution.steps and score.steps != solution.steps:
                raise StepCountError("scored other steps than it was given", model=self.name, solution=solution.id)
        return scores

    def _key(self, solution: Solution) -> str:
        body = [
            _KEY_VERSION,
            self._kind,
            self.name,
            fingerprint(self.model),
            solution.question,
            solution.text,
            solution.thinking,
            [(step.part, step.start, step.end) for step in solution.steps],
            solution.token_logprobs if "token_logprobs" in self.requires else None,
            solution.top_logprobs if "top_logprobs" in self.requires else None,
        ]
        return hashlib.sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()

    def close(self) -> None:
        """Stop the worker thread."""
        if self._batcher is not None:
            self._batcher.close()


def _is_final(score: OutcomeScore | StepScores) -> bool:
    """A passing failure is not stored, so that a resumed run asks again."""
    entries = score.scores if isinstance(score, StepScores) else (score,)
    return not any(entry.unscored is not None and entry.unscored.code == "failed" for entry in entries)


def score_to_json(score: OutcomeScore | StepScores) -> str:
    """A score as the store keeps it; the steps themselves are known from the solution."""
    if isinstance(score, OutcomeScore):
        body: dict[str, Any] = {"entries": [_entry(score)], "activation": score.activation, "tokens": score.tokens}
    else:
        body = {
            "entries": [_entry(entry) for entry in score.scores],
            "activation": score.activation,
            "aggregation": score.aggregation,
            "tokens": score.tokens,
            "steps": [[step.text, step.start, step.end, step.part] for step in score.steps],
        }
    return json.dumps(body, separators=(",", ":"))


def _entry(score: OutcomeScore | StepScore) -> list[Any]:
    unscored = None if score.unscored is None else [score.unscored.code, score.unscored.reason]
    return [score.value, score.raw, unscored]


def score_from_json(text: str, solution: Solution) -> OutcomeScore | StepScores:
    """The inverse of :func:`score_to_json`."""
    body = json.loads(text)
    entries = [
        (value, raw, None if unscored is None else Unscored(code=unscored[0], reason=unscored[1]))
        for value, raw, unscored in body["entries"]
    ]
    if "aggregation" not in body:
        value, raw, unscored = entries[0]
        return OutcomeScore(
            value=value, raw=raw, activation=body["activation"], unscored=unscored, tokens=body["tokens"]
        )
    steps = solution.steps or tuple(Step(text=t, start=a, end=b, part=part) for t, a, b, part in body["steps"])
    return StepScores(
        steps=steps,
        scores=tuple(StepScore(value=value, raw=raw, unscored=unscored) for value, raw, unscored in entries),
        activation=body["activation"],
        aggregation=body["aggregation"],
        tokens=body["tokens"],
    )
