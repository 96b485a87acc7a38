"""What can be said of a reward model from judged solutions and its scores on them; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from magicore.answers import classes
from magicore.evaluate.first_error import FirstErrorReport, first_error_report
from magicore.evaluate.judged import Judged, by_problem
from magicore.evaluate.ranking import ReliabilityBin, auroc, brier, calibration_error, reliability
from magicore.evaluate.selection import Chosen, expected_best_of, expected_vote

LENGTHS = ((1, 3), (4, 6), (7, 9), (10, None))
"""Groups by the number of steps."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What a reward model said of one solution: a score a step (process models), and one of the whole, each in [0, 1]
    or ``None``.
    """

    steps: tuple[float | None, ...] | None
    whole: float | None


@dataclass(frozen=True, kw_only=True)
class Discrimination:
    """How well scores tell right from wrong, and how well they are calibrated."""

    n: int
    right: int
    unscored: int
    auroc: float | None
    brier: float | None
    calibration_error: float | None
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Expected accuracy of choosing among ``k`` chains of a problem, over problems with at least ``k``."""

    k: int
    problems: int
    single: float
    majority: float
    best_of: float
    weighted: float
    any_right: float


@dataclass(frozen=True, kw_only=True)
class RewardReport:
    """The whole judgement; a part is ``None`` where the data do not tell."""

    solutions: int
    steps: Discrimination | None
    first_error: FirstErrorReport | None
    outcomes: Discrimination | None
    selection: tuple[Selection, ...]
    by_length: Mapping[str, Mapping[str, Any]]
    unscored: Mapping[str, int]

    def row(self) -> dict[str, Any]:
        """All of it as JSON."""
        found = asdict(self)
        if self.first_error is not None:
            found["first_error"]["f1"] = self.first_error.f1
        return found


def report(
    judged: Sequence[Judged],
    scored: Sequence[Scored],
    *,
    threshold: float = 0.5,
    unscored: Mapping[str, int] | None = None,
    seed: int = 0,
) -> RewardReport:
    """Judge a reward model.

    Raises:
        ValueError: There are not as many scores as solutions, or as steps.
    """
    pairs = list(zip(judged, scored, strict=True))
    lengths = {}
    for low, high in LENGTHS:
        part = [(j, s) for j, s in pairs if low <= len(j.given.solution.steps) <= (high or math.inf)]
        if part:
            name = f"{low}-{high}" if high else f"{low}+"
            lengths[name] = _brief(part, threshold)
    return RewardReport(
        solutions=len(pairs),
        steps=_steps(pairs),
        first_error=_first_errors(pairs, threshold),
        outcomes=_outcomes(pairs),
        selection=tuple(_selection(judged, scored, seed)),
        by_length=lengths,
        unscored=dict(unscored or {}),
    )


def discrimination(scores: Sequence[float | None], labels: Sequence[bool]) -> Discrimination:
    """Of the items that have a score; the others are counted."""
    both = [(score, label) for score, label in zip(scores, labels, strict=True) if score is not None]
    values, truths = [score for score, _ in both], [label for _, label in both]
    bins = reliability(values, truths)
    return Discrimination(
        n=len(both),
        right=sum(truths),
        unscored=len(scores) - len(both),
        auroc=auroc(values, truths),
        brier=brier(values, truths),
        calibration_error=calibration_error(bins),
        bins=bins,
    )


def _steps(pairs: Sequence[tuple[Judged, Scored]]) -> Discrimination | None:
    found = [
        (score, right)
        for one, said in pairs
        if one.truth is not None and said.steps is not None
        for score, right in zip(said.steps, one.truth, strict=True)
        if right is not None
    ]
    return discrimination([score for score, _ in found], [right for _, right in found]) if found else None


def _first_errors(pairs: Sequence[tuple[Judged, Scored]], threshold: float) -> FirstErrorReport | None:
    found = [(said.steps, one.first_error) for one, said in pairs if said.steps is not None]
    known = [(steps, label) for steps, label in found if label is not None]
    return first_error_report([s for s, _ in known], [at for _, at in known], threshold) if known else None


def _outcomes(pairs: Sequence[tuple[Judged, Scored]]) -> Discrimination | None:
    found = [(said.whole, one.outcome) for one, said in pairs if one.outcome is not None]
    return discrimination([score for score, _ in found], [right for _, right in found]) if found else None


def _brief(pairs: Sequence[tuple[Judged, Scored]], threshold: float) -> dict[str, Any]:
    steps, errors, outcomes = _steps(pairs), _first_errors(pairs, threshold), _outcomes(pairs)
    return {
        "solutions": len(pairs),
        "step_auroc": steps.auroc if steps else None,
        "first_error_f1": errors.f1 if errors else None,
        "outcome_auroc": outcomes.auroc if outcomes else None,
    }


def _selection(judged: Sequence[Judged], scored: Sequence[Scored], seed: int) -> list[Selection]:
    """For k = 1, 2, 4 ... as far as any problem has so many chains."""
    groups: list[list[Chosen]] = []
    for places in by_problem(judged).values():
        if any(judged[at].outcome is None for at in places) or len(places) < 2:
            continue
        problem = judged[places[0]].given.problem
        if problem.answer is None:
            continue
        numbers = classes([judged[at].answer for at in places], problem.kind, options=problem.options)
        groups.append(
            [(number, scored[at].whole, bool(judged[at].outcome)) for number, at in zip(numbers, places, strict=True)]
        )
    found = []
    k = 1
    while any(len(group) >= k for group in groups):
        large = [group for group in groups if len(group) >= k]
        n = len(large)
        found.append(
            Selection(
                k=k,
                problems=n,
                single=math.fsum(sum(c[2] for c in group) / len(group) for group in large) / n,
                majority=math.fsum(expected_vote(group, k, weighted=False, seed=seed) for group in large) / n,
                best_of=math.fsum(expected_best_of([(c[1], c[2]) for c in group], k) for group in large) / n,
                weighted=math.fsum(expected_vote(group, k, weighted=True, seed=seed) for group in large) / n,
                any_right=math.fsum(_any_right(group, k) for group in large) / n,
            )
        )
        k *= 2
    return found


def _any_right(group: Sequence[Chosen], k: int) -> float:
    wrong = sum(not chosen[2] for chosen in group)
    return 1 - math.comb(wrong, k) / math.comb(len(group), k)


def unscored_reasons(codes: Sequence[str]) -> Mapping[str, int]:
    """How often each reason came."""
    return dict(sorted(Counter(codes).items()))
