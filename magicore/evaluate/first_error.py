"""ProcessBench's measure: does a process reward model find the first wrong step?

Source: Zheng et al., 2024, arXiv 2412.06559.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NONE_WRONG = -1
"""ProcessBench's label of a solution whose steps are all right."""


def predicted_first_error(scores: Sequence[float | None], threshold: float) -> int:
    """The first step that scores below the threshold, -1 where none does; a step without a score is passed over."""
    return next((at for at, score in enumerate(scores) if score is not None and score < threshold), NONE_WRONG)


@dataclass(frozen=True, kw_only=True)
class FirstErrorReport:
    """Accuracy on solutions with an error (the first wrong step is named exactly) and on right ones (none is named).

    ``f1`` is the harmonic mean of the two accuracies, in [0, 1]; each is ``None`` where there is no such solution, and
    then so is ``f1``.
    """

    threshold: float
    erroneous: int
    right: int
    accuracy_erroneous: float | None
    accuracy_right: float | None

    @property
    def f1(self) -> float | None:
        """The harmonic mean; 0 where either accuracy is."""
        first, second = self.accuracy_erroneous, self.accuracy_right
        if first is None or second is None:
            return None
        return 2 * first * second / (first + second) if first + second > 0 else 0.0


def first_error_report(
    scores: Sequence[Sequence[float | None]], labels: Sequence[int], threshold: float
) -> FirstErrorReport:
    """Compare what :func:`predicted_first_error` names with the labels, one a solution.

    Raises:
        ValueError: There are not as many labels as solutions.
    """
    pairs = [(predicted_first_error(one, threshold), label) for one, label in zip(scores, labels, strict=True)]
    wrong = [found == label for found, label in pairs if label != NONE_WRONG]
    right = [found == label for found, label in pairs if label == NONE_WRONG]
    return FirstErrorReport(
        threshold=threshold,
        erroneous=len(wrong),
        right=len(right),
        accuracy_erroneous=sum(wrong) / len(wrong) if wrong else None,
        accuracy_right=sum(right) / len(right) if right else None,
    )


def best_threshold(scores: Sequence[Sequence[float | None]], labels: Sequence[int]) -> FirstErrorReport:
    """The report at the threshold with the largest F1, the smallest of equals: for choosing one on a part of the data
    that nothing else is measured on. Thresholds tried: 0.05 to 0.95 by steps of 0.05.
    """
    reports = [first_error_report(scores, labels, at / 20) for at in range(1, 20)]
    return max(reports, key=lambda report: (report.f1 if report.f1 is not None else -1.0, -report.threshold))
