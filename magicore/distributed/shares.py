"""Who gets how much: problems to shards, workers to a cluster, GPUs to reward models, a run's budget to its shards."""

from __future__ import annotations

from collections.abc import Mapping

from magicore.errors import InputError


def budget_share(budget: Mapping[str, float], *, n: int, total: int, elapsed: float) -> dict[str, float]:
    """What a shard with ``n`` of ``total`` problems may spend.

    A run's tokens, calls and money are dealt out by problems, so that together the shards keep the limit whatever
    becomes of each; what one does not need does not go to another. Seconds run for all alike: what is left of them
    after ``elapsed``. A problem's limits stay as they are.
    """
    share = dict(budget)
    for kind in ("tokens", "calls", "money"):
        if (name := f"run.{kind}") in share:
            share[name] *= n / total
    if "run.seconds" in share:
        share["run.seconds"] = max(share["run.seconds"] - elapsed, 1e-9)  # a limit is above 0
    return share


def reward_model_gpus(asked: float | None, *, gpus: float, on_cpu: bool) -> float:
    """GPUs for each reward-model actor: as asked, else one where there are any and they are wanted.

    Raises:
        InputError: more than the cluster has.
    """
    if on_cpu:
        return 0.0
    if asked is None:
        return 1.0 if gpus >= 1 else 0.0
    if asked > gpus:
        raise InputError(f"--reward-model-gpus {asked:g} is more than the {gpus:g} GPUs that the cluster has left")
    return asked


def replicas(models: int, *, gpus: float, each: float) -> int:
    """How many actors each of ``models`` reward models has, when each actor takes ``each`` of ``gpus`` GPUs: as many as
    fit; one without GPUs.

    Raises:
        InputError: not even one of each fits.
    """
    if not models or not each:
        return 1
    slots = int(1 / each + 1e-9) * int(gpus) if each < 1 else int(gpus // each)  # a fraction never spans two GPUs
    if slots < models:
        raise InputError(
            f"{models} reward models of {each:g} GPUs each do not fit on the {gpus:g} GPUs that the cluster has left; "
            "give a smaller --reward-model-gpus, such as 0.5"
        )
    return slots // models
