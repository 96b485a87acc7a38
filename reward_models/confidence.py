"""Outcome scores from how sure the solver was of its tokens: self-certainty and DeepConf.

Both need the log-probabilities of the most likely tokens at each position (``top_logprobs``, 20 are usual), and both
give an unbounded confidence c >= 0, larger for surer. It is mapped to [0, 1) by ``c / (c + scale)``, which keeps the
order; the confidence itself is ``raw``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from reward_models.errors import RewardModelError
from reward_models.likelihood import log_probability, no_logprobs
from reward_models.names import ModelName
from reward_models.types import OutcomeScore, Solution

Rows = Sequence[Sequence[float]]


def self_certainty_of(logprobs: Sequence[float], *, vocabulary: int | None = None) -> float:
    """The self-certainty of one token: the divergence of the uniform distribution from the predicted one.

    ``KL(U || p) = -(1/V) sum_v log p_v - log V`` (Kang et al. 2025, arXiv 2502.18581), 0 where all tokens are equally
    likely. That needs the whole vocabulary, of which endpoints give the k most likely tokens. Departures:

    * with ``vocabulary`` = V the probability left over is spread evenly over the other V - k tokens, which makes the
      result a lower bound of the formula's;
    * without it, the k tokens are taken for the whole vocabulary, their probabilities scaled to a sum of 1.
    """
    size = len(logprobs)
    largest = max(logprobs)
    total = largest + math.log(math.fsum(math.exp(value - largest) for value in logprobs))
    if vocabulary is None or vocabulary <= size:
        return total - math.fsum(logprobs) / size - math.log(size)
    left = max(-math.expm1(min(total, 0.0)), _LEAST_LEFT)
    others = vocabulary - size
    mean = (math.fsum(logprobs) + others * (math.log(left) - math.log(others))) / vocabulary
    return -mean - math.log(vocabulary)


_LEAST_LEFT = 1e-12  # rounding must not make the tokens that were not returned impossible


class SelfCertainty:
    """The mean self-certainty of a solution's tokens (see :func:`self_certainty_of`).

    Positions without alternatives are left out; a solution without any is unscored (``no_logprobs``).
    """

    requires = frozenset({"top_logprobs"})

    def __init__(self, *, vocabulary: int | None = None, scale: float = 10.0) -> None:
        self.name = "self-certainty"
        self.fingerprint = f"self-certainty/1/{vocabulary}/{scale!r}"
        self._vocabulary = vocabulary
        self._scale = _positive("scale", scale)

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [_score(solution.top_logprobs, self._confidence, self._scale) for solution in solutions]

    def _confidence(self, rows: Rows) -> float:
        return _mean([max(0.0, self_certainty_of(row, vocabulary=self._vocabulary)) for row in rows])


def _lowest(groups: Sequence[float], _share: float) -> float:
    return min(groups)


def _bottom(groups: Sequence[float], share: float) -> float:
    return _mean(sorted(groups)[: max(1, int(len(groups) * share))])


GROUPINGS: dict[str, Callable[[Sequence[float], float], float]] = {"bottom": _bottom, "lowest": _lowest}


class DeepConf:
    """The confidence of a trace, after Fu et al. 2025 (arXiv 2508.15260; code facebookresearch/deepconf).

    The confidence of a token is minus the mean log-probability of its k most likely tokens. Of these, as ``measure``:

    * ``mean``: the mean over the trace;
    * ``tail``: the mean over the last ``window`` tokens;
    * ``bottom``: each full sliding window of ``window`` tokens has its mean; the mean of the lowest tenth of those;
    * ``lowest``: the lowest of those.

    A trace shorter than the window is one window. Positions without alternatives are left out; a solution without any
    is unscored (``no_logprobs``). Endpoints differ in whether the sampled token comes on top of the k, so traces of
    different endpoints should not be compared.
    """

    requires = frozenset({"top_logprobs"})

    def __init__(
        self, measure: str = "bottom", *, window: int = 2048, bottom: float = 0.1, scale: float = 10.0
    ) -> None:
        known = ("mean", "tail", *GROUPINGS)
        if measure not in known:
            raise RewardModelError(f"there is no measure {measure!r}; there are {', '.join(known)}", model="deepconf")
        self.name = "deepconf" if measure == "bottom" else f"deepconf:{measure}"
        self.fingerprint = f"deepconf/1/{measure}/{window}/{bottom!r}/{scale!r}"
        self._measure = measure
        self._window = int(_positive("window", window))
        self._bottom = _positive("bottom", bottom)
        self._scale = _positive("scale", scale)

    def score(self, solutions: Sequence[Solution]) -> list[OutcomeScore]:
        return [_score(solution.top_logprobs, self._confidence, self._scale) for solution in solutions]

    def _confidence(self, rows: Rows) -> float:
        tokens = [-_mean(row) for row in rows]
        if self._measure == "mean":
            return _mean(tokens)
        if self._measure == "tail":
            return _mean(tokens[-self._window :])
        return GROUPINGS[self._measure](_sliding_means(tokens, self._window), self._bottom)


def self_certainty(*, vocabulary: int | None = None, scale: float = 10.0) -> SelfCertainty:
    """The factory behind the name ``self-certainty``."""
    return SelfCertainty(vocabulary=vocabulary, scale=scale)


def deepconf(name: ModelName, *, window: int = 2048, bottom: float = 0.1, scale: float = 10.0) -> DeepConf:
    """The factory behind the name ``deepconf``, or ``deepconf:MEASURE``."""
    return DeepConf(name.name or "bottom", window=window, bottom=bottom, scale=scale)


def _score(rows: Rows | None, confidence: Callable[[Rows], float], scale: float) -> OutcomeScore:
    if rows is None:
        return no_logprobs("the solution has no log-probabilities of the most likely tokens")
    try:
        given = [[log_probability(value) for value in row] for row in rows if row]
    except ValueError as error:
        return no_logprobs(str(error))
    if not given:
        return no_logprobs("no position has log-probabilities of the most likely tokens")
    raw = confidence(given)
    return OutcomeScore(value=raw / (raw + scale), raw=raw, activation="saturating")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _sliding_means(values: Sequence[float], window: int) -> list[float]:
    if len(values) <= window:
        return [_mean(values)]
    sums = [0.0, *accumulate(values)]
    return [(sums[end] - sums[end - window]) / window for end in range(window, len(sums))]


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise RewardModelError(f"{name} must be above 0, not {value!r}")
    return value
