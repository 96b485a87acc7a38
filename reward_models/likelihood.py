"""An outcome reward model for nothing: how likely the solver itself found the tokens it wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reward_models.types import OutcomeScore, Solution, Unscored

_ROUNDING = 1e-3  # servers round; a log-probability of 1e-6 is 0


def log_probability(value: float) -> float:
    """A log-probability with rounding errors above 0 taken away.

    Raises:
        ValueError: It is not finite, or clearly above 0.
    """
    if not math.isfinite(value) or value > _ROUNDING:
        raise ValueError(f"{value!r} is no log-probability")
    return min(0.0, value)


def no_logprobs(reason: str) -> OutcomeScore:
    """An outcome without a score, for want of log-probabilities."""
    return OutcomeScore(value=None, unscored=Unscored(code="no_logprobs", reason=reason))


class Likelihood:
    """``raw`` is the mean log-probability of the solution's tokens; the value is its exponential.

    That is the geometric mean of the token probabilities, the inverse of the perplexity (the normalised probability of
    Wang et al. 2022, arXiv 2203.11171, equation 1, which weights votes there). A solution without token
    log-probabilities, or with one that is not finite, is unscored (``no_logprobs``).
    """

    name = "likelihood"
    fingerprint = "likelihood/1"
    requires = frozenset({"token_logprobs"})

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [_score(solution.token_logprobs) for solution in solutions]


def likelihood() -> Likelihood:
    """The factory behind the name ``likelihood``."""
    return Likelihood()


def _score(logprobs: Sequence[float] | None) -> OutcomeScore:
    if not logprobs:
        return no_logprobs("the solution has no token log-probabilities")
    try:
        mean = math.fsum(map(log_probability, logprobs)) / len(logprobs)
    except ValueError as error:
        return no_logprobs(str(error))
    return OutcomeScore(value=math.exp(mean), raw=mean, activation="exp")
