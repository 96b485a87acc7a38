"""A run over a Ray cluster: prepared by workers, calibrated here, finished by workers, merged here.

The stages, the shards' directories and the merging are those of ``magicore run --shard --stage`` and ``magicore
merge``, so the run ends, byte for byte, as one that a single process did. What this module adds is who does what, and
what happens when somebody dies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from difficulty import RewardStats, load_calibration
from magicore.config import CALIBRATIONS, RunConfig
from magicore.distributed.cluster import RayCluster, connected, imported
from magicore.distributed.folders import ShardFolders, shards_of
from magicore.distributed.pool import Pool
from magicore.distributed.scoring import KINDS, Described, HostedRewardModel, RewardActor, is_hosted
from magicore.distributed.shares import budget_share, replicas, reward_model_gpus
from magicore.distributed.worker import Done, Event, Hosted, Job, ShardWorker, Task
from magicore.errors import InputError, StoreError
from magicore.llms.calls import Call
from magicore.methods.base import CalibratedMethod
from magicore.runtime.batch import Batch, Run
from magicore.runtime.budget import Halt
from magicore.runtime.directory import PREPARED, STORE, ended_state, open_directory
from magicore.runtime.merge import Merged, merge_runs
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import open_engine
from magicore.runtime.run import RunOutcome
from magicore.runtime.source import Survey
from magicore.runtime.stages import Stage
from magicore.store.locking import is_network, locked
from magicore.store.run_store import RunStore
from magicore.types import Problem, Result


def check_cluster_run(batch: Batch) -> None:
    """Refuse, before anything is started, a run that cannot be dealt to a cluster.

    Raises:
        InputError: it has no directory, is itself a shard or one stage, or puts models on one device in turns.
    """
    if batch.out is None:
        raise InputError("a run on a Ray cluster needs a directory to put its parts together in: give --out")
    if batch.config.shard is not None or batch.stage != "all":
        raise InputError("--engine ray deals out shards and stages by itself: leave --shard and --stage out")
    if batch.config.placement == "phased":
        raise InputError(
            "--placement phased is for models that share one device; with --engine ray give them fractions of one: "
            "--reward-model-gpus 0.5"
        )


def claim_directory(batch: Batch, cluster: RayCluster, *, force: bool = False) -> None:
    """Settle whose run a directory holds, before anything is started in it.

    Raises:
        MissingExtraError: Ray is not installed, so that nothing could be.
        StoreError: it cannot be used, is worked on, or holds another run.
    """
    assert batch.out is not None
    imported(cluster)
    with open_directory(batch.out, batch.config, force=force):
        pass


def without_hosted(config: RunConfig, objects: Mapping[str, Any]) -> tuple[RunConfig, dict[str, Any]]:
    """Settings and objects without the reward models that get actors, for an engine that only estimates the cost."""
    hosted = [kind for kind in KINDS if is_hosted(kind, config, objects.get(kind))]
    own = {name: value for name, value in objects.items() if name not in hosted}
    orm, prm = (None if kind in hosted else getattr(config, kind) for kind in KINDS)
    return replace(config, orm=orm, prm=prm), own


async def run_on_cluster(
    batch: Batch,
    survey: Survey,
    cluster: RayCluster,
    *,
    objects: Mapping[str, Any],
    observer: RunObserver,
    halt: Halt | None = None,
    force: bool = False,
) -> Run:
    """Do a batch on a cluster.

    Args:
        batch: What is to be done; see :func:`check_cluster_run` and :func:`claim_directory`.
        survey: Its problems, read once.
        cluster: Where.
        objects: Language model and reward models that were given as objects; they are sent to the workers.
        observer: Watches; it is told of every problem once, also of one that a dead worker had answered already.
        halt: Ends the run early. Between the stages the stores are kept and there are no results yet.
        force: As in :func:`magicore.asolve_batch`.

    Raises:
        MissingExtraError: Ray is not installed.
        MagicoreError: the cluster cannot be used, a worker cannot go on, or shards keep killing their workers.
    """
    assert batch.out is not None
    with locked(shards_of(batch.out), network=is_network(batch.out)):
        async with connected(cluster) as ray:
            places = _Places(ray, cluster, batch.config)
            folders = ShardFolders.of(batch.out, min(places.workers, survey.n))
            if folders.count > survey.n:
                raise StoreError(f"{folders.parent} is of a run with more problems; remove it, or give another --out")
            await asyncio.to_thread(folders.seeded, batch.config)
            run = _ClusterRun(batch, survey, folders, observer, Halt() if halt is None else halt, force=force)
            try:
                finished = await run.on(places, objects)
            finally:
                await asyncio.to_thread(places.close)
    if not finished.interrupted and not finished.summary["failed"]:
        folders.remove()
    return finished


class _Places:
    """What a cluster has for a run: how many workers, and the actors of its reward models."""

    def __init__(self, ray: Any, cluster: RayCluster, config: RunConfig) -> None:
        self._ray = ray
        self._cluster = cluster
        self._config = config
        self._actors: list[Any] = []
        nodes = [node for node in ray.nodes() if node["Alive"]]
        here = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
        self.workers = cluster.workers or (len(nodes) if len(nodes) > 1 else max(1, min(here, 4)))
        self._gpus = float(ray.cluster_resources().get("GPU", 0)) - self.workers * cluster.worker_gpus
        if self._gpus < 0:
            raise InputError(
                f"{self.workers} workers of {cluster.worker_gpus:g} GPUs each do not fit on the cluster's; give fewer "
                "--workers or a smaller --worker-gpus"
            )
        on_cpu = config.device == "cpu" or config.placement == "cpu-rewards"
        self._each = reward_model_gpus(cluster.reward_model_gpus, gpus=self._gpus, on_cpu=on_cpu)

    async def host(self, objects: Mapping[str, Any]) -> dict[str, Hosted]:
        """Start the actors of the reward models that get any, and wait until they are loaded."""
        kinds = [kind for kind in KINDS if is_hosted(kind, self._config, objects.get(kind))]
        many = replicas(len(kinds), gpus=self._gpus, each=self._each)
        make = self._ray.remote(RewardActor)
        resources = {"num_gpus": self._each} if self._each else {"num_cpus": 0}
        found: dict[str, Hosted] = {}
        for kind in kinds:
            actors = [
                make.options(**resources, max_restarts=-1, max_task_retries=-1, max_concurrency=1000).remote(
                    kind, self._config, objects.get(kind)
                )
                for _ in range(many)
            ]
            self._actors += actors
            described = await asyncio.gather(*(_told(actor.describe.remote()) for actor in actors))
            for one in described:
                if not isinstance(one, Described):
                    raise one.error()
            found[kind] = Hosted(described=described[0], actors=actors)
        return found

    def pool(self, job: Job, folders: ShardFolders, halt: Halt, tell: Any) -> Pool:
        """The workers."""
        errors = self._ray.exceptions
        make = self._ray.remote(ShardWorker).options(
            num_cpus=0 if self._cluster.worker_gpus else 1,
            num_gpus=self._cluster.worker_gpus,
            max_concurrency=2,
            scheduling_strategy="SPREAD",
        )
        return Pool(
            lambda: make.remote(job),
            self._ray.kill,
            self.workers,
            folders=folders,
            halt=halt,
            tell=tell,
            deaths=(errors.RayActorError, errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError),
        )

    def close(self) -> None:
        """End the reward models' actors."""
        for actor in self._actors:
            self._ray.kill(actor)


async def _told(reference: Any) -> Any:
    return await reference


class _Once(RunObserver):
    """Passes on what goes on, each problem once in each stage; its start and its end are told by the run itself."""

    def __init__(self, observer: RunObserver) -> None:
        self._observer = observer
        self._seen: set[tuple[str, str]] = set()

    def tell(self, event: Event) -> None:
        """Pass on what a worker told."""
        name, arguments = event
        getattr(self, name)(*arguments)

    def calling(self, model: str, samples: int) -> None:
        self._observer.calling(model, samples)

    def called(self, call: Call) -> None:
        self._observer.called(call)

    def prepared(self, problem: Problem) -> None:
        if self._first("prepared", problem.id):
            self._observer.prepared(problem)

    def answered(self, result: Result) -> None:
        if self._first("answered", result.id):
            self._observer.answered(result)

    def _first(self, name: str, problem: str) -> bool:
        first = (name, problem) not in self._seen
        self._seen.add((name, problem))
        return first


class _ClusterRun:
    """One run, from the first task to the merged directory."""

    def __init__(
        self,
        batch: Batch,
        survey: Survey,
        folders: ShardFolders,
        observer: RunObserver,
        halt: Halt,
        *,
        force: bool,
    ) -> None:
        assert batch.out is not None
        self._batch = batch
        self._survey = survey
        self._folders = folders
        self._out: Path = batch.out
        self._halt = halt
        self._force = force
        self._started = time.monotonic()
        self._observer = observer
        self._once = _Once(observer)
        self._objects: Mapping[str, Any] = {}
        self._dealt: list[list[Problem]] = [[] for _ in range(folders.count)]
        for number, problem in enumerate(batch.source):
            self._dealt[number % folders.count].append(problem)

    async def on(self, places: _Places, objects: Mapping[str, Any]) -> Run:
        hosted = await places.host(objects)
        own = {name: value for name, value in objects.items() if name not in hosted}
        self._objects = own | {kind: HostedRewardModel(one.described, one.actors) for kind, one in hosted.items()}
        job = Job(
            method=self._batch.method,
            objects=own,
            hosted=hosted,
            mark=self._folders.mark.resolve(),
            token=self._folders.token,
            problems=self._batch.problems,
            total=self._survey.total,
            force=self._force,
        )
        pool = places.pool(job, self._folders, self._halt, self._once.tell)
        self._observer.started(self._survey.n)
        try:
            run = await self._stages(pool)
        finally:
            await asyncio.to_thread(pool.close)
        self._observer.finished(run.summary)
        return run

    async def _stages(self, pool: Pool) -> Run:
        config = self._batch.config
        if not isinstance(self._batch.method, CalibratedMethod):
            return await self._finished(pool, "all", None)
        if config.calibration not in CALIBRATIONS:
            return await self._finished(pool, "all", load_calibration(config.calibration))
        done = await self._done(pool, "prepare", None)
        if any(one is None or one.interrupted for one in done):
            return await self._early("prepare")
        merged = await self._merged(calibrate=True)
        if config.calibration == "running":  # each problem has statistics of its own, which no shard knows
            return await self._here()
        return await self._finished(pool, "finish", merged.stats)

    async def _done(self, pool: Pool, stage: Stage, given: RewardStats | None) -> list[Done | None]:
        elapsed = time.monotonic() - self._started
        config = self._batch.config
        tasks = []
        for shard, problems in zip(self._folders.shards, self._dealt, strict=True):
            own = replace(config, shard=str(shard))
            share = budget_share(config.budget, n=len(problems), total=self._survey.n, elapsed=elapsed)
            tasks.append(
                Task(
                    shard=shard,
                    stage=stage,
                    problems=problems,
                    config=own,
                    allowed=replace(own, budget=share),
                    given=given,
                    folder=self._folders.folder(shard).resolve(),
                )
            )
        return await pool.work(tasks)

    async def _finished(self, pool: Pool, stage: Stage, given: RewardStats | None) -> Run:
        done = await self._done(pool, stage, given)
        if any(one is None for one in done):
            return await self._early("finish" if stage == "finish" else "prepare")
        merged = await self._merged(calibrate=False)
        assert merged.summary is not None
        (self._out / PREPARED).unlink(missing_ok=True)
        store = RunStore(self._out / STORE, write_ahead=not is_network(self._out))
        end = ended_state(store)
        store.close()
        assert end is not None
        outcome = RunOutcome(
            results=merged.results, stats=merged.stats, chains=end.chains, cut=end.cut, wall_s=merged.summary["wall_s"]
        )
        return Run(
            config=self._batch.config,
            results=merged.results,
            stats=merged.stats,
            summary=merged.summary,
            outcome=outcome,
            interrupted=end.interrupted,
        )

    async def _merged(self, *, calibrate: bool) -> Merged:
        merged = await asyncio.to_thread(
            merge_runs,
            [self._folders.folder(shard) for shard in self._folders.shards],
            self._out,
            calibrate=calibrate,
            force=self._force,
            ended_early=True,
            wall_s=time.monotonic() - self._started,
        )
        await asyncio.to_thread(self._folders.gathered)
        return merged

    async def _early(self, stage: Stage) -> Run:
        """What a run that was ended between its stages has: everything paid for, and no results."""
        await asyncio.to_thread(self._folders.gathered)
        config, wall_s = self._batch.config, time.monotonic() - self._started
        summary = {"stage": stage, "engine": "ray", "n": self._survey.n, "failed": 0, "chains": 0, "wall_s": wall_s}
        outcome = RunOutcome(results=(), stats=None, chains=0, cut=0, wall_s=wall_s)
        return Run(config=config, results=(), stats=None, summary=summary, outcome=outcome, interrupted=True)

    async def _here(self) -> Run:
        """The second stage in this process."""
        batch = replace(self._batch, stage="finish")
        with open_directory(self._out, batch.config, force=self._force) as store:
            async with open_engine(
                batch.config, store, halt=self._halt, watcher=self._observer, **self._objects
            ) as engine:
                return await batch.work(self._survey, engine, store, self._once)
