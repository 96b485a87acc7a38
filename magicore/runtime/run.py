"""Run a method over many problems: concurrently, in two stages where it is calibrated, results in problem order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from difficulty import CalibrationSample, Population, RewardStats, RunningStats, load_calibration
from magicore.config import CALIBRATIONS
from magicore.errors import LanguageModelError, MagicoreError, RewardModelError
from magicore.methods.base import AnyMethod, CalibratedMethod, Prepared
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import require_reward_models
from magicore.runtime.runtime import Engine, RunAborted, Runtime
from magicore.runtime.schedule import in_order
from magicore.types import Failure, Problem, Result, ScoredChain

PREPARED_KEPT = 4096
"""Prepared problems kept in memory between the two stages; the rest are read again from the store."""


class ResultSink:
    """Takes each result with all its chains, in problem order, as soon as it and those before it are there."""

    def add(self, result: Result, timings: Mapping[str, Any]) -> None:
        """``timings`` is what its ledger says of seconds, retries and cached tokens."""


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run brought, in problem order.

    Attributes:
        results: Results with their rounds, or without where a sink took them.
        stats: The statistics of S that the last problem was routed by.
        chains: Chains drawn and refined, over all problems.
        cut: Those that ended at the token limit.
        wall_s: Seconds from the first call to the last result.
    """

    results: tuple[Result, ...]
    stats: RewardStats | None
    chains: int
    cut: int
    wall_s: float


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """What is known of a problem after preparation: its S values, and its chains where they are still in memory."""

    combined: tuple[float | None, ...]
    prepared: Prepared | None = None
    runtime: Runtime | None = None
    failure: Failure | None = None


@dataclass
class _Tally:
    """Results as they come."""

    sink: ResultSink | None
    results: list[Result] = field(default_factory=list)
    chains: int = 0
    cut: int = 0

    def add(self, result: Result, rt: Runtime) -> None:
        for scored in all_chains(result):
            self.chains += 1
            self.cut += scored.chain.stop == "length"
        if self.sink is not None:
            self.sink.add(result, rt.ledger.timings)
        self.results.append(result if self.sink is None else without_rounds(result))


async def run_method(
    method: AnyMethod,
    problems: Iterable[Problem],
    engine: Engine,
    *,
    calibration: str = "batch",
    concurrency: int = 64,
    observer: RunObserver | None = None,
    total: int | None = None,
    sink: ResultSink | None = None,
) -> RunOutcome:
    """Answer every problem. A problem that fails ends with a failed result; the others go on.

    Args:
        method: The method.
        problems: Something that can be iterated over again: a calibrated method reads it once for each stage.
        engine: Models, scorers and store.
        calibration: As in :class:`~magicore.config.RunConfig`.
        concurrency: Problems worked on at once.
        observer: Watches.
        total: How many problems there are, for the observer.
        sink: Takes full results as they come; the outcome then holds them without their rounds.

    Raises:
        MagicoreError: the run as a whole cannot go on (a refused key, no connection at all, wrong configuration).
    """
    require_reward_models(engine, method.needs, method.name)
    started = time.perf_counter()
    watching = observer or RunObserver()
    watching.started(len(problems) if isinstance(problems, Sequence) else total)
    tally = _Tally(sink)
    runner = _Runner(method, engine, concurrency, watching)
    try:
        stats = await runner.run(problems, calibration, tally)
    except RunAborted as error:
        if isinstance(error.__cause__, MagicoreError):
            raise error.__cause__ from None
        raise
    return RunOutcome(
        results=tuple(tally.results),
        stats=stats,
        chains=tally.chains,
        cut=tally.cut,
        wall_s=time.perf_counter() - started,
    )


class _Runner:
    def __init__(self, method: AnyMethod, engine: Engine, concurrency: int, observer: RunObserver) -> None:
        self._method = method
        self._engine = engine
        self._concurrency = concurrency
        self._observer = observer
        self._in_memory = 0

    async def run(self, problems: Iterable[Problem], calibration: str, tally: _Tally) -> RewardStats | None:
        method = self._method
        if not isinstance(method, CalibratedMethod):
            done = in_order(problems, lambda p: self._guarded(p, method.solve), concurrency=self._concurrency)
            async for result, rt in done:
                tally.add(result, rt)
            return None
        stages: deque[_Stage] = deque()
        async for stage in in_order(problems, lambda p: self._prepare(p, method), concurrency=self._concurrency):
            stages.append(stage)
        stats = calibrate([stage.combined for stage in stages], calibration, self._engine)
        alone = len(stages) == 1 and calibration in CALIBRATIONS
        finished = in_order(
            zip(problems, _taken(stages), stats, strict=True),
            lambda item: self._finish(*item, method, alone=alone),
            concurrency=self._concurrency,
        )
        async for result, rt in finished:
            tally.add(result, rt)
        return stats[-1] if stats else None

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
    ) -> tuple[Result, Runtime]:
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
    ) -> tuple[Result, Runtime]:
        rt = rt or self._engine.bind(problem)
        try:
            result = await solve(rt)
        except (LanguageModelError, RewardModelError) as error:
            result = failed(rt, self._method.name, _failure(error))
        return self._done(rt, result)

    def _done(self, rt: Runtime, result: Result) -> tuple[Result, Runtime]:
        self._observer.answered(result)
        return result, rt


def _taken(stages: deque[_Stage]) -> Iterator[_Stage]:
    """The stages in order, each let go of when it is taken."""
    while stages:
        yield stages.popleft()


def failed(rt: Runtime, method: str, failure: Failure) -> Result:
    """The result of a problem that could not be answered, for a failure or for want of budget.

    With a gold answer it counts as not right.
    """
    problem = rt.problem
    if rt.ledger.over_budget:
        rt.warn(failure.message)
    return Result(
        id=problem.id,
        kind=problem.kind,
        method=method,
        gold=problem.answer,
        correct=None if problem.answer is None else False,
        stop="budget" if rt.ledger.over_budget else "failed",
        error=None if rt.ledger.over_budget else failure,
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
            found.append(running.stats(**names))
        return found
    values = [row[:1] if calibration == "first" else row for row in combined]
    sample = CalibrationSample.of(value for row in values for value in row)
    population: Population = "first" if calibration == "first" else "batch"
    stats = sample.stats(population=population, **names) if sample.values else None
    return [stats] * len(combined)


def initial_chains(result: Result) -> tuple[ScoredChain, ...]:
    """The chains of round 0."""
    return result.rounds[0].chains if result.rounds else ()


def all_chains(result: Result) -> tuple[ScoredChain, ...]:
    """Every chain of every round, in order."""
    return tuple(scored for round in result.rounds for scored in round.chains)


def without_rounds(result: Result) -> Result:
    """The result without its chains: all but chains.jsonl needs, in a fraction of the memory."""
    return replace(result, rounds=())
