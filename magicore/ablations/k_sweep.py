"""Accuracy against the number of chains: every aggregation with k' = 1..k of a run's first chains, and MAgICoRe beside
them at equal tokens. Without a model, from a finished run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difficulty.ties import BoolArray, FloatArray
from magicore.ablations.drawing import frontier_scatter, lines
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.initial_cost import FirstCosts
from magicore.ablations.options import Options, whole
from magicore.ablations.statistics import SHOWN, Luck, Scored, arm_rows, luck_remarks
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.subsets import DRAWS, Aggregation, expected_accuracy, expected_coverage
from magicore.ablations.trajectories import RoundArrays, chosen_right, initial_arrays
from magicore.errors import InputError
from magicore.evaluate import CostPoint, accuracy_at, correctness
from magicore.evaluate.axes import AxisPoint, frontier_rows, spent_on
from magicore.voting import AGGREGATIONS, vote_all

NAME = "k-sweep"
_DENSE = 32
_RESAMPLED_AT_ONCE = 500


def aggregation_name(aggregation: Aggregation) -> str:
    """``best-of-k (s)``: the method and, where it is not its own, what it weighs by."""
    method, weights = aggregation
    own = {"weighted-self-consistency": "S", "best-of-k": "o"}.get(method)
    return method if weights in (None, own) else f"{method} ({weights})"


def k_sweep(
    directory: str | Path | FinishedRun,
    *,
    ks: Sequence[int] | None = None,
    draws: int = DRAWS,
    baseline: str = "self-consistency",
    luck: Luck | None = None,
) -> Study:
    """Sweep the number of chains.

    Args:
        directory: A finished run of any method whose first chains are several.
        ks: Numbers of chains; every one up to 32, then sixteen more up to all, if not given.
        draws: Subsets at the most for one number of chains, where there is no closed form.
        baseline: The aggregation that the others are compared with at all chains.
        luck: Seed, resamples and confidence.

    Raises:
        InputError: there is no finished run, nothing in it is graded, or an option does not fit.
    """
    luck = luck or Luck()
    run = directory if isinstance(directory, FinishedRun) else read_run(directory)
    require_gold(run)
    arrays = initial_arrays(run)
    graded = np.array([result.gold is not None for result in run.results])
    width = arrays.table.classes.shape[1]
    if width < 1:
        raise InputError(f"{run.path} has no first chains, so there is nothing to sweep")
    chosen = _checked(ks, width)
    usable = [one for one in AGGREGATIONS if _usable(arrays, one)]
    costs = FirstCosts.of(run)
    curve, cover = _curves(arrays, graded, chosen, usable, costs, draws, luck)
    arms = _all_chains(run, arrays, usable, costs)
    rows = arm_rows(arms, baseline, luck)
    points = _points(curve, run, costs)
    equal = equal_tokens(run, curve, luck)
    frontier = tuple(frontier_rows(points))
    return Study(
        name=NAME,
        tables=(
            StudyTable(
                name="accuracy_by_k",
                title=f"Accuracy with k' of the {width} first chains",
                rows=tuple(curve),
                shown=("method", "k", "accuracy", "how", "tokens"),
                brief=lambda row: row["k"] in _few(chosen),
            ),
            StudyTable(name="methods", title=f"All {width} chains", rows=rows, shown=("method", *SHOWN)),
            StudyTable(
                name="coverage",
                title="Coverage (pass@k) against the best selection",
                rows=tuple(cover),
                brief=lambda row: row["k"] in _few(chosen),
            ),
            StudyTable(name="equal_tokens", title="At the tokens that the run's own method spent", rows=equal),
            StudyTable(
                name="frontier",
                title="The frontier over tokens",
                rows=frontier,
                brief=lambda row: row["on_frontier"] and row["axis"] == "tokens",
            ),
        ),
        figures=(
            StudyFigure(
                name="accuracy_by_k",
                title="Accuracy against the number of chains",
                draw=lines(
                    curve,
                    x="k",
                    y="accuracy",
                    series="method",
                    labels=("chains", "accuracy"),
                ),
            ),
            StudyFigure(
                name="accuracy_by_tokens",
                title="Accuracy against tokens",
                draw=lines(
                    [*curve, *_own_points(run)],
                    x="tokens",
                    y="accuracy",
                    series="method",
                    labels=("tokens in all", "accuracy"),
                    log_x=True,
                ),
            ),
            StudyFigure(
                name="coverage",
                title="Sampling or choosing: coverage against the best selection",
                draw=lines(_long(cover), x="k", y="value", series="what", labels=("chains", "share of problems")),
            ),
            StudyFigure(
                name="frontier",
                title="Frontier over tokens",
                draw=frontier_scatter(frontier, "tokens", "tokens in all"),
            ),
        ),
        remarks=tuple(_remarks(rows, usable)),
        notes={**luck.notes, "draws": draws, "k": width, "run": str(run.path), "baseline": baseline},
    )


def equal_tokens(run: FinishedRun, curve: Sequence[Mapping[str, Any]], luck: Luck) -> tuple[dict[str, Any], ...]:
    """Every aggregation at the tokens that the run's own method spent, linear between two numbers of chains.

    ``accuracy`` is ``None`` where the run did not draw enough chains to spend as much: nothing is extrapolated.
    """
    right = correctness(run.results)
    spent = spent_on(run.results)
    if spent.tokens is None or not right:
        return ()
    own = sum(right.values()) / len(right)
    rows: list[dict[str, Any]] = [
        {
            "method": f"{run.config.method} (this run)",
            "tokens": spent.tokens,
            "accuracy": own,
            "chains": None,
            "own": own,
        }
    ]
    for name in dict.fromkeys(row["method"] for row in curve):
        of_it = [row for row in curve if row["method"] == name and row["tokens"] is not None]
        points = [CostPoint(method=name, cost=row["tokens"], accuracy=row["accuracy"]) for row in of_it]
        chains = [CostPoint(method=name, cost=row["tokens"], accuracy=float(row["k"])) for row in of_it]
        rows.append(
            {
                "method": name,
                "tokens": spent.tokens,
                "accuracy": accuracy_at(points, spent.tokens),
                "chains": accuracy_at(chains, spent.tokens),
                "own": own,
            }
        )
    return tuple(rows)


def _checked(ks: Sequence[int] | None, width: int) -> list[int]:
    if ks is None:
        more = sorted({round(k) for k in np.geomspace(_DENSE, width, 17)}) if width > _DENSE else []
        return [*range(1, min(width, _DENSE) + 1), *(k for k in more if k > _DENSE)]
    wrong = [k for k in ks if not 1 <= k <= width]
    if wrong or not ks:
        raise InputError(f"the run has {width} first chains a problem, so k' lies between 1 and {width}: got {ks}")
    return sorted(set(ks))


def _few(ks: Sequence[int]) -> set[int]:
    """Powers of two and the last."""
    return {k for k in ks if k & (k - 1) == 0} | {ks[-1]}


def _usable(arrays: RoundArrays, aggregation: Aggregation) -> bool:
    """Whether the run has what the aggregation weighs by, for any chain."""
    method, weights = aggregation
    table = arrays.table
    if method in ("cot", "self-consistency"):
        return True
    values = {"o": table.o, "s": table.s, "logprob": table.logprob}.get(
        "s" if method == "sc+prm" else str(weights), table.combined
    )
    return bool((~np.isnan(values)).any())


def _curves(
    arrays: RoundArrays,
    graded: BoolArray,
    ks: Sequence[int],
    usable: Sequence[Aggregation],
    costs: FirstCosts,
    draws: int,
    luck: Luck,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Accuracy of every aggregation, and coverage, for each number of chains."""
    found = {k: expected_accuracy(arrays, k, aggregations=usable, draws=draws, seed=luck.seed) for k in ks}
    covered = {k: expected_coverage(arrays, k)[graded] for k in ks}
    keys = [(k, one) for k in ks for one in usable]
    values = np.array([found[k][one].right[graded] for k, one in keys] + [covered[k] for k in ks])
    lows, highs = mean_intervals(values, luck)
    means = values.mean(axis=1)
    curve = [
        {
            "method": aggregation_name(one),
            "k": k,
            "accuracy": float(means[at]),
            "accuracy_low": float(lows[at]),
            "accuracy_high": float(highs[at]),
            "how": found[k][one].how,
            "draws": found[k][one].draws,
            **costs.of_aggregation(k, *one).row,
            **luck.notes,
        }
        for at, (k, one) in enumerate(keys)
    ]
    cover: list[dict[str, Any]] = []
    for at, k in enumerate(ks, len(keys)):
        best = max((row for row in curve if row["k"] == k), key=lambda row: row["accuracy"])
        cover.append(
            {
                "k": k,
                "coverage": float(means[at]),
                "coverage_low": float(lows[at]),
                "coverage_high": float(highs[at]),
                "selection": best["accuracy"],
                "selection_method": best["method"],
                "lost_in_choosing": float(means[at]) - best["accuracy"],
                "never_right": 1.0 - float(means[at]),
            }
        )
    return curve, cover


def mean_intervals(values: FloatArray, luck: Luck) -> tuple[FloatArray, FloatArray]:
    """Bootstrap percentile intervals of the means of the rows of (V, P), the same resampled problems for all rows."""
    rows, problems = values.shape
    source = np.random.default_rng(luck.seed)
    means = np.empty((luck.resamples, rows))
    for start in range(0, luck.resamples, _RESAMPLED_AT_ONCE):
        count = min(_RESAMPLED_AT_ONCE, luck.resamples - start)
        times = source.multinomial(problems, np.full(problems, 1.0 / problems), size=count)
        means[start : start + count] = times.astype(np.float64) @ values.T / problems
    low, high = np.quantile(means, [(1 - luck.confidence) / 2, (1 + luck.confidence) / 2], axis=0)
    return low, high


def _all_chains(
    run: FinishedRun, arrays: RoundArrays, usable: Sequence[Aggregation], costs: FirstCosts
) -> dict[str, Scored]:
    votes = vote_all(arrays.table)
    width = arrays.table.classes.shape[1]
    arms: dict[str, Scored] = {}
    for one in usable:
        right = chosen_right(arrays.right, votes[one].chosen)
        known = {
            result.id: bool(value) for result, value in zip(run.results, right, strict=True) if result.gold is not None
        }
        arms[aggregation_name(one)] = Scored(right=known, spent=costs.of_aggregation(width, *one))
    if run.config.method not in arms:
        arms[run.config.method] = Scored(
            right=correctness(run.results), spent=spent_on(run.results, wall_s=run.wall_s, prices=run.config.prices)
        )
    return arms


def _points(curve: Sequence[Mapping[str, Any]], run: FinishedRun, costs: FirstCosts) -> list[AxisPoint]:
    width = max(row["k"] for row in curve)
    points = [
        AxisPoint(
            method=f"{row['method']}, k = {row['k']}",
            spent=costs.of_aggregation(row["k"], *_by_name(row["method"])),
            accuracy=row["accuracy"],
        )
        for row in curve
        if row["k"] == 1 or (row["method"] != "cot" and (row["k"] & (row["k"] - 1) == 0 or row["k"] == width))
    ]
    return points + [
        AxisPoint(
            method=str(row["method"]),
            spent=spent_on(run.results, wall_s=run.wall_s, prices=run.config.prices),
            accuracy=row["accuracy"],
        )
        for row in _own_points(run)
    ]


def _by_name(name: str) -> Aggregation:
    return next(one for one in AGGREGATIONS if aggregation_name(one) == name)


def _own_points(run: FinishedRun) -> list[dict[str, Any]]:
    right = correctness(run.results)
    if not right or any(aggregation_name(one) == run.config.method for one in AGGREGATIONS):
        return []
    tokens = spent_on(run.results).tokens
    return [
        {"method": f"{run.config.method} (this run)", "tokens": tokens, "accuracy": sum(right.values()) / len(right)}
    ]


def _long(cover: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    names = {"coverage": "coverage: some chain is right", "selection": "best selection"}
    return [{"k": row["k"], "what": label, "value": row[name]} for row in cover for name, label in names.items()]


def _remarks(rows: Sequence[Mapping[str, Any]], usable: Sequence[Aggregation]) -> list[str]:
    left = [aggregation_name(one) for one in AGGREGATIONS if one not in usable]
    remarks = luck_remarks(rows)
    if left:
        remarks.append(f"left out, because the run has no such scores: {', '.join(left)}")
    return remarks


def k_sweep_study(directory: Path, options: Options) -> Study:
    """The study ``k-sweep``; its options are ``draws`` and ``ks`` (as in ``ks=1,2,4``)."""
    values = options.taking(NAME, "draws", "ks")
    run = read_run(directory).narrowed(options.limit)
    ks = None if "ks" not in values else [whole(part, "ks") for part in str(values["ks"]).split(",")]
    return k_sweep(
        run,
        ks=ks,
        draws=whole(values.get("draws", DRAWS), "draws"),
        baseline=options.baseline or "self-consistency",
        luck=options.luck,
    )
