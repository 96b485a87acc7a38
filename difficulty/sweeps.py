"""Both conditions over whole arrays, for threshold sweeps: equal to the scalar functions, problem by problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from difficulty.calibration import RewardStats
from difficulty.conditions import CONFIDENCE_THRESHOLD, MIN_SIGMA, Z_THRESHOLD
from difficulty.errors import EvidenceError
from difficulty.ties import (
    ABSTAINS,
    DIMENSIONS,
    TOLERANCE,
    BoolArray,
    ClassTable,
    FloatArray,
    IntArray,
    class_counts,
    class_sums,
    picked,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionArrays:
    """The numbers behind both conditions for P problems; deciding at other thresholds costs nothing more.

    Attributes:
        majority: (P,) majority class; -1 where every chain abstains.
        z: (P,) mean z of the majority's chains; NaN where there is none or sigma is below 1e-9.
        confidence_orm: (P,) confidence of the outcome reward; NaN where it has no distribution.
        confidence_prm: (P,) confidence of the process reward; NaN likewise.
        answered: (P,) some chain belongs to a class.
        scored: (P,) some chain that belongs to a class has an S.
        constant: (P,) condition 1 holds at any threshold, because sigma is below 1e-9.
    """

    majority: IntArray
    z: FloatArray
    confidence_orm: FloatArray
    confidence_prm: FloatArray
    answered: BoolArray
    scored: BoolArray
    constant: BoolArray

    def condition_1(self, threshold: ArrayLike = Z_THRESHOLD) -> BoolArray:
        """Whether condition 1 holds: (P,) for one threshold, (T, P) for T of them. Not judged counts as false."""
        bound = np.asarray(threshold, dtype=np.float64)[..., None] - TOLERANCE
        return self.constant | (self.z >= bound)

    def condition_2(self, threshold: ArrayLike = CONFIDENCE_THRESHOLD) -> BoolArray:
        """Whether condition 2 holds: (P,) for one threshold, (T, P) for T of them. Not judged counts as false."""
        bound = np.asarray(threshold, dtype=np.float64)[..., None] - TOLERANCE
        return (self.confidence_orm >= bound) & (self.confidence_prm >= bound)

    def easy(
        self, z_threshold: ArrayLike = Z_THRESHOLD, confidence_threshold: ArrayLike = CONFIDENCE_THRESHOLD
    ) -> BoolArray:
        """What the ``magicore`` router says: (P,) for one pair of thresholds, (T, P) for T pairs given as two lists."""
        holds = self.condition_1(z_threshold) | self.condition_2(confidence_threshold)
        return np.where(self.scored, holds, self.answered)


def condition_arrays(
    classes: IntArray,
    o: FloatArray,
    s: FloatArray,
    stats: RewardStats,
    *,
    include: BoolArray | None = None,
) -> ConditionArrays:
    """Measure P problems of up to K chains at once.

    Args:
        classes: (P, K) answer class of each chain; -1 abstains.
        o: (P, K) outcome scores; NaN where missing.
        s: (P, K) process scores; NaN where missing.
        stats: mu and sigma, the same for all problems.
        include: (P, K) the chains that exist (rows may be of different lengths) and are to be looked at; all if not
            given.

    Raises:
        EvidenceError: The arrays differ in shape.
    """
    if classes.ndim != DIMENSIONS or not classes.shape == o.shape == s.shape:
        raise EvidenceError(f"classes, o and s must be (P, K) alike: got {classes.shape}, {o.shape} and {s.shape}")
    combined = o + s
    table = ClassTable.of(classes, combined, include)
    column = table.majority()
    answered = column >= 0
    scored_chains = (table.columns >= 0) & ~np.isnan(combined)
    constant = np.full(len(column), stats.sigma < MIN_SIGMA)
    mean = _majority_mean(table, scored_chains, column)
    sigma = max(stats.sigma, MIN_SIGMA)
    return ConditionArrays(
        majority=picked(classes, column, ABSTAINS),
        z=np.where(constant, np.nan, (mean - stats.mu) / sigma),
        confidence_orm=_confidence(table.columns, np.where(scored_chains, o, np.nan)),
        confidence_prm=_confidence(table.columns, np.where(scored_chains, s, np.nan)),
        answered=answered,
        scored=scored_chains.any(axis=1),
        constant=constant & ~np.isnan(mean),
    )


def _majority_mean(table: ClassTable, scored: BoolArray, column: IntArray) -> FloatArray:
    """(P,) mean S of the majority's scored chains; NaN where there is none."""
    count = picked(class_counts(table.columns, scored), column, 0)
    mean = np.full(len(column), np.nan)
    np.divide(picked(table.total, column, np.nan), count, out=mean, where=count > 0)
    return mean


def _confidence(columns: IntArray, rewards: FloatArray) -> FloatArray:
    """(P,) confidence of one reward over the classes; NaN where its sums are all 0 or there is none."""
    sums = np.maximum(class_sums(columns, rewards), 0.0)
    whole = sums.sum(axis=1, keepdims=True)
    shares = np.divide(sums, whole, out=np.zeros_like(sums), where=whole > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    nats = np.maximum(-(shares * logs).sum(axis=1), 0.0)
    return np.where(whole[:, 0] > 0, 2.0 / (1.0 + np.exp(nats)), np.nan)
