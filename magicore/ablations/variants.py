"""Studies whose arms are whole runs: the finished one and variants of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from magicore.ablations.arms import Arm, ArmRuns, arm_runs, run_spent
from magicore.ablations.drawing import accuracy_bars, frontier_scatter
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.options import Options
from magicore.ablations.statistics import SHOWN, Scored, arm_points, arm_rows, luck_remarks
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.trajectories import trajectories
from magicore.errors import InputError
from magicore.evaluate import correctness
from magicore.evaluate.axes import AXIS_LABELS, Axis, frontier_rows


def finished_magicore(directory: Path, study: str) -> FinishedRun:
    """The run of a study about MAgICoRe's own parts.

    Raises:
        InputError: there is no finished run, nothing is graded, or it is of another method.
    """
    run = read_run(directory)
    require_gold(run)
    if run.config.method != "magicore":
        raise InputError(f"{directory} holds a run of {run.config.method}; {study} needs one of the method magicore")
    return run


def variants_study(
    name: str, base: FinishedRun, arms: Sequence[Arm], options: Options, *, baseline: str, title: str
) -> Study:
    """Run the arms, or take what is there, and compare them with the baseline.

    Raises:
        InputError: not even the baseline is there, or it is none of the arms.
    """
    return study_of(name, base, arm_runs(base, arms, options), options, baseline=baseline, title=title, beside=Beside())


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What a study has beside its runs.

    Attributes:
        arms: Arms that are no runs of their own.
        tables, remarks: Further ones.
        axes: The costs that frontiers are drawn over.
    """

    arms: Mapping[str, Scored] = field(default_factory=dict)
    tables: tuple[StudyTable, ...] = ()
    remarks: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ("tokens",)


def study_of(
    name: str, base: FinishedRun, made: ArmRuns, options: Options, *, baseline: str, title: str, beside: Beside
) -> Study:
    """The tables and figures of arms that are done.

    Raises:
        InputError: the baseline is not among them.
    """
    arms = {arm: Scored(right=correctness(run.results), spent=run_spent(run, base)) for arm, run in made.runs.items()}
    arms |= beside.arms
    chosen = options.baseline or baseline
    if chosen not in arms:
        have = f"there are {', '.join(arms)}" if arms else "nothing is there yet"
        raise InputError(
            f"{name}: the baseline {chosen!r} is not among the arms that are done ({have}). {' '.join(made.remarks)}"
        )
    rows = arm_rows(arms, chosen, options.luck)
    frontier = tuple(frontier_rows(arm_points(arms)))
    flow = tuple(row for arm, run in made.runs.items() if (row := flow_row(arm, run)) is not None)
    failed = {arm: sum(r.error is not None for r in run.results) for arm, run in made.runs.items()}
    return Study(
        name=name,
        tables=(
            StudyTable(name="methods", title=title, rows=rows, shown=("method", *SHOWN)),
            *beside.tables,
            StudyTable(name="refinement", title="What refining did to the first vote's answers", rows=flow),
            StudyTable(name="frontier", title="Frontiers", rows=frontier, brief=lambda row: row["axis"] == "tokens"),
        ),
        figures=(
            StudyFigure(name="methods", title=title, draw=accuracy_bars(rows)),
            *(
                StudyFigure(
                    name=f"frontier_{axis}",
                    title=f"Accuracy against {AXIS_LABELS[axis]}",
                    draw=frontier_scatter(frontier, axis, AXIS_LABELS[axis]),
                )
                for axis in beside.axes
            ),
        ),
        remarks=(
            *luck_remarks(rows),
            *made.remarks,
            *(f"{arm}: {count} problems failed and count as not right" for arm, count in failed.items() if count),
            *beside.remarks,
        ),
        notes={
            **options.luck.notes,
            "run": str(base.path),
            "baseline": chosen,
            "arms": {arm: str(run.path) for arm, run in made.runs.items()},
        },
    )


def flow_row(arm: str, run: FinishedRun) -> dict[str, Any] | None:
    """How many answers rounds of refinement turned right and wrong; ``None`` for a method without rounds."""
    if run.last_round == 0 or run.config.method != "magicore":
        return None
    taken = trajectories(run)
    before = taken.rounds[0].right_by()
    after = np.array([result.correct is True for result in run.results], dtype=np.bool_)
    refined = taken.rounds[1].reached & taken.graded
    return {
        "method": arm,
        "refined": int(refined.sum()),
        "right_before": int((before & taken.graded).sum()),
        "right_after": int((after & taken.graded).sum()),
        "fixed": int((refined & ~before & after).sum()),
        "broken": int((refined & before & ~after).sum()),
    }
