"""A local engine that is loaded in its turns only, so that models share a device that cannot hold them at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from reward_models.errors import RewardModelError
from reward_models.families.reading import Engine, Reading
from reward_models.local.engine import LocalEngine, ReplicatedEngine
from reward_models.local.parking import can_park, release
from reward_models.turns import Turns


@dataclass(frozen=True, kw_only=True)
class Part:
    """A model on one device, yet to be loaded.

    Attributes:
        fingerprint: The engine's.
        device: Where it is loaded; ``None`` where the weights cannot be moved (spread over devices, or quantised).
        load: Reads the backbone from disk, onto the device.
        build: Makes the engine of a backbone that is on the device.
    """

    fingerprint: str
    device: torch.device | None
    load: Callable[[], Any]
    build: Callable[[Any], LocalEngine]


class ResidentEngine:
    """An engine that waits for the floor, loads, computes, and makes room when another model's turn comes.

    Between turns its weights wait in the processor's memory, or on disk where that is short or the same.
    """

    def __init__(self, parts: Sequence[Part], turns: Turns) -> None:
        """One part a device, all of the same weights."""
        self.fingerprint = parts[0].fingerprint
        self._parts = parts
        self._parked: list[Any] = [None] * len(parts)
        self._budgets: list[int | None] = [None] * len(parts)
        self._engines: list[LocalEngine] = []
        self._engine: Engine | None = None
        self._seat = turns.seat(enter=self._enter, leave=self._leave)
        self._lock = threading.Lock()

    @property
    def tokens_computed(self) -> int:
        """Tokens computed in the turn under way."""
        return sum(engine.tokens_computed for engine in self._engines)

    def raw_scores(self, readings: Sequence[Reading]) -> list[tuple[float, ...]]:
        """See :class:`~reward_models.families.reading.Engine`.

        Raises:
            RewardModelError: It cannot be loaded, or the run has ended.
        """
        if not readings:
            return []
        with self._lock:
            if not self._seat.take() or self._engine is None:
                raise RewardModelError("scores were asked for after the end of the run")
            try:
                return self._engine.raw_scores(readings)
            finally:
                self._seat.rest()

    def _enter(self) -> None:
        try:
            for index, part in enumerate(self._parts):
                backbone, self._parked[index] = self._parked[index], None
                engine = part.build(part.load() if backbone is None else backbone.to(part.device))
                engine.budget = self._budgets[index] or engine.budget
                self._engines.append(engine)
        except BaseException:
            self._engines.clear()
            raise
        self._engine = self._engines[0] if len(self._engines) == 1 else ReplicatedEngine(self._engines)

    def _leave(self) -> None:
        devices = {engine.device for engine in self._engines}
        for index, (part, engine) in enumerate(zip(self._parts, self._engines, strict=True)):
            self._budgets[index] = engine.budget  # what was learnt of the memory
            size = sum(weights.nbytes for weights in engine.backbone.parameters())
            if part.device is not None and can_park(size, part.device):
                self._parked[index] = engine.backbone
        self._engine = None
        self._engines.clear()
        del engine
        for backbone in self._parked:
            if backbone is not None:
                backbone.to("cpu")
        for device in devices:
            release(device)
