"""Run a method over many problems: concurrently, in two stages where it is calibrated, results in problem order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from difficulty import CalibrationSample, Population, RewardStats, RunningStats, load_calibration
from magicore.config import CALIBRATIONS
from magicore.errors import LanguageModelError, MagicoreError, RewardModelError
from magicore.methods.base import AnyMethod, CalibratedMethod, Prepared
from magicore.runtime.open import require_reward_models
from magicore.runtime.runtime import Engine, RunAborted, Runtime
from magicore.types import Failure, Problem, Result, ScoredChain

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


class RunObserver:
    """Watches a run; this one does nothing. Progress bars and logs override what they need."""

    def started(self, problems: Sequence[Problem]) -> None:
        """The batch is known and the models are open."""

    def prepared(self, problem: Problem) -> None:
        """The initial chains of a problem are drawn and scored (calibrated methods only)."""

    def answered(self, result: Result) -> None:
        """A problem has its result, or its failure."""


PREPARED_KEPT = 4096
"""Prepared problems kept in memory between the two stages; the rest are read again from the store."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds that one problem waited for each stage."""

    id: str
    seconds: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run brought, in problem order."""

    results: tuple[Result, ...]
    stats: RewardStats | None
    timings: tuple[Timing, ...]
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """What is known of a problem after preparation: its S values, and its chains where they are still in memory."""

    combined: tuple[float | None, ...]
    prepared: Prepared | None = None
    runtime: Runtime | None = None
    failure: Failure | None = None


async def run_method(
    method: AnyMethod,
    problems: Sequence[Problem],
    engine: Engine,
    *,
    calibration: str = "batch",
    concurrency: int = 64,
    observer: RunObserver | None = None,
) -> RunOutcome:
    """Answer every problem. A problem that fails ends with a failed result; the others go on.

    Raises:
        MagicoreError: the run as a whole cannot go on (a refused key, no connection at all, wrong configuration).
    """
    require_reward_models(engine, method.needs, method.name)
    started = time.perf_counter()
    watching = observer or RunObserver()
    watching.started(problems)
    runner = _Runner(method, engine, concurrency, watching)
    try:
        results, stats = await runner.run(problems, calibration)
    except RunAborted as error:
        if isinstance(error.__cause__, MagicoreError):
            raise error.__cause__ from None
        raise
    return RunOutcome(
        results=tuple(results),
        stats=stats,
        timings=tuple(runner.timings[problem.id] for problem in problems),
        wall_s=time.perf_counter() - started,
    )


class _Runner:
    def __init__(self, method: AnyMethod, engine: Engine, concurrency: int, observer: RunObserver) -> None:
        self._method = method
        self._engine = engine
        self._concurrency = concurrency
        self._observer = observer
        self._in_memory = 0
        self.timings: dict[str, Timing] = {}

    async def run(self, problems: Sequence[Problem], calibration: str) -> tuple[list[Result], RewardStats | None]:
        method = self._method
        if not isinstance(method, CalibratedMethod):
            return await for_each(problems, lambda p: self._guarded(p, method.solve), self._concurrency), None
        stages = await for_each(problems, lambda p: self._prepare(p, method), self._concurrency)
        stats = calibrate([stage.combined for stage in stages], calibration, self._engine)
        staged = list(zip(problems, stages, stats, strict=True))
        alone = len(problems) == 1 and calibration in CALIBRATIONS
        results = await for_each(staged, lambda item: self._finish(*item, method, alone=alone), self._concurrency)
        return results, stats[-1]

    async def _prepare(self, problem: Problem, method: CalibratedMethod) -> _Stage:
        rt = self._engine.bind(problem)
        try:
            prepared = await method.prepare(rt)
        except (LanguageModelError, RewardModelError) as error:
            return _Stage(combined=(), runtime=rt, failure=_failure(error))
        finally:
            self._observer.prepared(problem)
        combined = tuple(scored.combined for scored in prepared.chains)
        if self._in_memory >= PREPARED_KEPT:
            return _Stage(combined=combined)
        self._in_memory += 1
        return _Stage(combined=combined, prepared=prepared, runtime=rt)

    async def _finish(
        self, problem: Problem, stage: _Stage, stats: RewardStats | None, method: CalibratedMethod, *, alone: bool
    ) -> Result:
        rt = stage.runtime or self._engine.bind(problem)
        if stage.failure is not None:
            return self._done(rt, failed(rt, method.name, stage.failure))
        if alone:
            rt.warn("calibrated on this problem's own chains only; a saved calibration file routes one question better")

        async def solve(rt: Runtime) -> Result:
            return await method.finish(stage.prepared or await method.prepare(rt), stats, rt)

        return await self._guarded(problem, solve, rt)

    async def _guarded(
        self, problem: Problem, solve: Callable[[Runtime], Awaitable[Result]], rt: Runtime | None = None
    ) -> Result:
        rt = rt or self._engine.bind(problem)
        try:
            result = await solve(rt)
        except (LanguageModelError, RewardModelError) as error:
            result = failed(rt, self._method.name, _failure(error))
        return self._done(rt, result)

    def _done(self, rt: Runtime, result: Result) -> Result:
        self.timings[rt.problem.id] = Timing(id=rt.problem.id, seconds=dict(rt.ledger.seconds))
        self._observer.answered(result)
        return result


def failed(rt: Runtime, method: str, failure: Failure) -> Result:
    """The result of a problem that could not be answered. With a gold answer it counts as not right."""
    problem = rt.problem
    return Result(
        id=problem.id,
        kind=problem.kind,
        method=method,
        gold=problem.answer,
        correct=None if problem.answer is None else False,
        stop="failed",
        error=failure,
        usage=rt.ledger.usage,
        warnings=rt.ledger.warnings,
    )


def _failure(error: Exception) -> Failure:
    return Failure(type=type(error).__name__, message=str(error))


def calibrate(combined: Sequence[Sequence[float | None]], calibration: str, engine: Engine) -> list[RewardStats | None]:
    """The statistics of S that each problem is routed by, in problem order; ``None`` where no chain has both scores.

    ``batch``: over every initial chain of every problem (the paper's reading), the same for all. ``first``: over each
    problem's first chain (the published code's). ``running``: over the chains of this problem and those before it.
    Otherwise a saved calibration file. Later rounds never move them.
    """
    names = {
        "orm": None if engine.orm is None else engine.orm.name,
        "prm": None if engine.prm is None else engine.prm.name,
        "aggregation": engine.aggregation,
    }
    if calibration not in CALIBRATIONS:
        return [load_calibration(calibration)] * len(combined)
    if calibration == "running":
        running = RunningStats()
        found: list[RewardStats | None] = []
        for row in combined:
            running = running.add(row)
            found.append(running.stats(**names) if running.n else None)
        return found
    values = [row[:1] if calibration == "first" else row for row in combined]
    sample = CalibrationSample.of(value for row in values for value in row)
    population: Population = "first" if calibration == "first" else "batch"
    stats = sample.stats(population=population, **names) if sample.values else None
    return [stats] * len(combined)


async def for_each(
    items: Sequence[ItemT], work: Callable[[ItemT], Awaitable[ValueT]], concurrency: int
) -> list[ValueT]:
    """Work on ``concurrency`` items at a time, taken in order; values in item order. The first exception stops all."""
    values: dict[int, ValueT] = {}
    waiting = iter(enumerate(items))

    async def worker() -> None:
        for position, item in waiting:
            values[position] = await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(items))):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__
    return [values[position] for position in range(len(items))]


def initial_chains(result: Result) -> tuple[ScoredChain, ...]:
    """The chains of round 0."""
    return result.rounds[0].chains if result.rounds else ()


def all_chains(result: Result) -> tuple[ScoredChain, ...]:
    """Every chain of every round, in order."""
    return tuple(scored for round in result.rounds for scored in round.chains)


def without_rounds(result: Result) -> Result:
    """The result without its chains: what results.jsonl needs, in a fraction of the memory."""
    return replace(result, rounds=())
