"""From step scores to one number for the solution."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reward_models.types import StepScores, UnscoredCode


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) == 0.0:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))


AGGREGATIONS: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "product": math.prod,
        "min": min,
        "last": lambda values: values[-1],
        "mean": lambda values: math.fsum(values) / len(values),
        "geometric-mean": _geometric_mean,
    }
)
"""``product`` is MAgICoRe's (a long solution scores lower), ``min`` Math-Shepherd's; ``mean``, ``last`` and
``geometric-mean`` (the product's n-th root) do not depend on the number of steps."""


def check_aggregation(how: str) -> str:
    """Return ``how`` if it is known.

    Raises:
        ValueError: It is not; the sentence lists those that are.
    """
    if how not in AGGREGATIONS:
        near = difflib.get_close_matches(how, AGGREGATIONS, n=1, cutoff=0.4)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"no aggregation of step scores is called {how!r}{hint}; there are {', '.join(AGGREGATIONS)}")
    return how


def aggregate(scores: Sequence[float | None], how: str = "product") -> float | None:
    """Aggregate step scores in [0, 1], skipping missing ones; ``None`` if no step has a score."""
    check_aggregation(how)
    values = [score for score in scores if score is not None]
    return AGGREGATIONS[how](values) if values else None


@dataclass(frozen=True, kw_only=True)
class Aggregated:
    """A solution's score from its steps, and how many steps it stands on.

    ``value`` is missing when no step has a score, or when steps lie past the model's context: what was not read
    might be wrong, so the rest does not speak for the whole. ``unscored`` counts the missing scores by reason.
    """

    value: float | None
    aggregation: str
    scored: int
    unscored: Mapping[UnscoredCode, int]


def aggregate_steps(scores: StepScores, how: str | None = None) -> Aggregated:
    """Aggregate a process reward model's scores, by its own recommendation unless ``how`` says otherwise."""
    how = check_aggregation(how or scores.aggregation)
    unscored: dict[UnscoredCode, int] = {}
    for score in scores.scores:
        if score.unscored is not None:
            unscored[score.unscored.code] = unscored.get(score.unscored.code, 0) + 1
    value = None if "past_context" in unscored else aggregate([score.value for score in scores.scores], how)
    scored = len(scores.scores) - sum(unscored.values())
    return Aggregated(value=value, aggregation=how, scored=scored, unscored=unscored)
