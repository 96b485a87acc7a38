"""Error localisation: which step scores reviewer and refiner see.

The process model's, random ones, the outcome score on every step, none, or labels (the oracle).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from magicore.ablations.arms import FOLDER, Arm, ArmRuns, arm_runs, done_run
from magicore.ablations.finished import FinishedRun, read_run
from magicore.ablations.options import Budgeted, Options
from magicore.ablations.statistics import Scored
from magicore.ablations.study import Study
from magicore.ablations.variants import Beside, finished_magicore, study_of
from magicore.api import solve_batch
from magicore.errors import InputError, MagicoreError
from magicore.evaluate import correctness
from magicore.evaluate.axes import spent_on
from magicore.methods import make_method
from magicore.methods.given import RefineGiven
from magicore.methods.magicore import Magicore
from magicore.runtime.directory import STORE
from magicore.store.json_lines import read_json_lines
from magicore.types import Chain

NAME = "error-localisation"
SOURCES = ("prm", "orm", "random", "none")
Labels = Mapping[str, tuple[float | None, ...]]


def error_localisation_study(directory: Path, options: Options) -> Study:
    """The study ``error-localisation``. With the option ``labels=FILE`` (what ``magicore label-steps`` writes of the
    run's chains) the oracle is an arm, and every arm has one round, the only one that labels serve.

    Raises:
        InputError: there is no finished run of ``magicore``, or the labels do not fit its chains.
    """
    values = options.taking(NAME, "labels")
    base = finished_magicore(directory, NAME)
    labelled = None if "labels" not in values else read_chain_labels(Path(str(values["labels"])))
    fixed = {} if labelled is None else {"iterations": 1}
    arms = [Arm(name=source, settings={**fixed, "step_scores": source}) for source in SOURCES]
    made = arm_runs(base, arms, options)
    more: dict[str, Scored] = {}
    remarks: list[str] = []
    if labelled is not None:
        oracle, remarks = _oracle(base, made, labelled, options)
        if oracle is not None:
            graded = correctness(base.narrowed(options.limit).results)
            right = correctness(oracle.results)
            more["oracle"] = Scored(right=right, unknown=len(graded) - len(right), spent=spent_on(oracle.results))
    return study_of(
        NAME,
        base,
        made,
        options,
        baseline="prm",
        title="Which step scores are seen",
        beside=Beside(arms=more, remarks=tuple(remarks)),
    )


def read_chain_labels(path: Path) -> Labels:
    """Step labels by chain id, from a labels.jsonl.

    Raises:
        InputError: it cannot be read, or a line names no chain or holds no labels.
    """
    found: dict[str, tuple[float | None, ...]] = {}
    for where, row in read_json_lines(path):
        chain, labels = row.get("chain"), row.get("step_labels")
        if not isinstance(chain, str) or not isinstance(labels, list):
            raise InputError(f"{where}: a `chain` and its `step_labels` are expected; magicore label-steps writes both")
        found[chain] = tuple(None if label is None else float(label) for label in labels)
    return found


def _oracle(base: FinishedRun, made: ArmRuns, labels: Labels, options: Options) -> tuple[FinishedRun | None, list[str]]:
    """The arm whose step scores are the labels, over the problems all of whose first chains are labelled."""
    run = made.runs.get("prm") or base.narrowed(options.limit)
    chains = {result.id: tuple(one.chain for one in run.initial(result.id)) for result in run.results}
    chosen = {name: found for name, found in chains.items() if found and all(chain.id in labels for chain in found)}
    if not chosen:
        raise InputError("the labels are of no problem of this run whose first chains all have some")
    config = run.config
    method = make_method("magicore", **{**config.options, "iterations": 1, "step_scores": "oracle"})
    assert isinstance(method, Magicore)
    path = base.path / FOLDER / f"oracle-{_digest(chosen, labels, config.options)}"
    problems = [base.by_id[name] for name in chosen]
    done = done_run(path, base, [problem.id for problem in problems])
    if done is not None:
        return done, []
    asked = Budgeted(
        runs=("oracle",), problems=len(problems), least=0, most=sum(2 * len(c) for c in chosen.values()), tokens=None,
        model=config.model,
    )  # fmt: skip
    if not options.consent(asked):
        return None, [f"not run: oracle; --yes makes {asked}"]
    if base.unread is not None:
        raise InputError(f"new runs need the questions of {base.path}, which cannot be read again: {base.unread}")
    refinement = RefineGiven(
        method=method,
        chains=chosen,
        step_labels={chain.id: labels[chain.id] for found in chosen.values() for chain in found},
    )
    plain = {
        name: getattr(config, name)
        for name in config.__dataclass_fields__
        if name not in ("method", "options", "data", "limit", "offset", "fields", "cache")
    }
    finished = solve_batch(problems, method=refinement, out=path, cache=str(base.path / STORE), **plain)
    if finished.interrupted:
        raise MagicoreError("interrupted while running oracle; the same command goes on from here")
    return read_run(path, problems), []


def _digest(chosen: Mapping[str, tuple[Chain, ...]], labels: Labels, options: Mapping[str, object]) -> str:
    parts = [f"{chain.id}={labels[chain.id]}" for found in chosen.values() for chain in found]
    return hashlib.sha256("\n".join([*parts, repr(sorted(options.items()))]).encode()).hexdigest()[:8]
