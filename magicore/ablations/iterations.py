"""Iterations: accuracy after 0 to T rounds, and what each fixed and broke. Without a model, from a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from difficulty.ties import BoolArray
from magicore.ablations.arms import Arm, arm_runs
from magicore.ablations.drawing import lines
from magicore.ablations.finished import FinishedRun, read_run, require_gold
from magicore.ablations.options import Options
from magicore.ablations.round_cost import round_costs
from magicore.ablations.statistics import SHOWN, Scored, arm_points, arm_rows, luck_remarks
from magicore.ablations.study import Study, StudyFigure, StudyTable
from magicore.ablations.trajectories import Trajectories, trajectories
from magicore.errors import InputError
from magicore.evaluate import wilson
from magicore.evaluate.axes import frontier_rows

NAME = "iterations"
WEIGHTED = frozenset({"magicore", "refine", "weighted-self-consistency"})
"""Methods whose answer after a round is the weighted vote; the others' is the majority."""


def iterations_study(directory: Path, options: Options) -> Study:
    """The study ``iterations``. ``--iterations T`` asks for more rounds than the run had: a new run.

    Raises:
        InputError: there is no finished run, nothing is graded, or it has no rounds.
    """
    options.taking(NAME)
    base = read_run(directory)
    require_gold(base)
    made = arm_runs(base, [Arm(name="run")], options)
    run = made.runs.get("run", base.narrowed(options.limit))
    if run.last_round == 0:
        raise InputError(
            f"no problem of {directory} went through a round of refinement, so there is nothing to follow; "
            "--iterations T --yes makes a run with rounds"
        )
    taken = trajectories(run)
    right = answers_by_round(run, taken)
    arms = {round_name(number): one for number, one in enumerate(scored_by_round(run, taken, right))}
    rows = arm_rows(arms, options.baseline or round_name(0), options.luck)
    flow = tuple(flow_rows(run, taken, right, options.luck.confidence))
    return Study(
        name=NAME,
        tables=(
            StudyTable(name="methods", title="Accuracy by round", rows=rows, shown=("method", *SHOWN)),
            StudyTable(name="flow", title="What each round fixed and broke", rows=flow),
            StudyTable(
                name="frontier",
                title="Frontiers",
                rows=tuple(frontier_rows(arm_points(arms))),
                brief=lambda row: row["axis"] == "tokens",
            ),
        ),
        figures=(
            StudyFigure(
                name="iterations",
                title="Accuracy after each round",
                draw=lines(
                    [{"what": "all problems", **row} for row in flow] + _refined_lines(flow),
                    x="round",
                    y="accuracy",
                    series="what",
                    band=("accuracy_low", "accuracy_high"),
                    labels=("rounds", "accuracy"),
                ),
            ),
            StudyFigure(name="flow", title="Answers fixed and broken in each round", draw=_draw_flow(flow)),
        ),
        remarks=(*luck_remarks(rows), *made.remarks),
        notes={**options.luck.notes, "run": str(run.path), "rounds": run.last_round},
    )


def round_name(number: int) -> str:
    """How the answer after a round is called."""
    return "first chains" if number == 0 else f"after round {number}"


def answers_by_round(run: FinishedRun, taken: Trajectories) -> list[BoolArray]:
    """(P,) for each round: whether the answer that a problem has then is right. One that has ended keeps its last."""
    method = "weighted-self-consistency" if run.config.method in WEIGHTED else "self-consistency"
    found = [one.right_by(method) for one in taken.rounds]
    final = np.array([result.correct is True for result in run.results], dtype=np.bool_)
    # The method's own word counts where it has spoken: after a problem's last round.
    counts = np.array(run.rounds)
    return [np.where(counts - 1 <= number, final, right) for number, right in enumerate(found)]


def scored_by_round(run: FinishedRun, taken: Trajectories, right: list[BoolArray]) -> list[Scored]:
    """The answers to graded problems after each round, and what all problems cost up to it."""
    costs = round_costs(run)
    everyone = np.ones(taken.n, dtype=np.bool_)
    gone = np.cumsum([one.reached for one in taken.rounds], axis=0) - 1
    return [
        Scored(
            right={name: bool(answers[at]) for at, name in enumerate(taken.ids) if taken.graded[at]},
            spent=costs.of(gone[number], everyone),
        )
        for number, answers in enumerate(right)
    ]


def flow_rows(run: FinishedRun, taken: Trajectories, right: list[BoolArray], confidence: float) -> list[dict[str, Any]]:
    """One row a round: problems refined in it, their new chains, and answers turned right and wrong."""
    graded = taken.graded
    n = int(graded.sum())
    rows: list[dict[str, Any]] = []
    for number, now in enumerate(right):
        reached = taken.rounds[number].reached & graded
        before = right[max(number - 1, 0)]
        low, high = wilson(int((now & graded).sum()), n, confidence=confidence)
        chains = [r for found in run.chains.values() for r in found if r.scored.chain.round == number]
        rows.append(
            {
                "round": number,
                "problems": int(reached.sum()),
                "new_chains": len(chains),
                "new_tokens": sum(r.scored.chain.tokens or 0 for r in chains),
                "fixed": int((~before & now & graded).sum()),
                "broken": int((before & ~now & graded).sum()),
                "stayed_right": int((before & now & reached).sum()),
                "stayed_wrong": int((~before & ~now & reached).sum()),
                "correct": int((now & graded).sum()),
                "accuracy": int((now & graded).sum()) / n,
                "accuracy_low": low,
                "accuracy_high": high,
                "refined_accuracy": _of_refined(taken, now),
            }
        )
    return rows


def _of_refined(taken: Trajectories, now: BoolArray) -> float | None:
    """Accuracy over the problems that were refined at all."""
    refined = taken.rounds[1].reached & taken.graded if len(taken.rounds) > 1 else np.zeros(taken.n, dtype=np.bool_)
    return float(now[refined].mean()) if refined.any() else None


def _refined_lines(flow: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    missing = {"accuracy_low": None, "accuracy_high": None}
    return [
        {"what": "problems that were refined", **row, "accuracy": row["refined_accuracy"], **missing} for row in flow
    ]


def _draw_flow(flow: tuple[dict[str, Any], ...]) -> Any:
    def draw(axes: Any) -> None:
        rows = [row for row in flow if row["round"] > 0]
        axes.bar([row["round"] for row in rows], [row["fixed"] for row in rows], color="C0", label="fixed")
        axes.bar([row["round"] for row in rows], [-row["broken"] for row in rows], color="C3", label="broken")
        axes.axhline(0, lw=0.8, color="0.3")
        axes.set_xticks([row["round"] for row in rows])
        axes.set_xlabel("round")
        axes.set_ylabel("answers")
        axes.legend(fontsize=7)

    return draw
