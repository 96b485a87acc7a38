"""Routers: each reads the evidence of one problem and says easy or hard.

A router is any object with a name, the evidence fields it cannot do without, and a call; the ones here hold
configuration only. In all of them a problem without a single answer is hard, but for ``easy`` and ``random``, which
look at nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from difficulty.conditions import (
    CONFIDENCE_THRESHOLD,
    Z_THRESHOLD,
    Condition1,
    Condition2,
    condition_1,
    condition_2,
    majority_class,
)
from difficulty.errors import DifficultyError, MissingEvidenceError, RouterOptionError
from difficulty.evidence import Evidence
from difficulty.ties import TOLERANCE
from difficulty.verdict import Verdict

T = TypeVar("T")

REMEDIES = {
    "stats": "calibrate over the initial chains, or load a calibration file",
    "draw": "give a number in [0, 1) made from the run's seed and the problem's id",
    "self_verified": "ask the language model whether the majority answer is right",
    "stated_confidence": "ask the language model how confident it is in the majority answer",
    "coarse_correct": "the problem needs a gold answer to compare the weighted-self-consistency answer with",
}
"""The optional fields of the evidence, and what fills each."""


@runtime_checkable
class Router(Protocol):
    """Decides from evidence; pure and synchronous."""

    @property
    def name(self) -> str:
        """What verdicts are signed with."""

    @property
    def needs(self) -> frozenset[str]:
        """Optional fields of :class:`Evidence` that must not be ``None`` (for a problem with scored answers)."""

    def __call__(self, evidence: Evidence) -> Verdict:
        """Route one problem.

        Raises:
            MissingEvidenceError: A needed field is ``None``.
        """


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The numbers that evidence allows, whichever router asks."""

    majority: int | None
    first: Condition1
    second: Condition2

    def verdict(self, router: str, *, easy: bool) -> Verdict:
        """These numbers under a router's decision."""
        return Verdict(
            router=router,
            easy=easy,
            condition_1=self.first.holds,
            condition_2=self.second.holds,
            z=self.first.z,
            confidence_orm=self.second.confidence_orm,
            confidence_prm=self.second.confidence_prm,
            majority=self.majority,
        )


def measure(
    evidence: Evidence,
    *,
    z_threshold: float = Z_THRESHOLD,
    confidence_threshold: float = CONFIDENCE_THRESHOLD,
) -> Measures:
    """Majority and both conditions; without statistics condition 1 is left unjudged."""
    unjudged = Condition1(holds=None, z=None)
    return Measures(
        majority=majority_class(evidence),
        first=unjudged if evidence.stats is None else condition_1(evidence, evidence.stats, threshold=z_threshold),
        second=condition_2(evidence, threshold=confidence_threshold),
    )


@dataclass(frozen=True, kw_only=True)
class MagicoreRouter:
    """Easy if condition 1 or condition 2 holds, hard if both fail (MAgICoRe, section 3.2).

    A problem with answers of which none has an S is easy: there is nothing to refine by, so it is answered by
    self-consistency, whose vote carries the warning.

    Attributes:
        z_threshold: Least mean z of the majority for condition 1, in standard deviations.
        confidence_threshold: Least confidence of both rewards for condition 2, in [0, 1].
    """

    z_threshold: float = Z_THRESHOLD
    confidence_threshold: float = CONFIDENCE_THRESHOLD

    name: ClassVar[str] = "magicore"
    needs: ClassVar[frozenset[str]] = frozenset({"stats"})

    def __post_init__(self) -> None:
        _check_finite(self.name, "z_threshold", self.z_threshold)
        _check_share(self.name, "confidence_threshold", self.confidence_threshold)

    def __call__(self, evidence: Evidence) -> Verdict:
        measures = measure(evidence, z_threshold=self.z_threshold, confidence_threshold=self.confidence_threshold)
        if evidence.scored:
            _require(evidence, self)
            return measures.verdict(self.name, easy=bool(measures.first.holds or measures.second.holds))
        return measures.verdict(self.name, easy=evidence.answered)


@dataclass(frozen=True, kw_only=True)
class Condition1Router:
    """Easy if and only if condition 1 holds; without any S as :class:`MagicoreRouter`.

    Attributes:
        z_threshold: Least mean z of the majority, in standard deviations.
    """

    z_threshold: float = Z_THRESHOLD

    name: ClassVar[str] = "condition-1"
    needs: ClassVar[frozenset[str]] = frozenset({"stats"})

    def __post_init__(self) -> None:
        _check_finite(self.name, "z_threshold", self.z_threshold)

    def __call__(self, evidence: Evidence) -> Verdict:
        measures = measure(evidence, z_threshold=self.z_threshold)
        if evidence.scored:
            _require(evidence, self)
            return measures.verdict(self.name, easy=bool(measures.first.holds))
        return measures.verdict(self.name, easy=evidence.answered)


@dataclass(frozen=True, kw_only=True)
class Condition2Router:
    """Easy if and only if condition 2 holds; needs no calibration. Without any S as :class:`MagicoreRouter`.

    Attributes:
        confidence_threshold: Least confidence of both rewards, in [0, 1].
    """

    confidence_threshold: float = CONFIDENCE_THRESHOLD

    name: ClassVar[str] = "condition-2"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        _check_share(self.name, "confidence_threshold", self.confidence_threshold)

    def __call__(self, evidence: Evidence) -> Verdict:
        measures = measure(evidence, confidence_threshold=self.confidence_threshold)
        if evidence.scored:
            return measures.verdict(self.name, easy=bool(measures.second.holds))
        return measures.verdict(self.name, easy=evidence.answered)


@dataclass(frozen=True, kw_only=True)
class EasyRouter:
    """Everything is easy: aggregate all, refine nothing."""

    name: ClassVar[str] = "easy"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, evidence: Evidence) -> Verdict:
        return measure(evidence).verdict(self.name, easy=True)


@dataclass(frozen=True, kw_only=True)
class HardRouter:
    """Everything is hard: refine all."""

    name: ClassVar[str] = "hard"
    needs: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, evidence: Evidence) -> Verdict:
        return measure(evidence).verdict(self.name, easy=False)


@dataclass(frozen=True, kw_only=True)
class RandomRouter:
    """Hard with a given rate, by the problem's own draw: the same problem routes the same way in every round.

    Attributes:
        rate: Share of problems routed hard, in [0, 1]. At a larger rate the same problems are hard and some more.
    """

    rate: float = 0.5

    name: ClassVar[str] = "random"
    needs: ClassVar[frozenset[str]] = frozenset({"draw"})

    def __post_init__(self) -> None:
        _check_share(self.name, "rate", self.rate)

    def __call__(self, evidence: Evidence) -> Verdict:
        draw = _needed(evidence.draw, self.name, "draw")
        return measure(evidence).verdict(self.name, easy=draw >= self.rate)


@dataclass(frozen=True, kw_only=True)
class SelfVerificationRouter:
    """Easy if and only if the language model says that the majority answer is right."""

    name: ClassVar[str] = "self-verification"
    needs: ClassVar[frozenset[str]] = frozenset({"self_verified"})

    def __call__(self, evidence: Evidence) -> Verdict:
        if not evidence.answered:
            return measure(evidence).verdict(self.name, easy=False)
        verified = _needed(evidence.self_verified, self.name, "self_verified")
        return measure(evidence).verdict(self.name, easy=verified)


@dataclass(frozen=True, kw_only=True)
class StatedConfidenceRouter:
    """Easy if and only if the confidence that the language model states reaches the threshold.

    Attributes:
        threshold: Least stated confidence, in [0, 1].
    """

    threshold: float = 0.5

    name: ClassVar[str] = "stated-confidence"
    needs: ClassVar[frozenset[str]] = frozenset({"stated_confidence"})

    def __post_init__(self) -> None:
        _check_share(self.name, "threshold", self.threshold)

    def __call__(self, evidence: Evidence) -> Verdict:
        if not evidence.answered:
            return measure(evidence).verdict(self.name, easy=False)
        stated = _needed(evidence.stated_confidence, self.name, "stated_confidence")
        return measure(evidence).verdict(self.name, easy=stated >= self.threshold - TOLERANCE)


@dataclass(frozen=True, kw_only=True)
class OracleRouter:
    """Hard if and only if the weighted-self-consistency answer is wrong; no answer is not right, hence hard."""

    name: ClassVar[str] = "oracle"
    needs: ClassVar[frozenset[str]] = frozenset({"coarse_correct"})

    def __call__(self, evidence: Evidence) -> Verdict:
        if not evidence.answered:
            return measure(evidence).verdict(self.name, easy=False)
        correct = _needed(evidence.coarse_correct, self.name, "coarse_correct")
        return measure(evidence).verdict(self.name, easy=correct)


@dataclass(frozen=True, kw_only=True)
class FunctionRouter:
    """Any function of the evidence as a router.

    Attributes:
        function: Returns true for easy, false for hard, or a whole verdict (which is signed with this router's name).
        name: What verdicts are signed with.
        needs: Optional evidence fields the function reads and cannot do without.
    """

    function: Callable[[Evidence], bool | Verdict]
    name: str
    needs: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        unknown = sorted(self.needs - REMEDIES.keys())
        if unknown:
            raise RouterOptionError(
                f"router {self.name!r} needs {', '.join(unknown)}, which evidence does not have: "
                f"its optional fields are {', '.join(REMEDIES)}"
            )

    def __call__(self, evidence: Evidence) -> Verdict:
        _require(evidence, self)
        answer = self.function(evidence)
        if isinstance(answer, Verdict):
            return replace(answer, router=self.name)
        if isinstance(answer, bool | np.bool_):
            return measure(evidence).verdict(self.name, easy=bool(answer))
        raise DifficultyError(
            f"router {self.name!r} must return True (easy), False (hard) or a Verdict: got {type(answer).__name__}"
        )


def _require(evidence: Evidence, router: Router) -> None:
    for field in sorted(router.needs):
        _needed(getattr(evidence, field), router.name, field)


def _needed(value: T | None, router: str, field: str) -> T:
    if value is None:
        raise MissingEvidenceError(router=router, field=field, remedy=REMEDIES[field])
    return value


def _check_finite(router: str, option: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RouterOptionError(f"router {router!r}: {option} must be a finite number, got {value!r}")


def _check_share(router: str, option: str, value: float) -> None:
    _check_finite(router, option, value)
    if not 0 <= value <= 1:
        raise RouterOptionError(f"router {router!r}: {option} must be from 0 to 1, got {value!r}")
