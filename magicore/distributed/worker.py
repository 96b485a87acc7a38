"""A worker: takes one stage of one shard after another, as ``magicore run --shard --stage`` does.

It is told to end early, and tells what goes on, while it works: :meth:`ShardWorker.exchange` is called beside
:meth:`ShardWorker.run`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import magicore
from difficulty import RewardStats
from magicore._sync import run_sync
from magicore.config import RunConfig
from magicore.datasets.shards import Shard
from magicore.distributed.failures import Trouble, troubled
from magicore.distributed.folders import packed, seen, unpacked
from magicore.distributed.scoring import Described, HostedRewardModel
from magicore.llms.calls import Call
from magicore.methods.base import AnyMethod
from magicore.runtime.batch import Batch, done_before
from magicore.runtime.budget import Halt
from magicore.runtime.directory import open_directory
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import open_engine
from magicore.runtime.source import ProblemSource, Survey
from magicore.runtime.stages import Stage
from magicore.types import Problem, Result

Event = tuple[str, tuple[Any, ...]]
"""A method of :class:`~magicore.runtime.observer.RunObserver` and its arguments."""


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """A reward model's actors."""

    described: Described
    actors: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What all workers of a run are given.

    Attributes:
        method: The method.
        objects: A language model or reward models that were given as objects and that each worker has to itself.
        hosted: Reward models that have actors, by kind.
        mark, token: By which a worker knows whether it sees the run's disk (:func:`magicore.distributed.folders.seen`).
        problems, total: The problems' fingerprint, and how many there are in all shards.
        force: Whether a shard's directory may be taken over from a run with other settings.
    """

    method: AnyMethod
    objects: Mapping[str, Any] = field(default_factory=dict)
    hosted: Mapping[str, Hosted] = field(default_factory=dict)
    mark: Path
    token: str
    problems: str
    total: int
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One stage of one shard.

    Attributes:
        shard, stage: Which.
        problems: The shard's problems.
        config: The shard's settings, as its directory notes them.
        allowed: The same with this shard's share of the run's budget.
        given: Statistics to finish with; ``None``: those of the method's own stage, or none.
        folder: The shard's directory, on the disk of the run.
    """

    shard: Shard
    stage: Stage
    problems: Sequence[Problem]
    config: RunConfig
    allowed: RunConfig
    given: RewardStats | None
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of a task.

    Attributes:
        interrupted: Whether it was ended early.
        files: The shard's directory as it is now, where the worker does not see the run's disk.
    """

    interrupted: bool = False
    files: Mapping[str, bytes] | None = None


@dataclass(frozen=True, kw_only=True)
class Greeting:
    """What a worker says when it has started."""

    version: str
    shares_disk: bool


class Relay(RunObserver):
    """Keeps what goes on until it is fetched."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def calling(self, model: str, samples: int) -> None:
        self._events.append(("calling", (model, samples)))

    def called(self, call: Call) -> None:
        self._events.append(("called", (call,)))

    def prepared(self, problem: Problem) -> None:
        self._events.append(("prepared", (problem,)))

    def answered(self, result: Result) -> None:
        self._events.append(("answered", (result,)))

    def fetched(self) -> list[Event]:
        """What has gone on since the last time."""
        found: list[Event] = []
        with suppress(IndexError):
            while True:
                found.append(self._events.popleft())
        return found


class ShardWorker:
    """Works on shards in a process of its own; a Ray actor's class, which itself knows nothing of Ray."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._halt = Halt()
        self._relay = Relay()
        self._shares_disk = seen(job.mark, job.token)

    def greet(self) -> Greeting:
        """Say that it is there, and of which version."""
        return Greeting(version=magicore.__version__, shares_disk=self._shares_disk)

    def exchange(self, halt: bool) -> list[Event]:
        """Tell what went on since the last time; with ``halt``, end early from now on."""
        if halt:
            self._halt.set()
        return self._relay.fetched()

    def run(self, task: Task, files: Mapping[str, bytes] | None = None) -> Done | Trouble:
        """Do a task. Without the run's disk ``files`` is the shard's directory, and comes back as it is afterwards."""
        try:
            if self._shares_disk:
                return Done(interrupted=self._work(task, task.folder))
            folder = Path(tempfile.mkdtemp(prefix="magicore-shard-"))
            try:
                unpacked(folder, files or {})
                interrupted = self._work(task, folder)
                return Done(interrupted=interrupted, files=packed(folder))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits for the shard is told
            return troubled(error)

    def _work(self, task: Task, folder: Path) -> bool:
        # No coroutine is a method here: Ray would put such an actor's calls one after the other on one loop.
        return run_sync(_worked(self._job, task, folder, self._halt, self._relay))


async def _worked(job: Job, task: Task, folder: Path, halt: Halt, relay: Relay) -> bool:
    """Do a task in a directory; whether it was ended early."""
    batch = Batch(
        method=job.method,
        source=ProblemSource.of(task.problems),
        config=task.config,
        out=folder,
        stage=task.stage,
        given=task.given,
        problems=job.problems,
    )
    if not job.force and done_before(batch) is not None:
        return False
    characters = sum(len(problem.question) for problem in task.problems)
    survey = Survey(n=len(task.problems), total=job.total, characters=characters)
    objects = {**job.objects, **{kind: HostedRewardModel(h.described, h.actors) for kind, h in job.hosted.items()}}
    with open_directory(folder, task.config, force=job.force) as store:
        async with open_engine(task.allowed, store, halt=halt, watcher=relay, **objects) as engine:
            return (await batch.work(survey, engine, store, relay)).interrupted
