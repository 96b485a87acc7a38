"""The library's front door: run a method over problems, score solutions, refine solutions."""

from __future__ import annotations

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
from magicore.runtime.runtime import Engine
from magicore.runtime.run import RunObserver, RunOutcome, run_method
from magicore.store.run_store import RunStore
from magicore.types import CallKey, Chain, Completion, Problem, Result, ScoredChain, StopReason
from reward_models.base import OutcomeRewardModel, ProcessRewardModel
from reward_models.steps import split_steps
from reward_models.types import Solution

ProblemLike = Problem | str | Mapping[str, Any]
Problems = str | Path | Iterable[ProblemLike]


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
    made = method if method is not None and not isinstance(method, str) else make_method(chosen.method, **chosen.options)
    batch = as_problems(problems, chosen)
    given: dict[str, Any] = {name: value for name, value in objects.items() if name != "method"}
    directory: AbstractContextManager[RunStore] = nullcontext(RunStore()) if out is None else open_directory(Path(out), chosen)
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


def make_config(
    config: RunConfig | str | Path | None, settings: Mapping[str, Any], *, method: Any = None
) -> RunConfig:
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
    solutions: Sequence[Solution],
    *,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    **settings: Any,
) -> list[ScoredChain]:
    """Score a flat batch of solutions; the synchronous form of :func:`ascore`."""
    return run_sync(ascore(solutions, orm=orm, prm=prm, **settings))


async def ascore(
    solutions: Sequence[Solution],
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
    config, given = _config_with(settings, orm=orm, prm=prm)
    store = RunStore()
    try:
        async with open_engine(config, store, **given) as engine:
            return await score_solutions(engine, solutions)
    finally:
        store.close()


async def score_solutions(engine: Engine, solutions: Sequence[Solution]) -> list[ScoredChain]:
    """Score solutions with an open engine's reward models; as :func:`ascore`."""
    if engine.orm is None and engine.prm is None:
        raise InputError("score needs a reward model: give an outcome model, a process model, or both")
    problem = Problem(id="score", question="", kind="text")
    chains = [_chain(solution, problem, index) for index, solution in enumerate(solutions)]
    questions = [solution.question for solution in solutions]
    return list(await engine.bind(problem).score(chains, questions=questions))


def refine(
    solutions: Sequence[Solution],
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
    solutions: Sequence[Solution],
    *,
    model: str | LanguageModel | None = None,
    orm: str | OutcomeRewardModel | None = None,
    prm: str | ProcessRewardModel | None = None,
    iterations: int = 1,
    **settings: Any,
) -> Run:
    """Review and refine every given solution, whatever its difficulty, for ``iterations`` rounds.

    Solutions of the same question are the chains of one problem: after each round as many are kept as were given. The
    result's rounds hold every chain; a refined one names its parent. ``router="magicore"`` refines hard questions only.

    Args:
        solutions: What to refine; ``id`` (where given) names the problem's chains in the results.
        model, orm, prm: As in :func:`arun`; both reward models are needed.
        iterations: Rounds at the most, 0 or more.
        **settings: Settings of :class:`RunConfig` and options of the ``magicore`` method; ``out`` as in :func:`arun`.
    """
    problems, chains = _group(solutions, settings.get("kind"))
    options = {"router": "hard", **{name: settings.pop(name) for name in list(settings) if name in _REFINE_OPTIONS}}
    method = make_method("magicore", k=len(solutions) or 1, iterations=iterations, **options)
    assert isinstance(method, Magicore)
    return await arun(
        problems, model=model, orm=orm, prm=prm, method=RefineGiven(method=method, chains=chains), **settings
    )


_REFINE_OPTIONS = frozenset({"router", "review", "step_scores", "select", "select_by"})


def _group(
    solutions: Sequence[Solution], kind: str | None
) -> tuple[list[Problem], dict[str, tuple[Chain, ...]]]:
    """Solutions by question, as problems and their chains."""
    by_question: dict[str, list[Solution]] = {}
    for solution in solutions:
        by_question.setdefault(solution.question, []).append(solution)
    problems = [as_problem({"question": question}, number, kind) for number, question in enumerate(by_question, 1)]
    chains = {
        problem.id: tuple(_chain(solution, problem, index) for index, solution in enumerate(group))
        for problem, group in zip(problems, by_question.values(), strict=True)
    }
    return problems, chains


def _chain(solution: Solution, problem: Problem, index: int) -> Chain:
    """A given solution as a chain, with its own steps where it has them."""
    completion = Completion(
        index=index,
        text=solution.text,
        thinking=solution.thinking,
        stop=cast(StopReason, solution.stop or "stop"),
        token_logprobs=solution.token_logprobs,
    )
    chain = read_chain(problem, CallKey(problem=problem.id, role="solver"), completion)
    steps = solution.steps or split_steps(solution.text)
    return replace(chain, steps=steps, top_logprobs=solution.top_logprobs)


def _config_with(settings: Mapping[str, Any], **models: Any) -> tuple[RunConfig, dict[str, Any]]:
    """A configuration that names the models, and those that were given as objects."""
    given = {name: model for name, model in models.items() if model is not None and not isinstance(model, str)}
    named = {name: model if isinstance(model, str) else model.name for name, model in models.items() if model}
    return load_config(None, {**settings, **named}), given
