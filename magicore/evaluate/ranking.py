"""How well scores tell right from wrong, and how far they can be taken for probabilities. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

BINS = 10


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """The probability that a right item scores higher than a wrong one; a tie counts one half.

    The area under the receiver operating characteristic, by the Mann-Whitney statistic with mid-ranks. ``None`` where
    there are only right or only wrong items, for which it is not defined.

    >>> auroc([0.9, 0.8, 0.3, 0.3], [True, False, True, False])
    0.625
    """
    _check(scores, labels)
    right = sum(labels)
    wrong = len(labels) - right
    if not right or not wrong:
        return None
    below = 0
    won = 0.0
    for _, group in groupby(sorted(zip(scores, labels, strict=True)), key=lambda pair: pair[0]):
        tied = [label for _, label in group]
        good = sum(tied)
        bad = len(tied) - good
        won += good * (below + bad / 2)
        below += bad
    return won / (right * wrong)


def brier(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """The mean squared distance of scores in [0, 1] from 1 (right) or 0 (wrong); ``None`` for no items. 0 is perfect,
    0.25 what a constant one half gets.
    """
    _check(scores, labels)
    if not labels:
        return None
    return math.fsum((score - label) ** 2 for score, label in zip(scores, labels, strict=True)) / len(labels)


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Scores in ``[low, high)`` (the last bin includes 1): how many, their mean, and the share that is right."""

    low: float
    high: float
    n: int
    mean_score: float | None
    share_right: float | None


def reliability(scores: Sequence[float], labels: Sequence[bool], *, bins: int = BINS) -> tuple[ReliabilityBin, ...]:
    """A reliability diagram's bins of equal width over [0, 1]; an empty bin has no mean.

    Raises:
        ValueError: A score lies outside [0, 1], or there is no bin.
    """
    _check(scores, labels)
    if bins < 1:
        raise ValueError(f"there is at least one bin, not {bins}")
    if strange := next((score for score in scores if not 0 <= score <= 1), None):
        raise ValueError(f"scores lie in [0, 1], got {strange}")
    held: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for score, label in zip(scores, labels, strict=True):
        held[min(int(score * bins), bins - 1)].append((score, label))
    return tuple(
        ReliabilityBin(
            low=at / bins,
            high=(at + 1) / bins,
            n=len(items),
            mean_score=math.fsum(score for score, _ in items) / len(items) if items else None,
            share_right=sum(label for _, label in items) / len(items) if items else None,
        )
        for at, items in enumerate(held)
    )


def calibration_error(bins: Sequence[ReliabilityBin]) -> float | None:
    """The expected calibration error (Guo et al., 2017, arXiv 1706.04599): the mean distance of mean score and share of
    right items, weighted by the bins' sizes; ``None`` for no items.
    """
    n = sum(one.n for one in bins)
    if not n:
        return None
    gaps = [
        one.n * abs(one.mean_score - one.share_right)
        for one in bins
        if one.mean_score is not None and one.share_right is not None
    ]
    return math.fsum(gaps) / n


def _check(scores: Sequence[float], labels: Sequence[bool]) -> None:
    if len(scores) != len(labels):
        raise ValueError(f"{len(scores)} scores for {len(labels)} labels: one a label is required")
