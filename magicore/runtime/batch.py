"""A batch of problems under one configuration, in memory or in a directory: what the front door hands over to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import magicore
from difficulty import RewardStats, load_calibration
from magicore.config import RunConfig
from magicore.datasets.shards import Shard
from magicore.evaluate import summarise
from magicore.methods.base import AnyMethod, CalibratedMethod
from magicore.runtime.directory import (
    CALIBRATION,
    PREPARED,
    RESULTS,
    SUMMARY,
    DirectoryWriter,
    Preparation,
    RunEnd,
    directory_writer,
    finished_preparation,
    finished_state,
    note_end,
    note_prepared,
)
from magicore.runtime.observer import RunObserver
from magicore.runtime.run import Combined, RunOutcome, prepare_method, run_method, scorer_names
from magicore.runtime.runtime import Engine
from magicore.runtime.source import ProblemSource, Survey
from magicore.runtime.stages import Stage, check_stage, preparation, prepared_rows, settled
from magicore.store.accounting import run_remarks
from magicore.store.files import read_results, read_summary
from magicore.store.origin import note_origin
from magicore.store.prepared import write_prepared
from magicore.store.run_store import RunStore
from magicore.types import Result


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: results in problem order, the batch's statistics, and the summary (files.md, summary.json).

    ``interrupted`` says that it was ended early: the same run again goes on from there. A run that was only prepared
    has no results yet.
    """

    config: RunConfig
    results: tuple[Result, ...] = field(repr=False)  # asyncio.run writes out what it returns
    stats: RewardStats | None
    summary: Mapping[str, Any]
    outcome: RunOutcome = field(repr=False)
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What is to be done.

    Attributes:
        method, source, config: The method, the problems, and every setting.
        out: The run's directory; ``None``: nothing is kept.
        stage: How far to go, or from where; see :mod:`magicore.runtime.stages`.
        given: Statistics to finish with instead of the run's own.
        problems: The problems' fingerprint; empty without a directory, which alone remembers what it answered.
    """

    method: AnyMethod
    source: ProblemSource
    config: RunConfig
    out: Path | None
    stage: Stage
    given: RewardStats | None
    problems: str

    async def work(self, survey: Survey, engine: Engine, store: RunStore, observer: RunObserver) -> Run:
        """Do it, with everything open."""
        if self.out is not None and self.config.data is None:
            note_origin(store, self.source.origin())
        if self.stage == "prepare" and self.out is not None and isinstance(self.method, CalibratedMethod):
            return await self._prepare(self.method, self.out, survey, engine, store, observer)
        return await self._solve(survey, engine, store, observer)

    async def _prepare(
        self,
        method: CalibratedMethod,
        out: Path,
        survey: Survey,
        engine: Engine,
        store: RunStore,
        observer: RunObserver,
    ) -> Run:
        note_prepared(store, None)
        found = await prepare_method(
            method,
            self.source,
            engine,
            concurrency=self.config.concurrency,
            observer=observer,
            total=survey.n,
        )
        interrupted = bool(engine.budget.halt)
        done = Preparation(
            problems=self.problems,
            total=survey.total,
            n=survey.n,
            failed=found.failed,
            chains=found.chains,
            cut=found.cut,
            names=scorer_names(engine),
        )
        if not interrupted:
            write_prepared(out / PREPARED, found.rows)
            note_prepared(store, done)
        summary = _prepared_summary(done, self.config, found.wall_s) | run_remarks(store)
        observer.finished(summary)
        return _prepared_run(self.config, done, summary, interrupted=interrupted)

    async def _solve(self, survey: Survey, engine: Engine, store: RunStore, observer: RunObserver) -> Run:
        combined = self._combined(store)
        with nullcontext() if self.out is None else directory_writer(self.out) as writer:
            outcome = await run_method(
                self.method,
                self.source,
                engine,
                calibration=self.config.calibration if self.given is None else self.given,
                combined=combined,
                concurrency=self.config.concurrency,
                observer=observer,
                total=survey.n,
                sink=writer,
            )
            summary = summarise(outcome.results, config=self.config, wall_s=outcome.wall_s)
            summary |= run_remarks(store)
            observer.finished(summary)
            interrupted = bool(engine.budget.halt)
            if writer is not None:
                self._write(writer, survey, store, outcome, summary, interrupted=interrupted)
        return Run(
            config=self.config,
            results=outcome.results,
            stats=outcome.stats,
            summary=summary,
            outcome=outcome,
            interrupted=interrupted,
        )

    def _combined(self, store: RunStore) -> Combined | None:
        """The S values that the run's own statistics are to be computed over, where a first stage has left them."""
        if self.stage != "finish" or self.out is None:
            return None
        preparation(store, self.out, self.problems)
        return None if self.given is not None else [row.combined for row in prepared_rows(self.out)]

    def _write(
        self,
        writer: DirectoryWriter,
        survey: Survey,
        store: RunStore,
        outcome: RunOutcome,
        summary: Mapping[str, Any],
        *,
        interrupted: bool,
    ) -> None:
        writer.finish(outcome.stats, summary)
        end = RunEnd(
            problems=self.problems,
            total=survey.total,
            n=survey.n,
            failed=summary["failed"],
            chains=outcome.chains,
            cut=outcome.cut,
            interrupted=interrupted,
            given=_mark(self.given),
        )
        note_end(store, end)


def make_batch(
    method: AnyMethod, source: ProblemSource, config: RunConfig, out: Path | None, stage: Stage = "all"
) -> Batch:
    """A batch whose stage and shard can be.

    Raises:
        InputError: they cannot; see :func:`magicore.runtime.stages.check_stage`.
        StoreError: ``stage="finish"`` of a directory that holds no run.
    """
    config, given = settled(config, out, stage)
    check_stage(stage, method, config, out, given)
    source = source.dealt(None if config.shard is None else Shard.read(config.shard))
    fingerprint = "" if out is None else source.fingerprint()
    return Batch(method=method, source=source, config=config, out=out, stage=stage, given=given, problems=fingerprint)


def done_before(batch: Batch) -> Run | None:
    """What a directory holds, read from its files, if it has the same settings and problems and is done already.

    One with failed problems is not: the same run again tries them once more.
    """
    if batch.out is None:
        return None
    if batch.stage == "prepare":
        prepared = finished_preparation(batch.out, batch.config)
        if prepared is None or prepared.problems != batch.problems:
            return None
        return _prepared_run(batch.config, prepared, _prepared_summary(prepared, batch.config, 0.0))
    end = finished_state(batch.out, batch.config)
    if end is None or end.problems != batch.problems or end.given != _mark(batch.given):
        return None
    results = tuple(record.result for record in read_results(batch.out / RESULTS))
    summary = read_summary(batch.out / SUMMARY)
    calibration = batch.out / CALIBRATION
    stats = load_calibration(calibration) if calibration.is_file() else None
    outcome = RunOutcome(results=results, stats=stats, chains=end.chains, cut=end.cut, wall_s=summary["wall_s"])
    return Run(config=batch.config, results=results, stats=stats, summary=summary, outcome=outcome)


def _mark(stats: RewardStats | None) -> list[float] | None:
    return None if stats is None else [stats.mu, stats.sigma, stats.n]


def _prepared_summary(done: Preparation, config: RunConfig, wall_s: float) -> dict[str, Any]:
    return {
        "stage": "prepare",
        "n": done.n,
        "failed": done.failed,
        "chains": done.chains,
        "wall_s": wall_s,
        "method": config.method,
        "model": config.model,
        "orm": config.orm,
        "prm": config.prm,
        "seed": config.seed,
        "version": magicore.__version__,
    }


def _prepared_run(
    config: RunConfig, done: Preparation, summary: Mapping[str, Any], *, interrupted: bool = False
) -> Run:
    outcome = RunOutcome(results=(), stats=None, chains=done.chains, cut=done.cut, wall_s=summary["wall_s"])
    return Run(config=config, results=(), stats=None, summary=summary, outcome=outcome, interrupted=interrupted)
