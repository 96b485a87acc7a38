"""The headline: MAgICoRe beside more samples, beside refining everything and beside debate, on generated problems that
no model of the run was trained on.

For every family one run of ``magicore`` and, on the same chains, one of each rival. The rivals that only sample are
read off one run of three times as many chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from difficulty.ties import BoolArray, FloatArray
from magicore.ablations.arms import Arm, arm_runs, run_spent
from magicore.ablations.drawing import frontier_scatter
from magicore.ablations.finished import FinishedRun, read_run
from magicore.ablations.initial_cost import FirstCosts
from magicore.ablations.iterations import answers_by_round
from magicore.ablations.options import Options, agree
from magicore.ablations.round_cost import round_costs
from magicore.ablations.statistics import SHOWN, Luck, Scored, arm_points, arm_rows
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.subsets import Aggregation
from magicore.ablations.trajectories import RoundArrays, chosen_right, initial_arrays, round_arrays, trajectories
from magicore.api import solve_batch
from magicore.errors import MagicoreError
from magicore.evaluate import Comparison, compare, correctness
from magicore.evaluate.axes import AXIS_LABELS, Axis, Spent, frontier_rows
from magicore.evaluate.ranking import auroc
from magicore.voting import vote_table

NAME: Final = "headline"
LEVEL: Final = 0.01
"""Of the paired tests that the aim is judged by."""
SAMPLED: Final[tuple[tuple[str, Aggregation], ...]] = (
    ("self-consistency", ("self-consistency", None)),
    ("best-of-k", ("best-of-k", "o")),
    ("sc+prm", ("sc+prm", None)),
)
EMBEDDED: Final[Mapping[str, Any]] = {
    "model": "embedded",
    "orm": "embedded",
    "prm": "embedded",
    "prompts": "trained",
    "max_tokens": 220,
}


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What is compared.

    Attributes:
        families: Generated families.
        n: Problems of each, from the test split.
        seed: Of the problems; the recipe's own checks have another.
        k: Chains of every method; the wide rivals have three times as many.
        iterations: Rounds of MAgICoRe and of refining everything, at the most.
        settings: Models, prompts and sampling of all runs.
    """

    families: tuple[str, ...] = ("stories", "dates", "units")
    n: int = 100
    seed: int = 9
    k: int = 16
    iterations: int = 3
    settings: Mapping[str, Any] = field(default_factory=lambda: dict(EMBEDDED))


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family's arms, and figures that explain them."""

    arms: Mapping[str, Scored]
    explained: Mapping[str, Any]


def headline(work: Path, plan: Headline, *, luck: Luck | None = None, say: Callable[[str], None] = print) -> Study:
    """Run what is missing in ``work`` and compare. An interrupted headline goes on where it stopped.

    Raises:
        InputError: ``work`` holds runs of another plan.
        MagicoreError: As :func:`magicore.solve_batch`.
    """
    luck = luck or Luck()
    found: dict[str, Family] = {}
    for family in plan.families:
        found[family] = _family(work, family, plan, say)
    return headline_study(found, plan, luck)


def headline_study(found: Mapping[str, Family], plan: Headline, luck: Luck) -> Study:
    """The tables and figures of families that are done."""
    own = rounds_name("magicore", plan.iterations)
    pooled = found if len(found) < 2 else {**found, "all": _pooled(found)}
    rows = [{"family": name, **row} for name, family in pooled.items() for row in arm_rows(family.arms, own, luck)]
    aims = [row for name, family in pooled.items() for row in aim_rows(name, family.arms, own, plan, luck)]
    frontier = [
        {"family": name, **row} for name, family in pooled.items() for row in frontier_rows(arm_points(family.arms))
    ]
    met = [row for row in aims if row["met"]]
    return Study(
        name=NAME,
        tables=(
            StudyTable(
                name="methods",
                title=f"Methods on {plan.n} held-out problems of each family, compared with {own}",
                rows=tuple(rows),
                shown=("family", "method", *SHOWN),
            ),
            StudyTable(
                name="aim", title=f"{own} against its rivals (met: above, p < {LEVEL}, McNemar)", rows=tuple(aims)
            ),
            StudyTable(
                name="explained",
                title="What there was to gain, and where it went",
                rows=tuple({"family": name, **family.explained} for name, family in found.items()),
            ),
            StudyTable(
                name="frontier",
                title="Frontiers",
                rows=tuple(frontier),
                brief=lambda row: row["axis"] == "generation_tokens",
            ),
        ),
        figures=tuple(
            StudyFigure(
                name=f"frontier_{name}",
                title=f"{name}: accuracy against {AXIS_LABELS['generation_tokens']}",
                draw=frontier_scatter(
                    tuple(row for row in frontier if row["family"] == name),
                    "generation_tokens",
                    AXIS_LABELS["generation_tokens"],
                ),
            )
            for name in pooled
        ),
        remarks=(f"{len(met)} of {len(aims)} comparisons of the aim are met",),
        notes={**luck.notes, "families": list(plan.families), "problems": plan.n, "problem_seed": plan.seed},
    )


def rounds_name(method: str, rounds: int) -> str:
    """``magicore, 2 rounds``."""
    return f"{method}, {rounds} {'round' if rounds == 1 else 'rounds'}"


def aim_rows(family: str, arms: Mapping[str, Scored], own: str, plan: Headline, luck: Luck) -> list[dict[str, Any]]:
    """MAgICoRe against each rival of the aim: the paired test, and its generated tokens as a share of the rival's."""
    rivals = (f"self-consistency, k = {3 * plan.k}", f"best-of-k, k = {3 * plan.k}", "self-refine+sc")
    rows: list[dict[str, Any]] = []
    for rival in rivals:
        made: Comparison = compare(
            arms[own].right,
            arms[rival].right,
            resamples=luck.resamples,
            seed=luck.seed,
            confidence=luck.confidence,
        )
        ours, theirs = arms[own].spent.generation_tokens, arms[rival].spent.generation_tokens
        rows.append(
            {
                "family": family,
                "rival": rival,
                "accuracy": made.accuracy,
                "rival_accuracy": made.baseline,
                "difference": made.difference,
                "difference_low": made.interval.low,
                "difference_high": made.interval.high,
                "only_magicore": made.only_method,
                "only_rival": made.only_baseline,
                "p_value": made.p_value,
                "token_ratio": ours / theirs if ours and theirs else None,
                "met": made.difference > 0 and made.p_value < LEVEL,
            }
        )
    return rows


def _family(work: Path, family: str, plan: Headline, say: Callable[[str], None]) -> Family:
    """Run a family's methods, or read those that are done."""
    say(f"{family}: magicore, k = {plan.k}, {plan.iterations} rounds")
    base = _base(work / family, family, plan)
    wide_name, everything = "wide", "refine everything"
    arms = [
        Arm(name=wide_name, settings={"method": "weighted-self-consistency", "k": 3 * plan.k}),
        Arm(name="self-refine+sc", settings={"method": "self-refine+sc", "k": plan.k, "iterations": 1}),
        Arm(name="mars", settings={"method": "mars"}),
        Arm(name=everything, settings={"router": "hard"}),
    ]
    runs: dict[str, FinishedRun] = {}
    for arm in arms:
        say(f"{family}: {arm.name}")
        runs |= arm_runs(base, [arm], Options(consent=agree)).runs
    wide, uniform = runs[wide_name], runs[everything]
    scored = {
        **sampled(wide, plan.k),
        **{
            name: Scored(right=correctness(runs[name].results), spent=run_spent(runs[name], base))
            for name in ("self-refine+sc", "mars")
        },
        **by_rounds(uniform, everything),
        **by_rounds(base, "magicore"),
    }
    return Family(arms=scored, explained=explained(base, uniform, wide, plan.k))


def _base(path: Path, family: str, plan: Headline) -> FinishedRun:
    data = f"gen:{family}:{plan.n}:{plan.seed}:test"
    options = {"k": plan.k, "iterations": plan.iterations}
    run = solve_batch(data, method="magicore", options=options, out=path, **plan.settings)
    if run.interrupted:
        raise MagicoreError(f"interrupted in {path}; the same command goes on from here")
    return read_run(path)


def sampled(wide: FinishedRun, k: int) -> dict[str, Scored]:
    """One chain, and each rival that only samples with the first ``k`` and with all chains of a run."""
    arrays, costs = initial_arrays(wide), FirstCosts.of(wide)
    width = arrays.table.classes.shape[1]
    found = {"cot": _first(wide, arrays, costs, ("cot", None), 1)}
    for name, aggregation in SAMPLED:
        for count in (k, width) if name != "sc+prm" else (k,):
            found[f"{name}, k = {count}"] = _first(wide, arrays, costs, aggregation, count)
    return found


def _first(run: FinishedRun, arrays: RoundArrays, costs: FirstCosts, aggregation: Aggregation, k: int) -> Scored:
    votes = vote_table(arrays.table.first(k), *aggregation)
    right = chosen_right(arrays.right[:, :k], votes.chosen)
    return Scored(
        right={r.id: bool(v) for r, v in zip(run.results, right, strict=True)},
        spent=costs.of_aggregation(k, *aggregation),
    )


def by_rounds(run: FinishedRun, name: str) -> dict[str, Scored]:
    """The run's answers after each of its rounds, the first sampling left out, with what they cost up to there."""
    taken = trajectories(run)
    right, costs = answers_by_round(run, taken), round_costs(run)
    gone = np.cumsum([one.reached for one in taken.rounds], axis=0) - 1
    everyone = np.ones(taken.n, dtype=np.bool_)
    return {
        rounds_name(name, number): Scored(
            right=dict(zip(taken.ids, right[number].tolist(), strict=True)), spent=costs.of(gone[number], everyone)
        )
        for number in range(1, len(right))
    }


def explained(base: FinishedRun, uniform: FinishedRun, wide: FinishedRun, k: int) -> dict[str, Any]:
    """What limits a family: whether right chains are there, whether scores find them, whether refining makes more.

    ``coverage`` is the share of problems with a right chain among those meant; AUROC is over first chains, of the score
    against the answer's being right, problems thrown together. ``oracle_router`` is the accuracy where each problem has
    the better of its first vote and its last one after refining everything.
    """
    first, drawn = trajectories(uniform), initial_arrays(wide)
    last = first.rounds[-1]
    begun, ended = first.rounds[0].right_by(), answers_by_round(uniform, first)[-1]
    hard = np.array([result.verdict is not None and not result.verdict.easy for result in base.results])
    final = np.array([result.correct is True for result in base.results])
    refined = [one.scored.chain for found in uniform.chains.values() for one in found if one.scored.chain.round > 0]
    right_of = _right_by_chain(uniform)
    parents = [right_of[chain.parent] for chain in refined if chain.parent in right_of]
    children = [right_of[chain.id] for chain in refined if chain.parent in right_of]
    moved = list(zip(parents, children, strict=True))
    return {
        "single": float(drawn.right.mean()),
        "coverage_k": float(first.rounds[0].right.any(axis=1).mean()),
        "coverage_3k": float(drawn.right.any(axis=1).mean()),
        "coverage_kept": float(last.right.any(axis=1).mean()),
        "orm_auroc": _auroc(drawn.table.o, drawn.right),
        "prm_auroc": _auroc(drawn.table.s, drawn.right),
        "hard": float(hard.mean()),
        "easy_right": _share(begun[~hard]),
        "hard_right": _share(begun[hard]),
        "first_vote": float(begun.mean()),
        "magicore": float(final.mean()),
        "refine_everything": float(ended.mean()),
        "oracle_router": float((begun | ended).mean()),
        "chain_fixed": _share(np.array([after for before, after in moved if not before])),
        "chain_broken": _share(np.array([not after for before, after in moved if before])),
    }


def _right_by_chain(run: FinishedRun) -> dict[str | None, bool]:
    found: dict[str | None, bool] = {}
    for name, records in run.chains.items():
        chains = [one.scored for one in records]
        right = round_arrays([run.by_id[name]], [chains]).right[0]
        found |= {one.chain.id: bool(value) for one, value in zip(chains, right, strict=False)}
    return found


def _auroc(scores: FloatArray, right: BoolArray) -> float | None:
    known = ~np.isnan(scores)
    return auroc(scores[known].tolist(), right[known].tolist())


def _share(values: BoolArray) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _pooled(found: Mapping[str, Family]) -> Family:
    """All families as one, over the arms that all of them have."""
    names = [name for name in next(iter(found.values())).arms if all(name in one.arms for one in found.values())]
    arms: dict[str, Scored] = {}
    for name in names:
        parts = [one.arms[name] for one in found.values()]
        right = {problem: value for part in parts for problem, value in part.right.items()}
        arms[name] = Scored(right=right, spent=sum_spent([part.spent for part in parts]))
    return Family(arms=arms, explained={})


def sum_spent(parts: Sequence[Spent]) -> Spent:
    """The cost of several batches together; unknown where one is."""

    def total(axis: Axis) -> float | None:
        values = [part.on(axis) for part in parts]
        return None if any(value is None for value in values) else sum(value for value in values if value is not None)

    bases = {part.wall_basis for part in parts}
    return Spent(
        generation_tokens=total("generation_tokens"),
        reward_tokens=total("reward_tokens"),
        judge_tokens=total("judge_tokens"),
        calls=total("calls"),
        wall_s=total("wall_s"),
        money=total("money"),
        wall_basis=bases.pop() if len(bases) == 1 else "",
    )
