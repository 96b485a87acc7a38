"""The library's front door: solve questions, score solutions, refine solutions; each with an asynchronous twin.

Results come in input order. Progress is shown when stderr is a terminal. The synchronous forms also work where an event
loop is running already, as in a notebook.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from magicore._sync import run_sync
from magicore.answers.kinds import Kind
from magicore.chains import read_chain
from magicore.config import RunConfig, load_config
from magicore.datasets import read_problem
from magicore.distributed.cluster import RayCluster, as_cluster
from magicore.distributed.run import check_cluster_run, claim_directory, run_on_cluster, without_hosted
from magicore.errors import InputError, MagicoreError
from magicore.llms.base import LanguageModel
from magicore.methods import AnyMethod, make_method, method_options, preset
from magicore.methods.given import RefineGiven
from magicore.methods.magicore import Magicore
from magicore.report.observing import observed
from magicore.runtime.batch import Run, done_before, make_batch
from magicore.runtime.budget import Halt
from magicore.runtime.directory import memory_store, open_directory
from magicore.runtime.estimate import Estimate, estimate
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import open_engine
from magicore.runtime.runtime import Engine
from magicore.runtime.source import ProblemSource, Survey
from magicore.runtime.stages import Stage
from magicore.store.run_store import RunStore
from magicore.store.solutions import GivenSolution
from magicore.types import CallKey, Chain, Completion, Problem, Result, ScoredChain, StopReason
from reward_models.base import OutcomeRewardModel, ProcessRewardModel
from reward_models.types import Solution

ProblemLike = Problem | str | Mapping[str, Any]
Problems = str | Path | Iterable[ProblemLike]
SolutionLike = Solution | GivenSolution
Configuration = RunConfig | str | Path | None
log = logging.getLogger(__name__)


class Approval:
    """Asked, once the models are open and before anything is spent, whether a remote run may cost what it may cost.

    This one always agrees; the command line asks.
    """

    def __call__(self, cost: Estimate) -> None:
        """Return to agree; raise to refuse."""


def solve(question: ProblemLike, **options: Any) -> Result:
    """Answer one question; the synchronous form of :func:`asolve`.

    ::

        magicore.solve("What is 12 + 30 - 5?", model="embedded", method="self-consistency", k=8).answer
    """
    return run_sync(asolve(question, **options))


async def asolve(question: ProblemLike, **options: Any) -> Result:
    """Answer one question. ``options`` are those of :func:`asolve_batch`.

    A calibrated method routes it by a saved calibration (``calibration=FILE``) or, with a warning in the result, by its
    own chains.

    Raises:
        MagicoreError: something given is wrong, or the question could not be answered.
    """
    finished = await asolve_batch([question], **{"progress": False, **options})
    for remark in finished.summary.get("warnings", ()):
        log.warning(remark)
    result = finished.results[0]
    if result.error is not None:
        raise MagicoreError(result.error.message)
    return result


def solve_batch(problems: Problems | None = None, config: Configuration = None, **options: Any) -> Run:
    """Answer a batch of problems; the synchronous form of :func:`asolve_batch`.

    ::

        run = magicore.solve_batch("gsm8k.jsonl", model="openai:gpt-4o-mini", orm="judge", prm="judge", k=8)
    """
    halt = options.setdefault("halt", Halt())
    return run_sync(asolve_batch(problems, config, **options), interrupted=halt.set)


async def asolve_batch(  # noqa: PLR0913 - a front door takes its options as keywords
    problems: Problems | None = None,
    config: Configuration = None,
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    method: str | AnyMethod | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool | RunObserver | None = None,
    approval: Approval | None = None,
    halt: Halt | None = None,
    stage: Stage = "all",
    log_json: str | Path | None = None,
    traces: bool = False,
    engine: str | RayCluster = "local",
    **settings: Any,
) -> Run:
    """Run one method over a batch of problems.

    Args:
        problems: A file or data set (see :func:`magicore.datasets.load_problems`), or the problems themselves, each a
            :class:`Problem`, a question, or a mapping with the fields of a problems file.
        config: A configuration or a TOML file; the other arguments go over it.
        model: A name, or an object that follows :class:`~magicore.llms.base.LanguageModel`.
        orm: A name, or an object that follows :class:`~reward_models.base.OutcomeRewardModel`.
        prm: A name, or an object that follows :class:`~reward_models.base.ProcessRewardModel`.
        method: A name, or a method object.
        out: A directory for the store and the files; without it nothing is kept. The chains are then in its files, and
            the results returned have no ``rounds``, so that large runs fit in memory. An interrupted run with the same
            settings and directory goes on where it stopped.
        force: Take over a directory that holds a run with other settings; what it paid for stays in its store.
        progress: Whether to show a progress bar (by default where stderr is a terminal), or an observer of your own.
        approval: Asked before a remote run spends anything.
        halt: Lets the run end early: what is in flight finishes and is kept, and every problem ends with what it has.
            The synchronous form sets it on the first Ctrl-C.
        stage: ``prepare`` does the first stage of a calibrated method only and keeps it in ``out``; ``finish`` goes on
            from there (see :mod:`magicore.runtime.stages`). With ``shard="2/8"`` among the settings this process takes
            one shard of the problems, and :func:`magicore.merge_runs` puts shards together.
        log_json: A file to which every event of the run is appended as a JSON object.
        traces: Whether OpenTelemetry spans are written (see :class:`magicore.report.traces.Traces`).
        engine: ``local``, this process; ``ray``, a Ray cluster, or a :class:`~magicore.distributed.RayCluster` that
            says which and what to take of it. The results are the same, and a run may go on with another engine.
        **settings: Any setting of :class:`RunConfig`, and any option of the method (``k``, ``iterations``, ``router``).

    Raises:
        MagicoreError: something given is wrong, or the run as a whole cannot go on. A single problem that fails does
            not raise: its result has ``stop="failed"`` and ``error``.
    """
    named = {"model": model, "orm": orm, "prm": prm, "method": method}
    objects: dict[str, Any] = {name: v for name, v in named.items() if v is not None and not isinstance(v, str)}
    labels = {name: _label(value) for name, value in named.items() if value is not None}
    chosen = make_config(config, {**labels, **settings}, own_method="method" in objects)
    made: AnyMethod = objects.pop("method", None) or make_method(chosen.method, **chosen.options)
    batch = make_batch(made, as_source(problems, chosen), chosen, None if out is None else Path(out), stage)
    cluster = as_cluster(engine)
    if cluster is not None:
        check_cluster_run(batch)
    if not force and (before := done_before(batch)) is not None:
        return before
    survey = batch.source.survey()
    chosen = batch.config
    events = None if log_json is None else Path(log_json)
    if cluster is not None:
        claim_directory(batch, cluster, force=force)
        with observed(progress, log_json=events, traces=traces) as observing:
            await _approved(made, survey, chosen, objects, approval)
            return await run_on_cluster(
                batch, survey, cluster, objects=objects, observer=observing, halt=halt, force=force
            )
    directory = memory_store(chosen) if batch.out is None else open_directory(batch.out, chosen, force=force)
    with directory as store, observed(progress, log_json=events, traces=traces) as observing:
        async with open_engine(chosen, store, halt=halt, watcher=observing, **objects) as opened:
            cost = estimate(made, survey, opened, chosen, stage)
            if cost is not None and approval is not None:
                approval(cost)
            return await batch.work(survey, opened, store, observing)


async def _approved(
    method: AnyMethod, survey: Survey, config: RunConfig, objects: Mapping[str, Any], approval: Approval | None
) -> None:
    """Ask whether a cluster may spend what a run may cost, without loading what its workers will."""
    if approval is None:
        return
    config, objects = without_hosted(config, objects)
    with memory_store(replace(config, cache=None)) as store:
        async with open_engine(config, store, **objects) as opened:
            cost = estimate(method, survey, opened, config)
    if cost is not None:
        approval(cost)


def _label(value: Any) -> str:
    return value if isinstance(value, str) else str(getattr(value, "name", type(value).__name__))


def make_config(config: Configuration, settings: Mapping[str, Any], *, own_method: bool = False) -> RunConfig:
    """A configuration from settings; whatever :class:`RunConfig` does not know is taken as an option of the method.

    ``own_method`` says that the method was given as an object, which holds its options already.
    """
    known = {field.name for field in fields(RunConfig)}
    if "preset" in settings:
        settings = {**preset(settings["preset"]), **{name: v for name, v in settings.items() if name != "preset"}}
    overrides = {name: value for name, value in settings.items() if name in known}
    options = {name: value for name, value in settings.items() if name not in known}
    if options and own_method:
        raise InputError(f"a method object already holds its options; {', '.join(options)} cannot be given beside it")
    if options:
        overrides["options"] = {**overrides.get("options", {}), **options}
    if not isinstance(config, RunConfig):
        return load_config(config, overrides)
    values = {name: getattr(config, name) for name in known}
    for name, value in overrides.items():
        values[name] = {**values[name], **value} if isinstance(value, Mapping) else value
    return RunConfig(**values)


def as_source(problems: Problems | None, config: RunConfig) -> ProblemSource:
    """The problems of a run, from a file, a data set, or Python values; files are read item by item."""
    source = config.data if problems is None else problems
    if source is None:
        raise InputError("no problems were given: name a file with data= (--data), or pass them")
    if isinstance(source, str | Path):
        chosen = {"kind": config.kind, "fields": config.fields, "limit": config.limit, "offset": config.offset}
        return ProblemSource.named(str(source), chosen)
    return ProblemSource.of(_given_problems(source, config))


def _given_problems(source: Iterable[ProblemLike], config: RunConfig) -> list[Problem]:
    found = [as_problem(item, number, config.kind) for number, item in enumerate(source)]
    if len({problem.id for problem in found}) < len(found):
        raise InputError("two problems have the same id; ids must differ")
    if not found:
        raise InputError("the list of problems is empty")
    stop = None if config.limit is None else config.offset + config.limit
    return found[config.offset : stop]


def as_problem(item: ProblemLike, number: int, kind: str | None = None) -> Problem:
    """A problem from a question or a mapping; its id is ``number`` unless it has one."""
    if isinstance(item, Problem):
        return item
    row: Mapping[str, Any] = {"question": item} if isinstance(item, str) else item
    return read_problem(row, f"problem {number}", str(row.get("id", number)), kind=cast(Kind | None, kind))


def score_batch(
    solutions: Sequence[SolutionLike],
    *,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    **settings: Any,
) -> list[ScoredChain]:
    """Score a flat batch of solutions; the synchronous form of :func:`ascore_batch`."""
    return run_sync(ascore_batch(solutions, orm=orm, prm=prm, **settings))


async def ascore_batch(
    solutions: Sequence[SolutionLike],
    *,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    **settings: Any,
) -> list[ScoredChain]:
    """Score a flat batch of solutions with an outcome model, a process model, or both.

    Args:
        solutions: What to score; solutions without steps are split into steps.
        orm, prm: Names or objects, as in :func:`asolve_batch`.
        **settings: Settings of :class:`RunConfig`, such as ``aggregation``, ``device``, ``dtype``.

    Returns:
        One scored chain a solution, in order.

    Raises:
        InputError: neither model is given.
        RewardModelError: a model failed.
    """
    named = {name: value for name, value in (("orm", orm), ("prm", prm)) if value is not None}
    given: dict[str, Any] = {name: value for name, value in named.items() if not isinstance(value, str)}
    config = load_config(None, {**settings, **{name: _label(value) for name, value in named.items()}})
    store = RunStore()
    try:
        async with open_engine(config, store, generation=False, **given) as engine:
            return await score_solutions(engine, as_given(solutions, config.kind))
    finally:
        store.close()


async def score_solutions(engine: Engine, solutions: Sequence[GivenSolution]) -> list[ScoredChain]:
    """Score solutions with an open engine's reward models; as :func:`ascore_batch`."""
    if engine.orm is None and engine.prm is None:
        raise InputError("score needs a reward model: give an outcome model, a process model, or both")
    rt = engine.bind(Problem(id="score", question="", kind="text"))
    chains = given_chains(solutions)
    return list(await rt.score(chains, questions=[given.solution.question for given in solutions]))


def refine_batch(
    solutions: Sequence[SolutionLike],
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    iterations: int = 1,
    **settings: Any,
) -> Run:
    """Review and refine given solutions; the synchronous form of :func:`arefine_batch`."""
    return run_sync(arefine_batch(solutions, model=model, orm=orm, prm=prm, iterations=iterations, **settings))


async def arefine_batch(
    solutions: Sequence[SolutionLike],
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    iterations: int = 1,
    **settings: Any,
) -> Run:
    """Review and refine every given solution, whatever its difficulty, for ``iterations`` rounds.

    Solutions of the same problem are its chains: after each round as many are kept as were given. The result's rounds
    hold every chain; a refined one names its parent. ``router="magicore"`` refines hard questions only.

    Args:
        solutions: What to refine, as :class:`~reward_models.types.Solution` (equal questions make one problem) or as
            read from a file by :func:`magicore.store.solutions.read_solutions`.
        model, orm, prm: As in :func:`asolve_batch`; both reward models are needed.
        iterations: Rounds at the most, 0 or more.
        **settings: Settings of :class:`RunConfig`, options of the ``magicore`` method, and those of
            :func:`asolve_batch`, such as ``out``.
    """
    given = as_given(solutions, settings.get("kind"))
    if not given:
        raise InputError("there are no solutions to refine")
    options = {"router": "hard", **{name: settings.pop(name) for name in list(settings) if name in _REFINE_OPTIONS}}
    method = make_method("magicore", k=len(given), iterations=iterations, **options)
    assert isinstance(method, Magicore)
    chains: dict[str, tuple[Chain, ...]] = {}
    labels: dict[str, tuple[float | None, ...]] = {}
    for item, chain in zip(given, given_chains(given), strict=True):
        chains[item.problem.id] = (*chains.get(item.problem.id, ()), chain)
        if item.step_labels is not None:
            labels[chain.id] = item.step_labels
    problems = {item.problem.id: item.problem for item in given}
    refinement = RefineGiven(method=method, chains=chains, step_labels=labels)
    return await asolve_batch(list(problems.values()), model=model, orm=orm, prm=prm, method=refinement, **settings)


_REFINE_OPTIONS = frozenset(method_options("magicore")) - {"k", "iterations"}


def as_given(solutions: Sequence[SolutionLike], kind: str | None) -> list[GivenSolution]:
    """Solutions with the problems they answer; plain solutions of equal questions share one."""
    problems: dict[str, Problem] = {}
    given: list[GivenSolution] = []
    for item in solutions:
        if isinstance(item, GivenSolution):
            given.append(item)
            continue
        if item.question not in problems:
            problems[item.question] = as_problem({"question": item.question}, len(problems) + 1, kind)
        given.append(GivenSolution(problem=problems[item.question], solution=item))
    return given


def given_chains(solutions: Sequence[GivenSolution]) -> list[Chain]:
    """Given solutions as chains, each with its own steps where it has them, numbered within its problem."""
    counts: Counter[str] = Counter()
    chains: list[Chain] = []
    for given in solutions:
        if given.chain is not None:
            chains.append(given.chain.chain)
            continue
        solution, problem = given.solution, given.problem
        completion = Completion(
            index=counts[problem.id],
            text=solution.text,
            thinking=solution.thinking,
            stop=cast(StopReason, solution.stop or "stop"),
            token_logprobs=solution.token_logprobs,
        )
        counts[problem.id] += 1
        chain = read_chain(problem, CallKey(problem=problem.id, role="solver"), completion)
        chains.append(replace(chain, steps=solution.steps or chain.steps, top_logprobs=solution.top_logprobs))
    return chains
