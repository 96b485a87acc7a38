"""How well a router finds the hard problems. Hard is the positive class; the oracle says which are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from difficulty.errors import EvidenceError
from difficulty.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """A router's decisions counted against the oracle's.

    Attributes:
        hard_as_hard: True positives.
        easy_as_hard: False positives: refined without need.
        hard_as_easy: False negatives: left wrong.
        easy_as_easy: True negatives.
    """

    hard_as_hard: int
    easy_as_hard: int
    hard_as_easy: int
    easy_as_easy: int

    @property
    def n(self) -> int:
        """Problems counted."""
        return self.hard_as_hard + self.easy_as_hard + self.hard_as_easy + self.easy_as_easy

    @property
    def precision(self) -> float | None:
        """Share of the problems routed hard that are hard; ``None`` if none was routed hard."""
        return _share(self.hard_as_hard, self.hard_as_hard + self.easy_as_hard)

    @property
    def recall(self) -> float | None:
        """Share of the hard problems that were routed hard; ``None`` if none is hard."""
        return _share(self.hard_as_hard, self.hard_as_hard + self.hard_as_easy)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN); ``None`` if nothing is or was routed hard."""
        return _share(2 * self.hard_as_hard, 2 * self.hard_as_hard + self.easy_as_hard + self.hard_as_easy)

    @property
    def accuracy(self) -> float | None:
        """Share of the problems routed as the oracle does; ``None`` of no problem."""
        return _share(self.hard_as_hard + self.easy_as_easy, self.n)

    @property
    def hard_rate(self) -> float | None:
        """Share of the problems routed hard; ``None`` of no problem."""
        return _share(self.hard_as_hard + self.easy_as_hard, self.n)


def confusion(routed_hard: Iterable[bool], truly_hard: Iterable[bool]) -> Confusion:
    """Count decisions against the truth, problem by problem.

    Args:
        routed_hard: For each problem whether the router said hard.
        truly_hard: For each problem, in the same order, whether it is hard (the oracle).

    Raises:
        EvidenceError: The two differ in length.
    """
    routed, truth = [bool(value) for value in routed_hard], [bool(value) for value in truly_hard]
    if len(routed) != len(truth):
        raise EvidenceError(f"one decision and one truth a problem: got {len(routed)} and {len(truth)}")
    pairs = list(zip(routed, truth, strict=True))
    return Confusion(
        hard_as_hard=pairs.count((True, True)),
        easy_as_hard=pairs.count((True, False)),
        hard_as_easy=pairs.count((False, True)),
        easy_as_easy=pairs.count((False, False)),
    )


def compare_verdicts(verdicts: Iterable[Verdict], oracle: Iterable[Verdict]) -> Confusion:
    """Count a router's verdicts against the oracle router's on the same problems, in the same order.

    Raises:
        EvidenceError: The two differ in length.
    """
    return confusion((verdict.hard for verdict in verdicts), (verdict.hard for verdict in oracle))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
