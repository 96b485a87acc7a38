"""The whole family: every method's accuracy and cost, beside the aggregations at the same tokens and the same time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from magicore.ablations.arms import Arm, arm_runs, run_spent
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.initial_cost import FirstCosts
from magicore.ablations.k_sweep import aggregation_name
from magicore.ablations.options import Options, whole
from magicore.ablations.statistics import Scored
from magicore.ablations.study import Study, StudyTable
from magicore.ablations.subsets import DRAWS, Aggregation, expected_accuracy
from magicore.ablations.trajectories import chosen_right, initial_arrays
from magicore.ablations.variants import Beside, study_of
from magicore.evaluate import CostPoint, accuracy_at, accuracy_of, correctness
from magicore.evaluate.axes import Axis, Spent
from magicore.methods import method_names
from magicore.voting import vote_table

NAME = "methods"
AGGREGATED: tuple[Aggregation, ...] = (
    ("cot", None),
    ("self-consistency", None),
    ("weighted-self-consistency", "S"),
    ("best-of-k", "o"),
    ("sc+prm", None),
)
"""Methods that a run's first chains answer for, without a run of their own."""
MATCHED: tuple[Axis, ...] = ("tokens", "wall_s")
RIVALS: tuple[Aggregation, ...] = AGGREGATED[1:]


def methods_study(directory: Path, options: Options) -> Study:
    """The study ``methods``. Options: ``methods=mars;debate`` (the ones to run; all of the family if not given) and
    ``draws``.

    Raises:
        InputError: there is no finished run or nothing is graded.
        UnknownNameError: there is no such method.
    """
    values = options.taking(NAME, "methods", "draws")
    base = read_run(directory)
    require_gold(base)
    free = {one for one, _ in AGGREGATED}
    wanted = [
        name for name in method_names() if name not in free and name not in ("magicore-published", base.config.method)
    ]
    if "methods" in values:
        wanted = [part.strip() for part in str(values["methods"]).split(";")]
    width = max((len(base.initial(result.id)) for result in base.results), default=1)
    k = options.settings.get("k", width)
    arms = [Arm(name=base.config.method), *(Arm(name=name, settings={"method": name, "k": k}) for name in wanted)]
    made = arm_runs(base, arms, options)
    # The aggregations stand on the first chains of the arm with the base's method where k or the limit differ.
    source = made.runs.get(base.config.method) or base.narrowed(options.limit)
    more = aggregated(source)
    methods = {
        name: Scored(right=correctness(run.results), spent=run_spent(run, base)) for name, run in made.runs.items()
    }
    matched = tuple(
        matched_rows(
            source, {**methods, **more}, draws=whole(values.get("draws", DRAWS), "draws"), seed=options.luck.seed
        )
    )
    return study_of(
        NAME,
        base,
        made,
        options,
        baseline="self-consistency",
        title="The family",
        beside=Beside(
            arms=more,
            tables=(
                StudyTable(
                    name="matched",
                    title="Beside the aggregations at the same cost (- is beyond what was drawn)",
                    rows=matched,
                    brief=lambda row: row["equal_accuracy"] is not None or row["rival"] == "self-consistency",
                ),
            ),
            axes=("tokens", "generation_tokens", "calls", "wall_s"),
        ),
    )


def aggregated(run: FinishedRun) -> dict[str, Scored]:
    """The aggregations of all first chains, with what they cost; those whose scores the run has not are left out."""
    arrays = initial_arrays(run)
    width = arrays.table.classes.shape[1]
    costs = FirstCosts.of(run)
    found: dict[str, Scored] = {}
    for one in AGGREGATED:
        votes = vote_table(arrays.table, *one)
        if votes.fell_back.any() and votes.fell_back.sum() == (arrays.table.classes >= 0).any(axis=1).sum():
            continue
        right = chosen_right(arrays.right, votes.chosen)
        found[aggregation_name(one)] = Scored(
            right={r.id: bool(v) for r, v in zip(run.results, right, strict=True) if r.gold is not None},
            spent=costs.of_aggregation(width, *one),
        )
    return found


def matched_rows(
    run: FinishedRun, methods: Mapping[str, Scored], *, draws: int = DRAWS, seed: int = 0
) -> list[dict[str, Any]]:
    """Every method beside every aggregation at the method's own cost, on each of the matched axes.

    An aggregation's accuracy at a cost is linear between two numbers of chains; ``None`` where the cost lies outside
    those that were drawn, or is not known.
    """
    curves = _curves(run, draws, seed)
    rows: list[dict[str, Any]] = []
    for axis in MATCHED:
        for name, scored in methods.items():
            own = accuracy_of(scored.right.values()).value
            cost = scored.spent.on(axis)
            for rival, curve in curves.items():
                if rival == name:
                    continue
                points = [
                    CostPoint(method=rival, cost=at, accuracy=accuracy)
                    for _, spent, accuracy in curve
                    if (at := spent.on(axis)) is not None
                ]
                chains = [
                    CostPoint(method=rival, cost=at, accuracy=float(k))
                    for k, spent, _ in curve
                    if (at := spent.on(axis)) is not None
                ]
                equal = None if cost is None else accuracy_at(points, cost)
                rows.append(
                    {
                        "axis": axis,
                        "method": name,
                        "cost": cost,
                        "accuracy": own,
                        "rival": rival,
                        "equal_chains": None if cost is None else accuracy_at(chains, cost),
                        "equal_accuracy": equal,
                        "gain": None if equal is None or own is None else own - equal,
                        "basis": scored.spent.wall_basis if axis == "wall_s" else "measured",
                    }
                )
    return rows


def _curves(run: FinishedRun, draws: int, seed: int) -> dict[str, list[tuple[int, Spent, float]]]:
    arrays = initial_arrays(run)
    graded = np.array([result.gold is not None for result in run.results])
    width = arrays.table.classes.shape[1]
    ks = sorted({k for k in (*(2**power for power in range(12)), width) if k <= width})
    costs = FirstCosts.of(run)
    curves: dict[str, list[tuple[int, Spent, float]]] = {aggregation_name(one): [] for one in RIVALS}
    for k in ks:
        for one, expected in expected_accuracy(arrays, k, aggregations=RIVALS, draws=draws, seed=seed).items():
            point = (k, costs.of_aggregation(k, *one), float(expected.right[graded].mean()))
            curves[aggregation_name(one)].append(point)
    return curves
