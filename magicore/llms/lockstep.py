"""A model that gives every call the same latency, without a clock: for counting what methods wait for."""

from __future__ import annotations

import asyncio

from magicore.llms.base import Generation, Request
from magicore.llms.scripted import Script, ScriptedModel

QUIET = 20
"""Turns of the event loop without a new call after which the calls that wait are answered together."""


class LockstepModel:
    """A :class:`~magicore.llms.scripted.ScriptedModel` whose calls take one tick each.

    Calls made at the same time are answered at the same tick, so ``ticks`` is the length of the critical path, in
    calls, of what ran on it: what a method waits for on a server that serves any number of calls at once. Run one
    problem on it to have that problem's path.

    Attributes:
        calls: Requests answered.
        ticks: Times that the waiting calls were answered.
        by_role: Requests by role.
    """

    def __init__(self, script: Script, *, name: str = "lockstep") -> None:
        self._model = ScriptedModel(script, name=name, logprobs=True)
        self.name = name
        self.fingerprint = self._model.fingerprint
        self.calls = 0
        self.ticks = 0
        self.by_role: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._ticking: asyncio.Task[None] | None = None

    async def generate(self, request: Request) -> Generation:
        """What the script says, at the end of the tick."""
        self.calls += 1
        self.by_role[request.key.role] = self.by_role.get(request.key.role, 0) + 1
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self._tick())
        await turn
        return await self._model.generate(request)

    async def aclose(self) -> None:
        """Nothing to close."""

    async def _tick(self) -> None:
        """Wait until no more calls come, and answer those that wait."""
        quiet, seen = 0, 0
        while quiet < QUIET:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == seen else 0
            seen = len(self._waiting)
        waiting, self._waiting = self._waiting, []
        self.ticks += 1
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
