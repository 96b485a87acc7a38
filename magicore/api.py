"""The library's front door: run a method over problems, score solutions, refine solutions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from difficulty import RewardStats
from magicore._sync import run_sync
from magicore.answers.kinds import Kind
from magicore.chains import read_chain
from magicore.config import RunConfig, load_config
from magicore.datasets import load_problems, read_problem
from magicore.errors import InputError
from magicore.evaluate import summarise
from magicore.llms.base import LanguageModel
from magicore.methods import AnyMethod, make_method
from magicore.methods.given import RefineGiven
from magicore.methods.magicore import Magicore
from magicore.runtime.directory import open_directory, write_outcome
from magicore.runtime.open import open_engine
from magicore.runtime.run import RunObserver, RunOutcome, run_method
from magicore.runtime.runtime import Engine
from magicore.store.run_store import RunStore
from magicore.store.solutions import GivenSolution
from magicore.types import CallKey, Chain, Completion, Problem, Result, ScoredChain, StopReason
from reward_models.base import OutcomeRewardModel, ProcessRewardModel
from reward_models.types import Solution

ProblemLike = Problem | str | Mapping[str, Any]
Problems = str | Path | Iterable[ProblemLike]
SolutionLike = Solution | GivenSolution


@dataclass(frozen=True, kw_only=True)
class Run:
    """A finished run: results in problem order, the batch's statistics, and the summary (files.md, summary.json)."""

    config: RunConfig
    results: tuple[Result, ...]
    stats: RewardStats | None
    summary: Mapping[str, Any]
    outcome: RunOutcome


def run(problems: Problems | None = None, **settings: Any) -> Run:
    """Run one method over a batch of problems; the synchronous form of :func:`arun`.

    ::

        run = magicore.run("gsm8k.jsonl", model="openai:gpt-4o-mini", orm="judge", prm="judge", k=8)
    """
    return run_sync(arun(problems, **settings))


async def arun(
    problems: Problems | None = None,
    *,
    config: RunConfig | str | Path | None = None,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    method: str | AnyMethod | None = None,
    out: str | Path | None = None,
    observer: RunObserver | None = None,
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
        out: A directory for the store and the files; without it nothing is kept. An interrupted run with the same
            settings and directory goes on where it stopped.
        observer: Watches the run's progress.
        **settings: Any setting of :class:`RunConfig`, and any option of the method (``k``, ``iterations``, ``router``).

    Raises:
        MagicoreError: something given is wrong, or the run as a whole cannot go on. A single problem that fails does
            not raise: its result has ``stop="failed"`` and ``error``.
    """
    named = {"model": model, "orm": orm, "prm": prm, "method": method}
    plain = {name: value for name, value in named.items() if isinstance(value, str)}
    objects = {name: value for name, value in named.items() if value is not None and not isinstance(value, str)}
    labels = {name: getattr(value, "name", type(value).__name__) for name, value in objects.items()}
    chosen = make_config(config, {**plain, **labels, **settings}, method=method)
    made = (
        method if method is not None and not isinstance(method, str) else make_method(chosen.method, **chosen.options)
    )
    batch = as_problems(problems, chosen)
    given: dict[str, Any] = {name: value for name, value in objects.items() if name != "method"}
    directory: AbstractContextManager[RunStore] = (
        nullcontext(RunStore()) if out is None else open_directory(Path(out), chosen)
    )
    with directory as store:
        async with open_engine(chosen, store, **given) as engine:
            outcome = await run_method(
                made,
                batch,
                engine,
                calibration=chosen.calibration,
                concurrency=chosen.concurrency,
                observer=observer,
            )
        summary = summarise(outcome.results, config=chosen, wall_s=outcome.wall_s)
        if out is not None:
            write_outcome(Path(out), outcome, chosen, summary)
    return Run(config=chosen, results=outcome.results, stats=outcome.stats, summary=summary, outcome=outcome)


def make_config(config: RunConfig | str | Path | None, settings: Mapping[str, Any], *, method: Any = None) -> RunConfig:
    """A configuration from settings; whatever :class:`RunConfig` does not know is taken as an option of the method."""
    known = set(RunConfig.__dataclass_fields__)
    overrides = {name: value for name, value in settings.items() if name in known}
    options = {name: value for name, value in settings.items() if name not in known}
    if options and method is not None and not isinstance(method, str):
        raise InputError(f"a method object already holds its options; {', '.join(options)} cannot be given beside it")
    if options:
        overrides["options"] = {**overrides.get("options", {}), **options}
    if isinstance(config, RunConfig):
        values = {name: getattr(config, name) for name in known}
        for name, value in overrides.items():
            values[name] = {**values[name], **value} if isinstance(value, Mapping) else value
        return RunConfig(**values)
    return load_config(config, overrides)


def as_problems(problems: Problems | None, config: RunConfig) -> list[Problem]:
    """The problems of a run, from a file, a data set, or Python values."""
    source = config.data if problems is None else problems
    if source is None:
        raise InputError("no problems were given: name a file with data= (--data), or pass them")
    if isinstance(source, str | Path):
        return load_problems(
            str(source), kind=config.kind, fields=config.fields, limit=config.limit, offset=config.offset
        )
    found = [as_problem(item, number, config.kind) for number, item in enumerate(source, 1)]
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


def score(
    solutions: Sequence[SolutionLike],
    *,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    **settings: Any,
) -> list[ScoredChain]:
    """Score a flat batch of solutions; the synchronous form of :func:`ascore`."""
    return run_sync(ascore(solutions, orm=orm, prm=prm, **settings))


async def ascore(
    solutions: Sequence[SolutionLike],
    *,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    **settings: Any,
) -> list[ScoredChain]:
    """Score a flat batch of solutions with an outcome model, a process model, or both.

    Args:
        solutions: What to score; solutions without steps are split into steps.
        orm, prm: Names or objects, as in :func:`arun`.
        **settings: Settings of :class:`RunConfig`, such as ``aggregation``, ``device``, ``dtype``.

    Returns:
        One scored chain a solution, in order.

    Raises:
        InputError: neither model is given.
        RewardModelError: a model failed.
    """
    named = {name: value for name, value in (("orm", orm), ("prm", prm)) if value is not None}
    objects = {name: value for name, value in named.items() if not isinstance(value, str)}
    labels = {name: value if isinstance(value, str) else value.name for name, value in named.items()}
    config = load_config(None, {**settings, **labels})
    given: dict[str, Any] = objects
    store = RunStore()
    try:
        async with open_engine(config, store, **given) as engine:
            return await score_solutions(engine, as_given(solutions, config.kind))
    finally:
        store.close()


async def score_solutions(engine: Engine, solutions: Sequence[GivenSolution]) -> list[ScoredChain]:
    """Score solutions with an open engine's reward models; as :func:`ascore`."""
    if engine.orm is None and engine.prm is None:
        raise InputError("score needs a reward model: give an outcome model, a process model, or both")
    rt = engine.bind(Problem(id="score", question="", kind="text"))
    chains = given_chains(solutions)
    return list(await rt.score(chains, questions=[given.solution.question for given in solutions]))


def refine(
    solutions: Sequence[SolutionLike],
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    iterations: int = 1,
    **settings: Any,
) -> Run:
    """Review and refine given solutions; the synchronous form of :func:`arefine`."""
    return run_sync(arefine(solutions, model=model, orm=orm, prm=prm, iterations=iterations, **settings))


async def arefine(
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
        model, orm, prm: As in :func:`arun`; both reward models are needed.
        iterations: Rounds at the most, 0 or more.
        **settings: Settings of :class:`RunConfig` and options of the ``magicore`` method; ``out`` as in :func:`arun`.
    """
    given = as_given(solutions, settings.get("kind"))
    if not given:
        raise InputError("there are no solutions to refine")
    options = {"router": "hard", **{name: settings.pop(name) for name in list(settings) if name in _REFINE_OPTIONS}}
    method = make_method("magicore", k=len(given), iterations=iterations, **options)
    assert isinstance(method, Magicore)
    chains: dict[str, tuple[Chain, ...]] = {}
    for item, chain in zip(given, given_chains(given), strict=True):
        chains[item.problem.id] = (*chains.get(item.problem.id, ()), chain)
    problems = {item.problem.id: item.problem for item in given}
    refinement = RefineGiven(method=method, chains=chains)
    return await arun(list(problems.values()), model=model, orm=orm, prm=prm, method=refinement, **settings)


_REFINE_OPTIONS = frozenset({"router", "review", "step_scores", "select", "select_by"})


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
