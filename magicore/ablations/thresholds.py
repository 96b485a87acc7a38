"""Thresholds of both conditions, all pairs at once: what each router would have come to on a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from difficulty import ConditionArrays, RewardStats
from difficulty.conditions import CONFIDENCE_THRESHOLD, Z_THRESHOLD
from difficulty.ties import BoolArray, FloatArray, IntArray
from magicore.ablations.trajectories import RoutedOutcomes, Trajectories, routed

Conditions = Literal["condition-1", "condition-2", "magicore"]
Z_GRID = tuple(float(z) for z in np.round(np.linspace(-1.8, 1.8, 10), 3))
CONFIDENCE_GRID = tuple(float(c) for c in np.round(np.linspace(0.1, 1.0, 10), 3))


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """T routers against the oracle over the graded problems; arrays are (T,). Hard is positive."""

    hard_as_hard: IntArray
    easy_as_hard: IntArray
    hard_as_easy: IntArray
    easy_as_easy: IntArray

    @property
    def precision(self) -> FloatArray:
        """Share of those routed hard that are hard; NaN if none was."""
        return _share(self.hard_as_hard, self.hard_as_hard + self.easy_as_hard)

    @property
    def recall(self) -> FloatArray:
        """Share of the hard that were routed hard; NaN if none is."""
        return _share(self.hard_as_hard, self.hard_as_hard + self.hard_as_easy)

    @property
    def hard_rate(self) -> FloatArray:
        """Share routed hard; NaN of no problem."""
        routed_hard = self.hard_as_hard + self.easy_as_hard
        return _share(routed_hard, routed_hard + self.hard_as_easy + self.easy_as_easy)


def counts(hard: BoolArray, truly_hard: BoolArray, graded: BoolArray) -> Counts:
    """Count (T, P) decisions against the (P,) truth."""
    of = graded[None, :]
    return Counts(
        hard_as_hard=(hard & truly_hard & of).sum(axis=1),
        easy_as_hard=(hard & ~truly_hard & of).sum(axis=1),
        hard_as_easy=(~hard & truly_hard & of).sum(axis=1),
        easy_as_easy=(~hard & ~truly_hard & of).sum(axis=1),
    )


def condition_easy(conditions: ConditionArrays, router: Conditions, z: FloatArray, confidence: FloatArray) -> BoolArray:
    """(T, P) what a router of one or both conditions says at T (pairs of) thresholds: as the one in ``difficulty``."""
    match router:
        case "condition-1":
            holds = conditions.condition_1(z)
        case "condition-2":
            holds = conditions.condition_2(confidence)
        case "magicore":
            return conditions.easy(z, confidence)
    easy: BoolArray = np.where(conditions.scored, holds, conditions.answered)
    return easy


def sweep(
    taken: Trajectories,
    stats: RewardStats,
    router: Conditions,
    z: Sequence[float],
    confidence: Sequence[float],
) -> tuple[RoutedOutcomes, Counts]:
    """Route every problem of a run at T thresholds, or pairs of them, through all of its rounds."""
    zs, cs = np.asarray(z, dtype=np.float64), np.asarray(confidence, dtype=np.float64)
    measured = [one.conditions(stats) for one in taken.rounds]
    outcomes = routed(taken, [condition_easy(one, router, zs, cs) for one in measured])
    return outcomes, counts(outcomes.hard, ~taken.rounds[0].right_by(), taken.graded)


def sweep_rows(
    taken: Trajectories,
    stats: RewardStats,
    *,
    z: Sequence[float] = Z_GRID,
    confidence: Sequence[float] = CONFIDENCE_GRID,
) -> list[dict[str, Any]]:
    """One row a threshold of either condition alone, and one a pair of them.

    ``accuracy`` is over the graded problems, and ``None`` where the run lacks the rounds that some problem would need
    (``unknown`` counts those).
    """
    pairs = [(a, b) for a in z for b in confidence]
    grids: dict[Conditions, tuple[list[float], list[float]]] = {
        "condition-1": (list(z), [CONFIDENCE_THRESHOLD] * len(z)),
        "condition-2": ([Z_THRESHOLD] * len(confidence), list(confidence)),
        "magicore": ([a for a, _ in pairs], [b for _, b in pairs]),
    }
    rows: list[dict[str, Any]] = []
    for router, (zs, cs) in grids.items():
        outcomes, found = sweep(taken, stats, router, zs, cs)
        unknown = (~outcomes.known & taken.graded).sum(axis=1)
        right = (outcomes.right & outcomes.known & taken.graded).sum(axis=1)
        graded = int(taken.graded.sum())
        for at in range(len(zs)):
            precision, recall = _number(found.precision[at]), _number(found.recall[at])
            rows.append(
                {
                    "router": router,
                    "z_threshold": zs[at] if router != "condition-2" else None,
                    "confidence_threshold": cs[at] if router != "condition-1" else None,
                    "hard_rate": _number(found.hard_rate[at]),
                    "precision": precision,
                    "recall": recall,
                    "f1": _f1(found, at),
                    "accuracy": int(right[at]) / graded if graded and not unknown[at] else None,
                    "unknown": int(unknown[at]),
                    "rounds": float(outcomes.rounds[at].mean()),
                    "hard_as_hard": int(found.hard_as_hard[at]),
                    "easy_as_hard": int(found.easy_as_hard[at]),
                    "hard_as_easy": int(found.hard_as_easy[at]),
                    "easy_as_easy": int(found.easy_as_easy[at]),
                }
            )
    return rows


def _f1(found: Counts, at: int) -> float | None:
    twice = 2 * int(found.hard_as_hard[at])
    whole = twice + int(found.easy_as_hard[at]) + int(found.hard_as_easy[at])
    return twice / whole if whole else None


def _share(part: IntArray, whole: IntArray) -> FloatArray:
    found = np.full(part.shape, np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
