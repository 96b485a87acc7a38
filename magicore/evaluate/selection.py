"""What a reward model gains in choosing among k chains: best-of-k and weighted voting, exactly averaged or sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from random import Random

from difficulty.ties import TOLERANCE

Chosen = tuple[int | None, float | None, bool]
"""One chain of a problem: its answer class (``None``: it abstains), its score (``None``: none), whether it is right."""

DRAWS = 200


def expected_best_of(chains: Sequence[tuple[float | None, bool]], k: int) -> float:
    """The probability that the best-scored of ``k`` chains drawn without replacement is right.

    Exact, by order statistics: the chain of rank r of n, 1 the best, wins with probability C(n - r, k - 1) / C(n, k).
    Chains of equal scores share their ranks' probability evenly. A chain without a score loses to every other; where
    all k have none, nothing is chosen and that is not right.

    Raises:
        ValueError: ``k`` is not between 1 and the number of chains.
    """
    n = len(chains)
    if not 1 <= k <= n:
        raise ValueError(f"k lies between 1 and the {n} chains, not {k}")
    scored = sorted(((score, right) for score, right in chains if score is not None), key=lambda pair: -pair[0])
    total = math.comb(n, k)
    found = 0.0
    at = 0
    while at < len(scored):
        end = at
        while end < len(scored) and scored[end][0] == scored[at][0]:
            end += 1
        share = math.fsum(math.comb(n - rank - 1, k - 1) for rank in range(at, end)) / total
        found += share * sum(right for _, right in scored[at:end]) / (end - at)
        at = end
    return found


def vote_is_right(chains: Sequence[Chosen], *, weighted: bool) -> float:
    """Whether the class with the largest count, or sum of scores, is right: 1, 0, or a tie's right share.

    A chain without an answer abstains; with ``weighted``, so does one without a score.
    """
    weights: dict[int, list[float]] = {}
    right: dict[int, bool] = {}
    for answer, score, good in chains:
        if answer is None or (weighted and score is None):
            continue
        weights.setdefault(answer, []).append(score if weighted and score is not None else 1.0)
        right[answer] = good
    if not weights:
        return 0.0
    sums = {one: math.fsum(values) for one, values in weights.items()}
    largest = max(sums.values())
    winners = [one for one, total in sums.items() if total >= largest - TOLERANCE]
    return sum(right[one] for one in winners) / len(winners)


def expected_vote(chains: Sequence[Chosen], k: int, *, weighted: bool, seed: int = 0, draws: int = DRAWS) -> float:
    """The mean of :func:`vote_is_right` over subsets of ``k`` chains: all of them where there are few, else ``draws``
    random ones of the seed.
    """
    n = len(chains)
    if not 1 <= k <= n:
        raise ValueError(f"k lies between 1 and the {n} chains, not {k}")
    if math.comb(n, k) <= draws:
        drawn = list(combinations(range(n), k))
    else:
        source = Random(seed)
        drawn = [tuple(sorted(source.sample(range(n), k))) for _ in range(draws)]
    found = [vote_is_right([chains[at] for at in subset], weighted=weighted) for subset in drawn]
    return math.fsum(found) / len(found)
