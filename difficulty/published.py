"""Routing as the published MAgICoRe code has it (dinobby/MAgICoRe, refine.py), for comparison only.

Its rule differs from the paper's in what :class:`PublishedRouter` and :func:`published_scores` say. Its statistics
are those of :func:`difficulty.first_chain_stats` over the published scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from difficulty.calibration import RewardStats
from difficulty.conditions import CONFIDENCE_THRESHOLD, MIN_SIGMA, confidence, entropy
from difficulty.errors import EvidenceError, MissingEvidenceError
from difficulty.evidence import Evidence
from difficulty.routers import REMEDIES
from difficulty.ties import ABSTAINS
from difficulty.verdict import Verdict


def published_scores(
    classes: Sequence[int | None], o: Sequence[float | None], s: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """o and s as the published code has them: a chain without an answer gets s = 0, whatever the model said of it.

    Returns:
        The outcome scores and the process scores, one a chain.

    Raises:
        EvidenceError: A chain has no o, or a chain with an answer has no s; the published code scores every chain.
    """
    for index, (answer_class, outcome, process) in enumerate(zip(classes, o, s, strict=True)):
        if outcome is None or (process is None and answer_class is not None):
            missing = "o" if outcome is None else "s"
            raise EvidenceError(f"the published rule needs every chain scored, but chain {index} has no {missing}")
    outcomes = [value for value in o if value is not None]
    processes = [
        0.0 if answer_class is None or value is None else value for answer_class, value in zip(classes, s, strict=True)
    ]
    return outcomes, processes


@dataclass(frozen=True, kw_only=True)
class PublishedRouter:
    """Hard if and only if the majority's mean z is negative and either confidence is below 0.5.

    Unlike the paper's rule: the chains without an answer are one more class, in the majority and in both entropies;
    the majority is that of the initial chains (``initial_majority``; recomputed where that is ``None``), ties by first
    seen alone; a majority none of whose chains is left counts as good; rewards that sum to 0 count as confident;
    comparisons have no tolerance. (Kept from the paper's rule: sigma below 1e-9 makes condition 1 hold, where the
    published code divides by it.)
    """

    name: ClassVar[str] = "published"
    needs: ClassVar[frozenset[str]] = frozenset({"stats"})

    def __call__(self, evidence: Evidence) -> Verdict:
        if evidence.stats is None:
            raise MissingEvidenceError(router=self.name, field="stats", remedy=REMEDIES["stats"])
        o, s = published_scores(evidence.classes, evidence.o, evidence.s)
        classes = [ABSTAINS if answer_class is None else answer_class for answer_class in evidence.classes]
        majority = evidence.initial_majority
        if majority is None and classes:
            majority = Counter(classes).most_common(1)[0][0]
        z = _mean_z([a + b for c, a, b in zip(classes, o, s, strict=True) if c == majority], evidence.stats)
        confidences = [confidence(entropy(_sums(classes, rewards))) for rewards in (o, s)]
        good = z is None or not z < 0.0
        sure = not any(value is not None and value < CONFIDENCE_THRESHOLD for value in confidences)
        return Verdict(
            router=self.name,
            easy=good or sure,
            condition_1=good,
            condition_2=sure,
            z=z,
            confidence_orm=confidences[0],
            confidence_prm=confidences[1],
            majority=None if majority == ABSTAINS else majority,
        )


def _mean_z(rewards: list[float], stats: RewardStats) -> float | None:
    if not rewards or stats.sigma < MIN_SIGMA:
        return None
    return math.fsum((reward - stats.mu) / stats.sigma for reward in rewards) / len(rewards)


def _sums(classes: list[int], rewards: list[float]) -> list[float]:
    sums: dict[int, float] = {}
    for answer_class, reward in zip(classes, rewards, strict=True):
        sums[answer_class] = sums.get(answer_class, 0.0) + reward
    return list(sums.values())
