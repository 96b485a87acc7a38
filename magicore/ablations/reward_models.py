"""Reward models: pairs of outcome and process models, step aggregations and vote weights, over one run's first chains.

Aggregations and weights are recomputed from the step scores on file. Another pair of models scores the same chains
anew; the scores are kept in the run's directory, and nothing is generated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from difficulty import batch_stats
from magicore._sync import run_sync
from magicore.ablations.arms import FOLDER
from magicore.ablations.drawing import accuracy_bars
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.k_sweep import aggregation_name
from magicore.ablations.options import Budgeted, Options
from magicore.ablations.statistics import SHOWN, Scored, arm_rows, luck_remarks
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.thresholds import counts
from magicore.ablations.trajectories import RoundArrays, chosen_right, round_arrays
from magicore.chains import FAMILY_AGGREGATION, solution_score
from magicore.errors import InputError
from magicore.evaluate.ranking import auroc
from magicore.runtime.directory import CHAINS, STORE
from magicore.runtime.open import open_engine
from magicore.store.chain_rows import ChainRecord
from magicore.store.files import read_chain_records, write_chain_records
from magicore.store.run_store import RunStore
from magicore.types import Problem, ScoredChain
from magicore.voting import AGGREGATIONS, vote_table
from reward_models.aggregate import AGGREGATIONS as STEP_AGGREGATIONS

NAME = "reward-models"
UNMOVED = ("self-consistency", "weighted-self-consistency (o)", "weighted-self-consistency (logprob)", "best-of-k")
"""Votes that no step score moves: shown once for a pair of models."""
Chains = Mapping[str, tuple[ScoredChain, ...]]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An outcome and a process model by name; ``None`` for the one that a pair lacks."""

    orm: str | None
    prm: str | None

    def __str__(self) -> str:
        return f"{self.orm or '-'} x {self.prm or '-'}"


def reward_models_study(directory: Path, options: Options) -> Study:
    """The study ``reward-models``. Options, each a list divided by semicolons: ``orms`` and ``prms`` (every pair of
    them, the run's own with them), ``aggregations`` (of step scores).

    Raises:
        InputError: there is no finished run, nothing is graded, or it has no chain with a score.
        UnknownRewardModelError: there is no such reward model.
    """
    values = options.taking(NAME, "orms", "prms", "aggregations")
    base = read_run(directory).narrowed(options.limit)
    require_gold(base)
    own = Pair(orm=base.config.orm, prm=base.config.prm)
    orms, prms = (_listed(values.get(name), mine) for name, mine in (("orms", own.orm), ("prms", own.prm)))
    pairs = [own, *(pair for pair in (Pair(orm=o, prm=p) for o, p in product(orms, prms)) if pair != own)]
    hows = [part.strip() for part in str(values["aggregations"]).split(";")] if "aggregations" in values else None
    known = (*STEP_AGGREGATIONS, FAMILY_AGGREGATION)
    for how in hows or ():
        if how not in known:
            raise InputError(f"{NAME}: there is no step aggregation {how!r}; there are {', '.join(known)}")
    chosen = hows or list(STEP_AGGREGATIONS)
    scored, remarks = _scored(base, pairs, options)
    rows: list[dict[str, Any]] = []
    arms: dict[str, Scored] = {}
    routers: list[dict[str, Any]] = []
    for pair, chains in scored.items():
        for how in chosen:
            if pair.prm is None and how != chosen[0]:
                continue
            arrays = _arrays(base, chains, how)
            for name, right in _votes(base, arrays).items():
                if how != chosen[0] and name in UNMOVED:
                    continue
                arms[f"{pair}, {how}, {name}"] = Scored(right=right)
                share = sum(right.values()) / len(right) if right else None
                rows.append({"orm": pair.orm, "prm": pair.prm, "steps": how, "vote": name, "share": share})
            routers.append({"orm": pair.orm, "prm": pair.prm, "steps": how, **_quality(base, arrays)})
    baseline = options.baseline or _baseline(arms, own)
    compared = arm_rows(arms, baseline, options.luck)
    table = tuple({**split, **row} for split, row in zip(rows, compared, strict=True))
    best = sorted(compared, key=lambda row: -(row["accuracy"] or 0.0))[:24]
    return Study(
        name=NAME,
        tables=(
            StudyTable(
                name="votes",
                title="Pairs, step aggregations and votes",
                rows=table,
                shown=("orm", "prm", "steps", "vote", *SHOWN[:-3]),
            ),
            StudyTable(name="quality", title="Right from wrong, and easy from hard", rows=tuple(routers)),
        ),
        figures=(StudyFigure(name="votes", title="The most accurate votes", draw=accuracy_bars(best)),),
        remarks=(*luck_remarks(compared), *remarks),
        notes={**options.luck.notes, "run": str(base.path), "baseline": baseline, "pairs": [str(p) for p in scored]},
    )


def _listed(value: Any, own: str | None) -> list[str | None]:
    given = [] if value is None else [part.strip() for part in str(value).split(";") if part.strip()]
    return list(dict.fromkeys([own, *given]))


def _scored(base: FinishedRun, pairs: Sequence[Pair], options: Options) -> tuple[dict[Pair, Chains], list[str]]:
    """The first chains with every pair's scores: on file, or scored now with consent."""
    first = {result.id: base.initial(result.id) for result in base.results}
    found: dict[Pair, Chains] = {pairs[0]: first}
    missing: list[Pair] = []
    for pair in pairs[1:]:
        path = _path(base, pair)
        if (path / CHAINS).is_file():
            found[pair] = _read(path / CHAINS, first)
        else:
            missing.append(pair)
    if not missing:
        return found, []
    count = sum(map(len, first.values()))
    asked = Budgeted(
        runs=tuple(map(str, missing)),
        problems=len(first),
        least=0,
        most=0,
        tokens=None,
        scores=count * len(missing),
        model=base.config.model,
    )
    if not options.consent(asked):
        return found, [f"not scored: {', '.join(map(str, missing))}; --yes makes {asked}"]
    if base.unread is not None:
        raise InputError(f"scoring needs the questions of {base.path}, which cannot be read again: {base.unread}")
    for pair in missing:
        found[pair] = run_sync(_score(base, pair, first))
    return {pair: found[pair] for pair in pairs}, []


async def _score(base: FinishedRun, pair: Pair, first: Chains) -> Chains:
    config = replace(base.config, orm=pair.orm, prm=pair.prm)
    path = _path(base, pair)
    path.mkdir(parents=True, exist_ok=True)
    shared = RunStore(base.path / STORE)
    store = RunStore(path / STORE, cache=shared)
    found: dict[str, tuple[ScoredChain, ...]] = {}
    try:
        async with open_engine(config, store, generation=False) as engine:
            for problem in base.problems:
                rt = engine.bind(problem)
                found[problem.id] = await rt.score([one.chain for one in first[problem.id]])
        records = (ChainRecord(scored=one, kept=(0,)) for chains in found.values() for one in chains)
        write_chain_records(path / CHAINS, records)
    finally:
        store.close()
        shared.close()
    return found


def _path(base: FinishedRun, pair: Pair) -> Path:
    """Where a pair's scores of exactly these chains are."""
    tables = [sorted(base.config.reward_models.get(name or "", {}).items()) for name in (pair.orm, pair.prm)]
    names = [chain.chain.id for result in base.results for chain in base.initial(result.id)]
    digest = hashlib.sha256(repr([pair, tables, names]).encode()).hexdigest()[:8]
    return base.path / FOLDER / f"scores-{digest}"


def _read(path: Path, first: Chains) -> Chains:
    known = {record.scored.chain.id: record.scored for record in read_chain_records(path)}
    return {name: tuple(known[one.chain.id] for one in chains) for name, chains in first.items()}


def _arrays(base: FinishedRun, chains: Chains, how: str) -> RoundArrays:
    problems: list[Problem] = [base.by_id[result.id] for result in base.results]
    again = [[_with(one, how) for one in chains[problem.id]] for problem in problems]
    return round_arrays(problems, again, duplicates=base.config.duplicates)


def _with(scored: ScoredChain, how: str) -> ScoredChain:
    if scored.prm is None:
        return scored
    chosen = scored.prm.aggregation if how == FAMILY_AGGREGATION else how
    return replace(scored, s=solution_score(scored.prm, chosen), aggregation=chosen)


def _votes(base: FinishedRun, arrays: RoundArrays) -> dict[str, dict[str, bool]]:
    """Every aggregation that these scores allow, by name: problem id -> right."""
    found: dict[str, dict[str, bool]] = {}
    for one in AGGREGATIONS:
        method, weights = one
        votes = vote_table(arrays.table, method, weights)
        answered = (arrays.table.classes >= 0).any(axis=1)
        if method == "cot" or (votes.fell_back.any() and votes.fell_back.sum() == answered.sum()):
            continue
        right = chosen_right(arrays.right, votes.chosen)
        found[aggregation_name(one)] = {
            result.id: bool(value) for result, value in zip(base.results, right, strict=True) if result.gold is not None
        }
    return found


def _quality(base: FinishedRun, arrays: RoundArrays) -> dict[str, Any]:
    """AUROC of o, s and S over the graded problems' chains, and the router against the oracle under these scores."""
    table, graded = arrays.table, np.array([result.gold is not None for result in base.results])
    row: dict[str, Any] = {}
    for name, values in (("o", table.o), ("s", table.s), ("S", table.combined)):
        there = table.include & ~np.isnan(values) & graded[:, None]
        row[f"auroc_{name}"] = auroc(values[there].tolist(), arrays.right[there].tolist())
        row[f"missing_{name}"] = int((table.include & np.isnan(values)).sum())
    combined = [None if np.isnan(value) else float(value) for value in table.combined[table.include]]
    if all(value is None for value in combined):
        return row | dict.fromkeys(("hard_rate", "precision", "recall"))
    stats = batch_stats(combined)
    found = counts(~arrays.conditions(stats).easy()[None, :], ~arrays.right_by(), graded)
    for name in ("hard_rate", "precision", "recall"):
        value = float(getattr(found, name)[0])
        row[name] = None if np.isnan(value) else value
    return row


def _baseline(arms: Mapping[str, Scored], own: Pair) -> str:
    """The majority vote, which no score moves; else the first arm."""
    if not arms:
        raise InputError("no chain of the run has an answer, so there is nothing to compare")
    return next(
        (name for name in arms if name.startswith(str(own)) and name.endswith("self-consistency")), next(iter(arms))
    )
