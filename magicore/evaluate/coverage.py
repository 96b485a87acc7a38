"""Coverage: how often at least one of k chains is right, whoever chooses."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, fsum


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Unbiased estimate of the probability that at least one of k chains is right: 1 - C(n - c, k) / C(n, k).

    Chen et al., "Evaluating Large Language Models Trained on Code" (2021), equation 1; computed exactly. A chain
    without an answer is one that is not right.

    Args:
        n: Chains sampled.
        correct: How many of them are right.
        k: Chains that are looked at, from 1 to n.

    Raises:
        ValueError: Not ``0 <= correct <= n``, or not ``1 <= k <= n``.
    """
    if not 0 <= correct <= n:
        raise ValueError(f"{correct} right of {n} chains is impossible")
    if not 1 <= k <= n:
        raise ValueError(f"k lies between 1 and the {n} chains sampled, got {k}")
    return (comb(n, k) - comb(n - correct, k)) / comb(n, k)


def coverage(counts: Iterable[tuple[int, int]], k: int) -> float | None:
    """Mean :func:`pass_at_k` over problems; ``None`` of no problem.

    Args:
        counts: For each problem how many chains were sampled and how many of them are right.
        k: Chains that are looked at.

    Raises:
        ValueError: A problem has fewer than k chains.
    """
    values = [pass_at_k(n, correct, k) for n, correct in counts]
    return fsum(values) / len(values) if values else None
