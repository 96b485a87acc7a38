"""Reward models in actors: each is loaded once a GPU, and the workers of all nodes ask it together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from magicore._sync import run_sync
from magicore.config import RunConfig
from magicore.distributed.failures import Trouble, troubled
from magicore.runtime.open import open_reward_model
from reward_models.base import RewardModel, fingerprint, requirements
from reward_models.batcher import Batcher
from reward_models.names import parse_model_name
from reward_models.registry import outcome_models, process_models
from reward_models.types import OutcomeScore, Solution, StepScores

Kind = Literal["orm", "prm"]
KINDS: tuple[Kind, Kind] = ("orm", "prm")


def is_hosted(kind: Kind, config: RunConfig, given: RewardModel | None) -> bool:
    """Whether a run's reward model gets actors: one that is loaded on a device, or an object without I/O of its own.

    Rules, confidences, judges and served models are opened by each worker: they load nothing.
    """
    if given is not None:
        return not hasattr(given, "ascore")
    name = config.orm if kind == "orm" else config.prm
    if name is None:
        return False
    table = config.reward_models.get(name, {})
    full = str(table.get("name", name))
    known = (outcome_models if kind == "orm" else process_models).options(full)
    served = bool(table.get("urls") or parse_model_name(full).urls)
    return not served and known is not None and "device" in known and "generate" not in known


@dataclass(frozen=True, kw_only=True)
class Described:
    """What a run has to know of a reward model before it scores anything."""

    name: str
    fingerprint: str
    requires: frozenset[Any]


class RewardActor:
    """A reward model by itself in a process that Ray places; it is loaded when it is first asked.

    Scoring is a pure function, so that Ray may start a dead actor anew and ask again.
    """

    def __init__(self, kind: Kind, config: RunConfig, given: RewardModel | None) -> None:
        self._kind = kind
        self._config = config
        self._given = given
        self._batcher: Batcher[Any] | None = None
        self._loading = asyncio.Lock()

    async def describe(self) -> Described | Trouble:
        """Load the model, and say what it is."""
        try:
            model = (await self._loaded()).model
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker that waits is told
            return troubled(error)
        described: Any = model
        return Described(
            name=described.name, fingerprint=fingerprint(described), requires=frozenset(requirements(described))
        )

    async def score(self, solutions: list[Solution]) -> list[OutcomeScore] | list[StepScores] | Trouble:
        """One score a solution, in order; what many workers wait for is scored together."""
        try:
            return await (await self._loaded()).ascore(solutions)
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker that waits is told
            return troubled(error)

    async def _loaded(self) -> Batcher[Any]:
        async with self._loading:
            if self._batcher is None:
                model: Any = self._given or await asyncio.to_thread(self._open)
                self._batcher = Batcher(model, most=1) if self._config.deterministic else Batcher(model)
            return self._batcher

    def _open(self) -> Any:
        name = self._config.orm if self._kind == "orm" else self._config.prm
        assert name is not None
        return open_reward_model(self._kind, name, self._config)


class HostedRewardModel:
    """A reward model that lives in actors, as a worker sees it: the least busy one is asked."""

    def __init__(self, described: Described, actors: Sequence[Any]) -> None:
        self.name = described.name
        self.fingerprint = described.fingerprint
        self.requires = described.requires
        self._actors = list(actors)
        self._busy = [0] * len(self._actors)

    async def ascore(self, solutions: Sequence[Solution]) -> list[Any]:
        """One score a solution, in order.

        Raises:
            RewardModelError: the model failed.
        """
        chosen = min(range(len(self._actors)), key=self._busy.__getitem__)
        self._busy[chosen] += len(solutions)
        try:
            found: list[Any] | Trouble = await self._actors[chosen].score.remote(list(solutions))
        finally:
            self._busy[chosen] -= len(solutions)
        if isinstance(found, Trouble):
            raise found.error()
        return found

    def score(self, solutions: Sequence[Solution]) -> list[Any]:
        """As :meth:`ascore`."""
        return run_sync(self.ascore(solutions))
