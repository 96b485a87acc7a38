"""The two stages of a calibrated run, done apart: prepare, then finish, with the shards' statistics merged in between.

``prepare`` draws, scores and stores the initial chains; ``finish`` goes on from them once the statistics are fixed. A
shard sees a part of the problems only, and the statistics are over all of them: so a shard is prepared, all shards are
merged and calibrated, and then the merged run, or each shard with the merged calibration, is finished.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from difficulty import RewardStats, load_calibration
from magicore.config import CALIBRATIONS, RunConfig
from magicore.errors import InputError, StoreError
from magicore.methods.base import AnyMethod, CalibratedMethod
from magicore.runtime.directory import PREPARED, Preparation, prepared_state, saved_config
from magicore.store.prepared import PreparedRow, read_prepared
from magicore.store.run_store import RunStore

Stage = Literal["all", "prepare", "finish"]
_OF_THE_BATCH = ("batch", "first")
"""Calibrations that are one set of statistics for the whole batch."""


def settled(config: RunConfig, out: Path | None, stage: Stage) -> tuple[RunConfig, RewardStats | None]:
    """The settings a run was prepared with, and the statistics it is to be finished with instead of its own, if any.

    Finishing with ``calibration=FILE`` what was prepared for statistics of the batch is no other run: the file is what
    :func:`magicore.runtime.merge.merge_runs` computed.

    Raises:
        StoreError: there is nothing in the directory to finish.
    """
    if stage != "finish" or out is None:
        return config, None
    prepared_for = saved_config(out).get("calibration")
    if config.calibration in CALIBRATIONS or prepared_for not in _OF_THE_BATCH:
        return config, None
    return replace(config, calibration=prepared_for), load_calibration(config.calibration)


def check_stage(
    stage: Stage, method: AnyMethod, config: RunConfig, out: Path | None, given: RewardStats | None
) -> None:
    """Refuse, before anything is spent, a stage or a shard that cannot be.

    Raises:
        InputError: no such stage, the method has one only, there is no directory, or a shard has no statistics.
    """
    if stage not in get_args(Stage):
        raise InputError(f"a stage is {', '.join(get_args(Stage))}, not {stage!r}")
    calibrated = isinstance(method, CalibratedMethod)
    if stage != "all" and not calibrated:
        raise InputError(f"method {method.name} is not calibrated and has one stage only: leave --stage out")
    if stage != "all" and out is None:
        raise InputError("a run in stages needs a directory to keep the first one in: give --out")
    alone = config.shard is not None and config.calibration in CALIBRATIONS and given is None
    if calibrated and stage != "prepare" and alone:
        raise InputError(
            f"shard {config.shard} cannot know the statistics of all problems, which {method.name} needs: run every "
            "shard with --stage prepare, put them together with `magicore merge --calibrate DIR... --out DIR`, and run "
            "that directory (without --shard), or each shard with its calibration.json as --calibration, with "
            "--stage finish"
        )


def preparation(store: RunStore, out: Path, problems: str) -> Preparation:
    """What a store notes of its first stage, if that was of the problems with this fingerprint.

    Raises:
        StoreError: it has not been prepared to its end, or other problems were.
    """
    found = prepared_state(store)
    if found is None or not (out / PREPARED).is_file():
        raise StoreError(f"{out} has not been prepared to its end: run it with --stage prepare first")
    if found.problems != problems:
        raise StoreError(f"the problems have changed since {out} was prepared: run it with --stage prepare again")
    return found


def prepared_rows(out: Path) -> list[PreparedRow]:
    """What the first stage left, in problem order.

    Raises:
        InputError: the file cannot be read.
    """
    return list(read_prepared(out / PREPARED))
