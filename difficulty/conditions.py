"""The two conditions that make a problem easy (MAgICoRe, section 3.2; Chen et al., EMNLP 2025).

Departures from the paper's text, where real runs need a rule: comparisons allow 1e-9; a chain without S is left out of
z and of the entropies but counts in the majority; sigma below 1e-9 makes condition 1 hold; a reward whose class sums
are all 0 has no distribution, so condition 2 fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from difficulty.calibration import RewardStats
from difficulty.evidence import Evidence, class_row, score_row
from difficulty.ties import TOLERANCE, ClassTable

MIN_SIGMA = 1e-9
"""A standard deviation below this carries no information: condition 1 holds."""

Z_THRESHOLD = 0.0
CONFIDENCE_THRESHOLD = 0.5


@dataclass(frozen=True, kw_only=True)
class Condition1:
    """Is the majority answer of good quality?

    Attributes:
        holds: The condition; ``None`` where it cannot be judged (no class, or no chain of the majority has an S).
        z: Mean z of the majority's chains; ``None`` where there is none or sigma is below 1e-9.
    """

    holds: bool | None
    z: float | None


@dataclass(frozen=True, kw_only=True)
class Condition2:
    """Are both reward models confident in one answer?

    Attributes:
        holds: The condition; ``None`` where it cannot be judged (no chain with an answer has an S).
        confidence_orm: Confidence of the outcome reward over classes, in [0, 1]; ``None`` where its sums are all 0.
        confidence_prm: The same of the process reward.
    """

    holds: bool | None
    confidence_orm: float | None
    confidence_prm: float | None


def majority_class(evidence: Evidence) -> int | None:
    """The largest class by number of chains, ties by total S, then best S, then first seen; ``None`` without one."""
    if not evidence.answered:
        return None
    table = ClassTable.of(class_row(evidence.classes), score_row(evidence.combined))
    return evidence.classes[int(table.majority()[0])]


def condition_1(evidence: Evidence, stats: RewardStats, *, threshold: float = Z_THRESHOLD) -> Condition1:
    r"""The majority's mean standardised reward is at least the threshold.

    .. math:: \frac{1}{|a^*|} \sum_{i \in a^*} z_i \ge 0, \qquad z_i = \frac{S_i - \mu}{\sigma}, \qquad S_i = o_i + s_i

    where a* is the majority class and the sum runs over its chains that have an S.

    Args:
        evidence: Classes and scores of one problem's chains.
        stats: mu and sigma over the calibration population.
        threshold: Least mean z, in standard deviations; the paper's is 0.
    """
    majority = majority_class(evidence)
    rewards = [
        combined
        for answer_class, combined in zip(evidence.classes, evidence.combined, strict=True)
        if answer_class == majority and combined is not None
    ]
    if majority is None or not rewards:
        return Condition1(holds=None, z=None)
    if stats.sigma < MIN_SIGMA:
        return Condition1(holds=True, z=None)
    z = math.fsum((reward - stats.mu) / stats.sigma for reward in rewards) / len(rewards)
    return Condition1(holds=z >= threshold - TOLERANCE, z=z)


def condition_2(evidence: Evidence, *, threshold: float = CONFIDENCE_THRESHOLD) -> Condition2:
    r"""Both reward models concentrate on few answers.

    .. math::
        P_r(a) = \frac{\sum_{i \in a} r_i}{\sum_{a'} \sum_{i \in a'} r_i}, \qquad
        H_r = -\sum_a P_r(a) \ln P_r(a), \qquad
        C_r = 2 \, (1 - \mathrm{sigmoid}(H_r)), \qquad r \in \{o, s\}

    The condition is that both confidences reach the threshold; 0.5 is the same as entropies of at most ln 3 nats.
    Abstaining chains and chains without S take no part.

    Args:
        evidence: Classes and scores of one problem's chains.
        threshold: Least confidence, from 0 to 1; the paper's is 0.5.
    """
    if not evidence.scored:
        return Condition2(holds=None, confidence_orm=None, confidence_prm=None)
    confidences = [
        confidence(entropy(_class_sums(evidence.classes, evidence.combined, rewards)))
        for rewards in (evidence.o, evidence.s)
    ]
    return Condition2(
        holds=all(value is not None and value >= threshold - TOLERANCE for value in confidences),
        confidence_orm=confidences[0],
        confidence_prm=confidences[1],
    )


def entropy(sums: Iterable[float]) -> float | None:
    """Shannon entropy in nats of non-negative sums made into a distribution; ``None`` where they are all 0."""
    values = list(sums)
    whole = math.fsum(values)
    if whole <= 0:
        return None
    shares = (value / whole for value in values if value > 0)
    return max(0.0, -math.fsum(share * math.log(share) for share in shares))


def confidence(nats: float | None) -> float | None:
    """2 (1 - sigmoid(H)): 1 for no entropy, 0.5 at H = ln 3, towards 0 as it grows; ``None`` for ``None``."""
    return None if nats is None else 2.0 / (1.0 + math.exp(nats))


def _class_sums(
    classes: Sequence[int | None], combined: Sequence[float | None], rewards: Sequence[float | None]
) -> list[float]:
    """The sum of one reward in each class, over the chains that have a class and an S."""
    members: dict[int, list[float]] = {}
    for answer_class, both, reward in zip(classes, combined, rewards, strict=True):
        if answer_class is not None and both is not None and reward is not None:
            members.setdefault(answer_class, []).append(reward)
    return [math.fsum(values) for values in members.values()]
