"""Easy and hard: aggregate everything, refine everything, or route, by every router, from one run's chains.

Which chains a round keeps does not depend on the router, so one run that refines everything answers for every router
and every threshold without a model. From a run that routed, what it did not refine is unknown, and said to be; a new
run that refines everything fills it in, as new runs do for the routers that ask the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from difficulty import Confusion, MagicoreRouter, RewardStats
from difficulty.conditions import CONFIDENCE_THRESHOLD, Z_THRESHOLD
from difficulty.ties import BoolArray
from magicore.ablations.arms import Arm, ArmRuns, arm_runs, run_spent
from magicore.ablations.drawing import accuracy_bars, frontier_scatter, lines
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.options import Options
from magicore.ablations.round_cost import round_costs
from magicore.ablations.statistics import SHOWN, Scored, arm_points, arm_rows, luck_remarks
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.thresholds import condition_easy, counts, sweep_rows
from magicore.ablations.trajectories import RoutedOutcomes, Trajectories, routed, trajectories
from magicore.config import RunConfig
from magicore.errors import InputError
from magicore.evaluate import correctness
from magicore.evaluate.axes import frontier_rows
from magicore.methods import make_method
from magicore.methods.magicore import Magicore
from magicore.methods.routing import uniform

NAME = "easy-hard"
AGGREGATE, REFINE, ROUTE = "aggregate everything", "refine everything", "route"
RANDOM = "random at the same rate"
ASKING = {"self-verification": "self-verification", "prompted confidence": "stated-confidence"}
"""Routers that ask the language model, and their names."""
SEPARATION = "scatter"


def easy_hard_study(directory: Path, options: Options) -> Study:
    """The study ``easy-hard``. Option ``ask=false`` leaves out the routers that ask the language model.

    Raises:
        InputError: there is no finished run, nothing is graded, or it has no reward models.
    """
    values = options.taking(NAME, "ask")
    return easy_hard(directory, options, ask=str(values.get("ask", "true")).lower() != "false")


def easy_hard(directory: str | Path | FinishedRun, options: Options | None = None, *, ask: bool = True) -> Study:
    """Run the study.

    Args:
        directory: A finished run with both reward models' scores, of ``magicore`` or of any other method.
        options: How; new runs need its consent.
        ask: Whether the routers that ask the language model are among the arms.

    Raises:
        InputError: as :func:`easy_hard_study`.
    """
    options = options or Options()
    base = directory if isinstance(directory, FinishedRun) else read_run(directory)
    require_gold(base)
    if base.stats is None:
        raise InputError(f"{base.path} has no chain with both an outcome and a process score, so nothing can be routed")
    made = _arms(base, options, ask=ask)
    whole = made.runs.get(REFINE)
    source = whole or base.narrowed(options.limit)
    stats = source.stats or base.stats
    taken = trajectories(source)
    decided = _decisions(taken, stats, base.config)
    arms, confusions = _scored(source, taken, decided)
    for name in ASKING:
        if name in made.runs:
            arms[name], confusions[name] = _asked(made.runs[name], base, taken)
    rows = arm_rows(arms, options.baseline or AGGREGATE, options.luck)
    routers = tuple({"router": name, **confusion_row(found)} for name, found in confusions.items())
    sweeps = tuple(sweep_rows(taken, stats))
    frontier = tuple(frontier_rows(arm_points(arms)))
    flow = tuple(_flow(taken, decided))
    thresholds = own_thresholds(base.config)
    points = tuple(scatter_rows(taken, stats, thresholds))
    return Study(
        name=NAME,
        tables=(
            StudyTable(name="methods", title="Easy and hard", rows=rows, shown=("method", *SHOWN)),
            StudyTable(name="routers", title="Routers against the oracle (hard is positive)", rows=routers),
            StudyTable(name="refinement", title="What refining did, by how the problem was routed", rows=flow),
            StudyTable(
                name="thresholds",
                title="Thresholds of both conditions",
                rows=sweeps,
                shown=("router", "z_threshold", "confidence_threshold", "hard_rate", "precision", "recall", "accuracy"),
                brief=lambda row: row["router"] != "magicore",
            ),
            StudyTable(name="frontier", title="Frontiers", rows=frontier, brief=lambda row: row["axis"] == "tokens"),
            StudyTable(name=SEPARATION, title="Both conditions, a problem a row", rows=points, brief=lambda row: False),
        ),
        figures=(
            StudyFigure(name="methods", title="Aggregate, refine, or route", draw=accuracy_bars(rows)),
            StudyFigure(name=SEPARATION, title="The two conditions", draw=_draw_scatter(points, thresholds)),
            StudyFigure(
                name="precision_recall",
                title="Routers over their thresholds",
                draw=lines(
                    [row for row in sweeps if row["router"] != "magicore"],
                    x="recall",
                    y="precision",
                    series="router",
                    labels=("recall of hard problems", "precision"),
                ),
            ),
            StudyFigure(
                name="frontier", title="Accuracy against tokens", draw=frontier_scatter(frontier, "tokens", "tokens")
            ),
        ),
        remarks=(*_remarks(rows, made, taken, decided), *_calibration_remarks(base.config)),
        notes={
            **options.luck.notes,
            "run": str(base.path),
            "rounds_from": str(source.path),
            "z_threshold": thresholds[0],
            "confidence_threshold": thresholds[1],
            "mu": stats.mu,
            "sigma": stats.sigma,
        },
    )


def _arms(base: FinishedRun, options: Options, *, ask: bool) -> ArmRuns:
    """The run that refines everything, and those whose router asks the model; ready-made ones, or new with consent."""
    settings: dict[str, Any] = {"method": "magicore"}
    if base.config.method != "magicore":
        width = max((len(base.initial(result.id)) for result in base.results), default=1)
        settings["k"] = options.settings.get("k", width)
    wanted = [Arm(name=REFINE, settings={**settings, "router": "hard"})]
    if ask:
        wanted += [Arm(name=name, settings={**settings, "router": router}) for name, router in ASKING.items()]
    return arm_runs(base, wanted, options)


def own_thresholds(config: RunConfig) -> tuple[float, float]:
    """The thresholds of both conditions in a run whose router is ``magicore``; else the paper's."""
    method = make_method(config.method, **config.options)
    if isinstance(method, Magicore) and isinstance(method.router, MagicoreRouter):
        return method.router.z_threshold, method.router.confidence_threshold
    return Z_THRESHOLD, CONFIDENCE_THRESHOLD


def _decisions(taken: Trajectories, stats: RewardStats, config: RunConfig) -> dict[str, RoutedOutcomes]:
    """Every router that needs no model, followed through the rounds."""
    measured = [one.conditions(stats) for one in taken.rounds]
    z, c = (np.array([threshold]) for threshold in own_thresholds(config))
    yes, no = np.ones((1, taken.n), dtype=np.bool_), np.zeros((1, taken.n), dtype=np.bool_)
    easy: dict[str, list[BoolArray]] = {
        AGGREGATE: [yes for _ in taken.rounds],
        REFINE: [no for _ in taken.rounds],
        ROUTE: [condition_easy(one, "magicore", z, c) for one in measured],
        "condition 1": [condition_easy(one, "condition-1", z, c) for one in measured],
        "condition 2": [condition_easy(one, "condition-2", z, c) for one in measured],
    }
    draws = np.array([uniform(config.seed, "router", name) for name in taken.ids])
    drawn = np.zeros((1, taken.n), dtype=np.bool_)
    drawn[0, np.argsort(draws, kind="stable")[: int((~easy[ROUTE][0]).sum())]] = True
    easy[RANDOM] = [~drawn for _ in taken.rounds]
    easy["oracle"] = [one.right_by()[None, :] for one in taken.rounds]
    return {name: routed(taken, found) for name, found in easy.items()}


def _scored(
    source: FinishedRun, taken: Trajectories, decided: Mapping[str, RoutedOutcomes]
) -> tuple[dict[str, Scored], dict[str, Confusion]]:
    costs = round_costs(source)
    truth = ~taken.rounds[0].right_by()
    arms: dict[str, Scored] = {}
    confusions: dict[str, Confusion] = {}
    for name, outcome in decided.items():
        known, right = outcome.known[0], outcome.right[0]
        arms[name] = Scored(
            right={problem: bool(right[at]) for at, problem in enumerate(taken.ids) if taken.graded[at] and known[at]},
            unknown=int((taken.graded & ~known).sum()),
            spent=costs.of(outcome.rounds[0], known),
        )
        if name not in (AGGREGATE, REFINE):
            confusions[name] = _confusion(outcome.hard, truth, taken.graded)
    return arms, confusions


def _asked(run: FinishedRun, base: FinishedRun, taken: Trajectories) -> tuple[Scored, Confusion]:
    """An arm whose router asked the model."""
    verdicts = {result.id: result.verdict for result in run.results}
    hard = np.array([[(v := verdicts.get(name)) is None or v.hard for name in taken.ids]])
    scored = Scored(right=correctness(run.results), spent=run_spent(run, base))
    judged = taken.graded & np.array([verdicts.get(name) is not None for name in taken.ids])
    return scored, _confusion(hard, ~taken.rounds[0].right_by(), judged)


def _confusion(hard: BoolArray, truth: BoolArray, graded: BoolArray) -> Confusion:
    found = counts(hard, truth, graded)
    return Confusion(
        hard_as_hard=int(found.hard_as_hard[0]),
        easy_as_hard=int(found.easy_as_hard[0]),
        hard_as_easy=int(found.hard_as_easy[0]),
        easy_as_easy=int(found.easy_as_easy[0]),
    )


def confusion_row(found: Confusion) -> dict[str, Any]:
    """A confusion's shares and counts as columns."""
    names = ("hard_rate", "precision", "recall", "f1", "hard_as_hard", "easy_as_hard", "hard_as_easy", "easy_as_easy")
    return {name: getattr(found, name) for name in names}


def _flow(taken: Trajectories, decided: Mapping[str, RoutedOutcomes]) -> list[dict[str, Any]]:
    """Answers before and after refining everything, for the problems that the run's conditions call easy and hard."""
    before, refined = taken.rounds[0].right_by(), decided[REFINE]
    known = refined.known[0] & taken.graded
    after, hard = refined.right[0], decided[ROUTE].hard[0]
    groups = {"all": np.ones(taken.n, dtype=np.bool_), "routed easy": ~hard, "routed hard": hard}
    return [
        {
            "problems": name,
            "n": int((group & taken.graded).sum()),
            "unknown": int((group & taken.graded & ~known).sum()),
            "right_before": int((group & known & before).sum()),
            "right_after": int((group & known & after).sum()),
            "fixed": int((group & known & ~before & after).sum()),
            "broken": int((group & known & before & ~after).sum()),
        }
        for name, group in groups.items()
    ]


def scatter_rows(
    taken: Trajectories,
    stats: RewardStats,
    thresholds: tuple[float, float] = (Z_THRESHOLD, CONFIDENCE_THRESHOLD),
) -> list[dict[str, Any]]:
    """One row a problem: what the two conditions are decided by, and whether aggregation had it right."""
    measured = taken.rounds[0].conditions(stats)
    right, easy = taken.rounds[0].right_by(), measured.easy(*thresholds)

    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return [
        {
            "id": name,
            "z": number(measured.z[at]),
            "confidence_orm": number(measured.confidence_orm[at]),
            "confidence_prm": number(measured.confidence_prm[at]),
            "easy": bool(easy[at]),
            "right": bool(right[at]) if taken.graded[at] else None,
        }
        for at, name in enumerate(taken.ids)
    ]


def _draw_scatter(points: Sequence[Mapping[str, Any]], thresholds: tuple[float, float]) -> Any:
    def draw(axes: Any) -> None:
        kinds = {True: ("C0", "aggregation is right"), False: ("C3", "aggregation is wrong"), None: ("0.6", "no gold")}
        for right, (colour, label) in kinds.items():
            own = [p for p in points if p["right"] is right and p["z"] is not None]
            both = [
                (p["z"], min(p["confidence_orm"], p["confidence_prm"]))
                for p in own
                if p["confidence_orm"] is not None and p["confidence_prm"] is not None
            ]
            if both:
                axes.plot(*zip(*both, strict=True), "o", color=colour, label=label, markersize=4, alpha=0.7)
        axes.axvline(thresholds[0], lw=0.8, color="0.4")
        axes.axhline(thresholds[1], lw=0.8, color="0.4")
        axes.set_xlabel("mean z of the majority (condition 1: right of the line)")
        axes.set_ylabel("smaller confidence (condition 2: above the line)")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)

    return draw


def _calibration_remarks(config: RunConfig) -> list[str]:
    if config.calibration != "running":
        return []
    return ["the run routed each problem by the statistics up to it; this study routes all by the last ones"]


def _remarks(
    rows: Sequence[Mapping[str, Any]], made: ArmRuns, taken: Trajectories, decided: Mapping[str, RoutedOutcomes]
) -> list[str]:
    remarks = [*luck_remarks(rows), *made.remarks]
    refined, aggregated = decided[REFINE], taken.rounds[0].right_by()
    known = taken.graded & refined.known[0]
    if known.sum() == taken.graded.sum() and known.any():
        rate = float(decided[ROUTE].hard[0].mean())
        mean = rate * refined.right[0][known].mean() + (1 - rate) * aggregated[known].mean()
        remarks.append(
            f"random routing at the same rate ({100 * rate:.1f} % hard) is right for {100 * mean:.1f} % of the "
            "problems on average over draws"
        )
    return remarks
