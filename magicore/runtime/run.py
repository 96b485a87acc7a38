"""Run a method over many problems: concurrently, in two stages where it is calibrated, results in problem order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, TypeVar

from difficulty import CalibrationSample, Population, RewardStats, RunningStats, load_calibration
from magicore.config import CALIBRATIONS
from magicore.errors import InputError, LanguageModelError, MagicoreError, RewardModelError
from magicore.methods.base import AnyMethod, CalibratedMethod, Prepared
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import require_reward_models
from magicore.runtime.runtime import Engine, RunAborted, Runtime
from magicore.runtime.schedule import in_order
from magicore.store.prepared import PreparedRow
from magicore.types import Failure, Problem, Result, ScoredChain

ItemT = TypeVar("ItemT")

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
class PreparedRun:
    """What the first stage of a calibrated method brought: every problem's S values, in problem order.

    ``chains``, ``cut`` and ``wall_s`` are as in :class:`RunOutcome`.
    """

    rows: tuple[PreparedRow, ...]
    chains: int
    cut: int
    wall_s: float

    @property
    def failed(self) -> int:
        """How many problems could not be prepared."""
        return sum(row.failure is not None for row in self.rows)


Combined = Sequence[Sequence[float | None]]
"""S of the initial chains of every problem, in problem order; ``None`` for a chain without both scores."""


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """What is known of a problem after preparation: its S values, and its chains where they are still in memory."""

    id: str
    combined: tuple[float | None, ...] = ()
    cut: int = 0
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
            self.cut += _is_cut(scored)
        if self.sink is not None:
            self.sink.add(result, rt.ledger.timings)
        self.results.append(result if self.sink is None else without_rounds(result))


async def run_method(
    method: AnyMethod,
    problems: Iterable[Problem],
    engine: Engine,
    *,
    calibration: str | RewardStats = "batch",
    combined: Combined | None = None,
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
        calibration: As in :class:`~magicore.config.RunConfig`, or the statistics themselves.
        combined: What an earlier first stage brought (see :func:`prepare_method`). With it, or with statistics that are
            known beforehand, each problem goes through both stages at once.
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
    with _aborts_explained():
        stats = await runner.run(problems, calibration, combined, tally)
    return RunOutcome(
        results=tuple(tally.results),
        stats=stats,
        chains=tally.chains,
        cut=tally.cut,
        wall_s=time.perf_counter() - started,
    )


async def prepare_method(
    method: CalibratedMethod,
    problems: Iterable[Problem],
    engine: Engine,
    *,
    concurrency: int = 64,
    observer: RunObserver | None = None,
    total: int | None = None,
) -> PreparedRun:
    """The first stage alone: draw, score and store the initial chains of every problem. Arguments as in
    :func:`run_method`.

    Raises:
        MagicoreError: as :func:`run_method`.
    """
    require_reward_models(engine, method.needs, method.name)
    started = time.perf_counter()
    watching = observer or RunObserver()
    watching.started(len(problems) if isinstance(problems, Sequence) else total)
    rows: list[PreparedRow] = []
    cut = 0
    with _aborts_explained():
        async for stage in _Runner(method, engine, concurrency, watching, kept=0).prepare(problems, method):
            failure = None if stage.failure is None else f"{stage.failure.type}: {stage.failure.message}"
            rows.append(PreparedRow(id=stage.id, combined=stage.combined, failure=failure))
            cut += stage.cut
    chains = sum(len(row.combined) for row in rows)
    return PreparedRun(rows=tuple(rows), chains=chains, cut=cut, wall_s=time.perf_counter() - started)


@contextmanager
def _aborts_explained() -> Iterator[None]:
    """A run that cannot go on raises what the user is told."""
    try:
        yield
    except RunAborted as error:
        if isinstance(error.__cause__, MagicoreError):
            raise error.__cause__ from None
        raise


class _Runner:
    """Works on problems; up to ``kept`` prepared ones stay in memory between the two stages."""

    def __init__(
        self,
        method: AnyMethod,
        engine: Engine,
        concurrency: int,
        observer: RunObserver,
        *,
        kept: int = PREPARED_KEPT,
    ) -> None:
        self._method = method
        self._engine = engine
        self._concurrency = concurrency
        self._observer = observer
        self._room = kept

    async def run(
        self, problems: Iterable[Problem], calibration: str | RewardStats, combined: Combined | None, tally: _Tally
    ) -> RewardStats | None:
        method = self._method
        if not isinstance(method, CalibratedMethod):
            await self._tallied(problems, lambda problem: self._guarded(problem, method.solve), tally)
            return None
        stages: Iterable[_Stage | None] = repeat(None)
        known: Iterable[RewardStats | None]
        alone = False
        if isinstance(calibration, RewardStats):
            known = repeat(calibration)
        elif calibration not in CALIBRATIONS:
            known = repeat(load_calibration(calibration))
        else:
            if combined is None:
                found = deque([stage async for stage in self.prepare(problems, method)])
                combined = [stage.combined for stage in found]
                stages = _taken(found)
            alone = len(combined) == 1
            known = calibrate(combined, calibration, scorer_names(self._engine))
        last: RewardStats | None = None
        waiting = iter(zip(stages, known, strict=False))

        def items() -> Iterator[tuple[Problem, _Stage | None, RewardStats | None]]:
            nonlocal last
            for problem in problems:
                found = next(waiting, None)
                if found is None:
                    raise InputError("there are more problems than were prepared: did the file change during the run?")
                stage, last = found
                yield problem, stage, last

        await self._tallied(items(), lambda item: self._finish(*item, method, alone=alone), tally)
        return last

    def prepare(self, problems: Iterable[Problem], method: CalibratedMethod) -> AsyncIterator[_Stage]:
        """The first stage of every problem, in order."""
        return in_order(problems, lambda problem: self._prepare(problem, method), concurrency=self._concurrency)

    async def _tallied(
        self, items: Iterable[ItemT], work: Callable[[ItemT], Awaitable[tuple[Result, Runtime]]], tally: _Tally
    ) -> None:
        async for result, rt in in_order(items, work, concurrency=self._concurrency):
            tally.add(result, rt)

    async def _prepare(self, problem: Problem, method: CalibratedMethod) -> _Stage:
        rt = self._engine.bind(problem)
        try:
            prepared = await method.prepare(rt)
        except (LanguageModelError, RewardModelError) as error:
            return _Stage(id=problem.id, runtime=rt, failure=_failure(error))
        finally:
            self._observer.prepared(problem)
        combined = tuple(scored.combined for scored in prepared.chains)
        stage = _Stage(id=problem.id, combined=combined, cut=sum(map(_is_cut, prepared.chains)))
        if self._room == 0:
            return stage
        self._room -= 1
        return replace(stage, prepared=prepared, runtime=rt)

    async def _finish(
        self,
        problem: Problem,
        stage: _Stage | None,
        stats: RewardStats | None,
        method: CalibratedMethod,
        *,
        alone: bool,
    ) -> tuple[Result, Runtime]:
        """The second stage; also the first, where ``stage`` is missing, or its chains are not in memory any more."""
        rt = self._engine.bind(problem) if stage is None or stage.runtime is None else stage.runtime
        if stage is not None and stage.failure is not None:
            return self._done(rt, failed(rt, method.name, stage.failure))
        if alone:
            rt.warn("calibrated on this problem's own chains only; a saved calibration file routes one question better")

        async def solve(rt: Runtime) -> Result:
            prepared = None if stage is None else stage.prepared
            if prepared is None:
                prepared = await method.prepare(rt)
            if stage is None:
                self._observer.prepared(problem)
            return await method.finish(prepared, stats, rt)

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


def scorer_names(engine: Engine) -> dict[str, str | None]:
    """What statistics of an engine's scores are said to be of."""
    return {
        "orm": None if engine.orm is None else engine.orm.name,
        "prm": None if engine.prm is None else engine.prm.name,
        "aggregation": engine.aggregation,
    }


def calibrate(combined: Combined, calibration: str, names: Mapping[str, str | None]) -> list[RewardStats | None]:
    """The statistics of S that each problem is routed by, in problem order; ``None`` where no chain has both scores.

    ``batch``: over every initial chain of every problem (the paper's reading), the same for all. ``first``: over each
    problem's first chain (the published code's). ``running``: over the chains of this problem and those before it.
    Later rounds never move them. ``names`` are those of :func:`scorer_names`, recorded.
    """
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


def _is_cut(scored: ScoredChain) -> bool:
    return scored.chain.stop == "length"


def initial_chains(result: Result) -> tuple[ScoredChain, ...]:
    """The chains of round 0."""
    return result.rounds[0].chains if result.rounds else ()


def all_chains(result: Result) -> tuple[ScoredChain, ...]:
    """Every chain of every round, in order."""
    return tuple(scored for round in result.rounds for scored in round.chains)


def without_rounds(result: Result) -> Result:
    """The result without its chains: all but chains.jsonl needs, in a fraction of the memory."""
    return replace(result, rounds=())
