"""Accuracy of one run, with its Wilson interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from magicore.types import Result


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How many problems were answered right.

    Attributes:
        n: Problems in all.
        graded: Problems that have a gold answer.
        correct: Graded problems answered right; an abstention, a failure and an undecided comparison are not right.
        value: ``correct / graded``; ``None`` where nothing is graded.
        interval: Its Wilson score interval.
    """

    n: int
    graded: int
    correct: int
    value: float | None
    interval: Interval | None


def wilson(correct: int, n: int, *, confidence: float = 0.95) -> Interval:
    """The Wilson score interval of a proportion (Wilson, 1927), without continuity correction.

    Raises:
        ValueError: Not ``0 <= correct <= n`` with n at least 1, or a confidence outside (0, 1).
    """
    if not 0 <= correct <= n or n < 1:
        raise ValueError(f"{correct} of {n} is no proportion")
    z = _two_sided(confidence)
    share = correct / n
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if correct == 0 else (centre - half) / scale
    high = 1.0 if correct == n else (centre + half) / scale
    return Interval(low, high)


def accuracy(results: Iterable[Result], *, confidence: float = 0.95) -> Accuracy:
    """The accuracy of results over the problems that have a gold answer."""
    listed = list(results)
    right = correctness(listed)
    return accuracy_of(right.values(), n=len(listed), confidence=confidence)


def accuracy_of(right: Iterable[bool], *, n: int | None = None, confidence: float = 0.95) -> Accuracy:
    """The accuracy of graded answers; ``n`` counts the ungraded ones too, where there are any."""
    outcomes = list(right)
    graded, correct = len(outcomes), sum(outcomes)
    return Accuracy(
        n=graded if n is None else n,
        graded=graded,
        correct=correct,
        value=correct / graded if graded else None,
        interval=wilson(correct, graded, confidence=confidence) if graded else None,
    )


def correctness(results: Iterable[Result]) -> dict[str, bool]:
    """Problem id -> whether it was answered right, for the problems that have a gold answer."""
    return {result.id: result.correct is True for result in results if result.gold is not None}


def _two_sided(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies in (0, 1), got {confidence!r}")
    return NormalDist().inv_cdf((1 + confidence) / 2)
