"""Where a run's workers are: a Ray cluster that is there, or one that is started on this machine for the run."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from magicore.errors import InputError, MagicoreError, MissingExtraError

ADDRESS = "RAY_ADDRESS"
MOST_LOCAL_WORKERS = 4


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """A Ray cluster, and what a run takes of it. No result depends on any of it, so it is no part of a configuration.

    Attributes:
        address: The head node, ``HOST:6379``, or ``auto`` for the cluster that this machine belongs to. ``None``: what
            the environment variable ``RAY_ADDRESS`` says, else Ray is started on this machine and stopped afterwards.
        workers: Processes that work on problems, at least 1; ``None``: one a node, or of a Ray that is started here one
            a processor, four at the most. One process is bound by its processor, not by the models it asks (see
            ``scripts/bench_scaling.py``).
        worker_gpus: GPUs that each worker is given, 0 or more; needed where the language model is loaded by the workers
            (``hf:...``), and by nothing else.
        reward_model_gpus: GPUs that each reward-model actor is given: a fraction shares one among several, a whole
            number spans several. ``None``: 1 where the cluster has any.

    Raises:
        InputError: a number is out of its range, or the address is that of a Ray client.
    """

    address: str | None = None
    workers: int | None = None
    worker_gpus: float = 0.0
    reward_model_gpus: float | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers must be at least 1, got {self.workers}")
        for flag, gpus in (("--worker-gpus", self.worker_gpus), ("--reward-model-gpus", self.reward_model_gpus)):
            if gpus is not None and (gpus < 0 or (gpus > 1 and gpus != int(gpus))):
                raise InputError(f"{flag} is a share of one GPU (0.5) or a number of them, got {gpus}")
        if self.address is not None and self.address.startswith("ray://"):
            raise InputError(
                f"{self.address} is a Ray client's address: run magicore on a node of the cluster, with --address auto "
                "or HOST:6379"
            )


def as_cluster(engine: str | RayCluster) -> RayCluster | None:
    """The cluster that an engine is; ``None`` for ``local``.

    Raises:
        InputError: there is no such engine.
    """
    if isinstance(engine, RayCluster):
        return engine
    if engine not in ("local", "ray"):
        raise InputError(f"an engine is local or ray, not {engine!r}")
    return RayCluster() if engine == "ray" else None


def imported(cluster: RayCluster) -> Any:
    """Ray, which reads what it is told of the environment as it is imported.

    Raises:
        MissingExtraError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a run tells nobody of itself
    if _address(cluster) is None:  # Ray's name for: nodes elsewhere may join. Without, it listens on loopback alone.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtraError("--engine ray needs Ray: pip install 'magicore[ray]'") from None
    return ray


@asynccontextmanager
async def connected(cluster: RayCluster) -> AsyncIterator[Any]:
    """Ray, connected for as long as the context lasts; yields its module. A Ray that the process already uses is taken
    as it is, and left so.

    Raises:
        MissingExtraError: Ray is not installed.
        MagicoreError: nothing answers at the address.
    """
    ray = imported(cluster)
    if ray.is_initialized():
        yield ray
        return
    await asyncio.to_thread(_connect, ray, cluster)
    try:
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


def _address(cluster: RayCluster) -> str | None:
    return cluster.address or os.environ.get(ADDRESS)


def _connect(ray: Any, cluster: RayCluster) -> None:
    address = _address(cluster)
    options: dict[str, Any] = {"address": address or "local", "log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        # Workers wait for models more than they compute: they need not have a processor each.
        room = max(os.cpu_count() or 1, cluster.workers or 1)
        options |= {"num_cpus": room, "include_dashboard": False}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "Ray cannot be started on this machine" if address is None else f"no Ray cluster answers at {address}"
        raise MagicoreError(f"{where}: {str(error).strip().splitlines()[0] if str(error) else error!r}") from error
