"""Label the steps of solutions without people: by completing from every step, from worked solutions, or by rule.

Math-Shepherd's automatic annotation: Wang et al., 2024, arXiv 2312.08935, section 3.3.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from magicore._sync import run_sync
from magicore.answers import equivalent, extract
from magicore.api import SolutionLike, as_given, make_config
from magicore.config import RunConfig
from magicore.errors import BudgetExceeded, InputError, LanguageModelError, UnknownNameError
from magicore.llms.base import LanguageModel
from magicore.report.observing import observed
from magicore.runtime.budget import Halt
from magicore.runtime.directory import memory_store, open_directory
from magicore.runtime.observer import RunObserver
from magicore.runtime.open import open_engine
from magicore.runtime.runtime import Engine, Runtime, collect
from magicore.runtime.schedule import in_order
from magicore.store.json_lines import write_whole
from magicore.store.solutions import GivenSolution
from magicore.training.continuing import Continuer
from magicore.training.label_rules import labels_by_arithmetic, labels_by_gold
from magicore.training.labels import (
    LABEL_SOURCES,
    LabelledSolution,
    LabelSource,
    StepLabel,
    Trials,
    label_of_trials,
    label_summary,
    without_label,
    write_labels,
)
from magicore.types import Chain, Problem, Result
from reward_models.steps import with_steps
from reward_models.types import Solution

LABELS, LABELS_SUMMARY = "labels.jsonl", "labels.json"


@dataclass(frozen=True, kw_only=True)
class Labelling:
    """What labelling brought: the solutions in order, counts, and whether it was ended early."""

    labelled: tuple[LabelledSolution, ...]
    summary: Mapping[str, Any]
    interrupted: bool = False


def label_steps(solutions: Sequence[SolutionLike], **options: Any) -> Labelling:
    """Label every step; the synchronous form of :func:`alabel_steps`."""
    halt = options.setdefault("halt", Halt())
    return run_sync(alabel_steps(solutions, **options), interrupted=halt.set)


async def alabel_steps(  # noqa: PLR0913 - a front door takes its options as keywords
    solutions: Sequence[SolutionLike],
    *,
    source: LabelSource = "model",
    model: str | LanguageModel | None = None,
    n: int = 8,
    soft: bool = False,
    worked: Mapping[str, str] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    config: RunConfig | str | Path | None = None,
    progress: bool | None = None,
    halt: Halt | None = None,
    **settings: Any,
) -> Labelling:
    """Label every step of every solution.

    ``source="model"``: each solution is completed ``n`` times from the end of each step; a step's label says whether
    (hard) or how often (soft) the gold answer is reached. The last step of a solution that ended with an answer needs
    no completion: its label is whether that answer is right. ``"gold"`` compares with worked solutions
    (:func:`~magicore.training.label_rules.labels_by_gold`), ``"arithmetic"`` checks equations; neither calls a model.

    Args:
        solutions: As read by :func:`magicore.store.solutions.read_solutions`, with problems that have gold answers.
        source: Where labels come from.
        model: A name or an object, for ``source="model"``.
        n: Completions a step, at least 1.
        soft: The share that reaches the answer, instead of whether any does.
        worked: Worked solutions by problem id, for ``source="gold"``.
        out: A directory for the store, labels.jsonl and labels.json. The same call goes on where it was interrupted.
        force: Take over a directory of other settings; its store is used where it fits.
        config: A configuration or a TOML file.
        **settings: Settings of :class:`RunConfig`: ``budget``, ``temperature``, ``max_tokens``, ``cache`` ...
        progress: Whether to show progress; by default where stderr is a terminal.
        halt: Ends the labelling early: steps not yet completed are unlabelled (``budget``).

    Raises:
        InputError: Something given is wrong.
        MagicoreError: The model cannot be opened, or never answers.
    """
    if source not in LABEL_SOURCES:
        raise UnknownNameError(f"labels come from {', '.join(LABEL_SOURCES)}, not {source!r}")
    if n < 1:
        raise InputError(f"n, the completions a step, is at least 1, not {n}")
    if source == "gold" and worked is None:
        raise InputError("labels from gold need worked solutions: give worked= (--gold FILE)")
    label = None if model is None or isinstance(model, str) else model
    named = {} if model is None else {"model": model if isinstance(model, str) else model.name}
    chosen = make_config(config, {**named, **settings, "method": "label-steps"}, own_method=False)
    chosen = replace(chosen, options={"from": source, "n": n, "soft": soft})
    given = [replace(one, solution=with_steps(one.solution)) for one in as_given(solutions, chosen.kind)]
    directory = memory_store(chosen) if out is None else open_directory(Path(out), chosen, force=force)
    with directory as store:
        if source != "model":
            labelled = [await _by_rule(one, source, worked or {}) for one in given]
        else:
            with observed(progress) as observing:
                async with open_engine(chosen, store, model=label, halt=halt, watcher=observing) as engine:
                    observing.started(len(given))
                    labelled = await _by_model(engine, observing, given, n, soft=soft, concurrency=chosen.concurrency)
        summary = {**label_summary(labelled), "from": source, "n": n if source == "model" else None, "soft": soft}
        if out is not None:
            write_labels(Path(out) / LABELS, labelled)
            write_whole(Path(out) / LABELS_SUMMARY, [json.dumps(summary, indent=2).encode() + b"\n"])
    return Labelling(labelled=tuple(labelled), summary=summary, interrupted=bool(halt))


async def _by_rule(given: GivenSolution, source: LabelSource, worked: Mapping[str, str]) -> LabelledSolution:
    solution, problem = given.solution, given.problem
    if source == "arithmetic":
        labels = labels_by_arithmetic(solution)
    else:
        labels = labels_by_gold(problem, solution, worked.get(problem.id))
    return _labelled(given, labels, await _outcome(problem, solution), source)


async def _by_model(
    engine: Engine, observing: RunObserver, given: Sequence[GivenSolution], n: int, *, soft: bool, concurrency: int
) -> list[LabelledSolution]:
    continuer = Continuer()

    async def one(item: GivenSolution) -> LabelledSolution:
        rt = engine.bind(item.problem)
        outcome = await _outcome(item.problem, item.solution)
        labels = await _labels(rt, continuer, item.solution, outcome, n, soft=soft)
        observing.answered(Result(id=item.problem.id, kind=item.problem.kind, method="label-steps"))
        return _labelled(item, labels, outcome, "model")

    return [found async for found in in_order(given, one, concurrency=concurrency)]


async def _labels(
    rt: Runtime, continuer: Continuer, solution: Solution, outcome: bool | None, n: int, *, soft: bool
) -> tuple[StepLabel, ...]:
    if rt.problem.answer is None:
        missing = without_label("no_gold", f"problem {rt.problem.id!r} has no gold answer")
        return (missing,) * len(solution.steps)
    steps = solution.steps
    labels: dict[int, StepLabel] = {}
    asked: list[int] = []
    last = len(steps) - 1
    for at, step in enumerate(steps):
        if step.part == "thinking":
            labels[at] = without_label("thinking", "steps in a thinking part are not completed")
        elif not step.text.strip():
            labels[at] = without_label("empty_step", "the step is blank")
        elif at == last and outcome is not None:
            labels[at] = StepLabel(value=float(outcome))
        else:
            asked.append(at)
    found = await collect([continuer.complete(rt, solution.text[: steps[at].end], n) for at in asked])
    for at, chains in zip(asked, found, strict=True):
        trials = await _trials(rt.problem, chains, n)
        over = isinstance(chains, BudgetExceeded)
        labels[at] = label_of_trials(trials, soft=soft, over_budget=over)
    return tuple(labels[at] for at in range(len(steps)))


async def _trials(problem: Problem, chains: list[Chain] | LanguageModelError, n: int) -> Trials:
    if isinstance(chains, LanguageModelError):
        return Trials(failed=n)
    finished = [chain for chain in chains if chain.stop == "stop" or chain.answer is not None]
    reached = sum(await asyncio.gather(*(_reaches(problem, chain.answer) for chain in finished)))
    return Trials(reached=reached, finished=len(finished), cut=len(chains) - len(finished), failed=n - len(chains))


async def _reaches(problem: Problem, answer: str | None) -> bool:
    if answer is None:
        return False
    if problem.kind == "math":  # parsed in worker processes, which takes time
        return await asyncio.to_thread(equivalent, answer, problem.answer, problem.kind, problem.options)
    return equivalent(answer, problem.answer, problem.kind, problem.options)


async def _outcome(problem: Problem, solution: Solution) -> bool | None:
    """Whether the solution's own final answer is right; ``None`` without a gold, or without an answer."""
    if problem.answer is None:
        return None
    found = extract(solution.text, problem.kind, options=problem.options, stop=solution.stop or "stop")
    return None if found.value is None else await _reaches(problem, found.value)


def _labelled(
    given: GivenSolution, labels: tuple[StepLabel, ...], outcome: bool | None, source: LabelSource
) -> LabelledSolution:
    return LabelledSolution(
        problem=given.problem,
        solution=given.solution,
        labels=labels,
        outcome=outcome,
        source=source,
        chain=given.solution.id,
    )
