"""Tasks dealt to workers: one that dies takes nothing with it, its task goes to another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import magicore
from magicore.distributed.failures import Trouble
from magicore.distributed.folders import ShardFolders, packed, unpacked
from magicore.distributed.worker import Done, Event, Greeting, Task
from magicore.errors import InputError, MagicoreError
from magicore.runtime.budget import Halt

MOST_DEATHS = 3
"""Workers that may die over one task, or one after the other before they have begun; then the run ends."""
POLL_S = 0.2
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Worker:
    """A worker that has started."""

    handle: Any
    shares_disk: bool


class Pool:
    """So many workers, started as they are needed.

    Args:
        start: Asks Ray for a worker.
        stop: Ends one.
        size: How many there are at once.
        folders: The shards' directories.
        halt: Ends the work early.
        tell: Is told what goes on.
        deaths: The exceptions by which Ray says that a worker is no more.
    """

    def __init__(
        self,
        start: Callable[[], Any],
        stop: Callable[[Any], None],
        size: int,
        *,
        folders: ShardFolders,
        halt: Halt,
        tell: Callable[[Event], None],
        deaths: tuple[type[Exception], ...],
    ) -> None:
        self._start = start
        self._stop = stop
        self._folders = folders
        self._halt = halt
        self._tell = tell
        self._deaths = deaths
        self._idle: list[_Worker] = []
        self._size = size
        self._started: list[Any] = []

    async def work(self, tasks: Sequence[Task]) -> list[Done | None]:
        """What became of each task, in order; ``None`` of one that was not begun before the run was ended early.

        Raises:
            MagicoreError: a task failed, or took too many workers with it.
        """
        waiting: asyncio.Queue[int] = asyncio.Queue()
        for number in range(len(tasks)):
            waiting.put_nowait(number)
        found: list[Done | None] = [None] * len(tasks)
        deaths = [0] * len(tasks)
        running: set[int] = set()

        async def attempt(number: int, worker: _Worker) -> bool:
            """Whether the worker has lived through the task."""
            shard = tasks[number].shard
            running.add(number)
            try:
                found[number] = await self._run(worker, tasks[number])
            except self._deaths as error:
                self._stop(worker.handle)  # one that cannot be reached might still be writing
                deaths[number] += 1
                if deaths[number] == MOST_DEATHS:
                    raise MagicoreError(f"{MOST_DEATHS} workers died over shard {shard}; {_line(error)}") from None
                log.warning("a worker died over shard %s, which is taken again: %s", shard, _line(error))
                self._folders.abandoned(shard)
                waiting.put_nowait(number)
                return False
            finally:
                running.discard(number)
            return True

        async def lane() -> None:
            worker: _Worker | None = None
            try:
                while True:
                    worker = worker or await self._worker()
                    number = await waiting.get()
                    if not self._halt and not await attempt(number, worker):
                        worker = None
            finally:
                if worker is not None:
                    self._idle.append(worker)

        lanes = [asyncio.ensure_future(lane()) for _ in range(min(self._size, len(tasks)))]
        try:
            while any(done is None for done in found) and not (self._halt and not running):
                ended, _ = await asyncio.wait(lanes, timeout=POLL_S, return_when=asyncio.FIRST_EXCEPTION)
                for one in ended:
                    one.result()
        finally:
            for one in lanes:
                one.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
        return found

    def close(self) -> None:
        """End all workers."""
        for worker in self._started:
            self._stop(worker)

    async def _worker(self) -> _Worker:
        """A worker that is free, or a new one, once it has started."""
        if self._idle:
            return self._idle.pop()
        deaths = 0
        while True:
            handle = self._start()
            self._started.append(handle)
            try:
                greeting: Greeting = await handle.greet.remote()
            except self._deaths as error:
                deaths += 1
                if deaths == MOST_DEATHS:
                    raise MagicoreError(f"workers die before they have begun; {_line(error)}") from None
                continue
            if greeting.version != magicore.__version__:
                raise InputError(
                    f"a worker has magicore {greeting.version}, this machine {magicore.__version__}; install one "
                    "version on all nodes"
                )
            return _Worker(handle=handle, shares_disk=greeting.shares_disk)

    async def _run(self, worker: _Worker, task: Task) -> Done:
        files = None if worker.shares_disk else await asyncio.to_thread(packed, task.folder)
        working = asyncio.ensure_future(_awaited(worker.handle.run.remote(task, files)))
        try:
            ended = False
            while not ended:
                await asyncio.wait([working], timeout=POLL_S)
                ended = working.done()
                for event in await worker.handle.exchange.remote(bool(self._halt)):
                    self._tell(event)
            done = working.result()
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError, *self._deaths):
                await working
        if isinstance(done, Trouble):
            raise done.error()
        if done.files is not None:
            await asyncio.to_thread(unpacked, task.folder, done.files)
        return done


async def _awaited(reference: Awaitable[Done | Trouble]) -> Done | Trouble:
    return await reference


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
