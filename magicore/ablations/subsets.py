"""What an aggregation would have answered with fewer chains: over all subsets of k' of them, or resampled ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice
from math import comb
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from difficulty.ties import TOLERANCE, BoolArray, FloatArray, IntArray
from magicore.ablations.trajectories import RoundArrays, chosen_right
from magicore.evaluate.coverage import pass_at_k
from magicore.vote_table import VoteTable
from magicore.voting import AGGREGATIONS, Method, Weights, vote_all, vote_table

How = Literal["exact", "enumerated", "resampled"]
N = TypeVar("N", np.int64, np.float64, np.bool_)

DRAWS = 64
"""Subsets at the most for one number of chains. What resampling adds to the variance of a mean over problems is at most
a 64th of what the problems themselves bring."""

_CELLS = 400_000
"""Chains looked at together."""

Aggregation = tuple[Method, Weights | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """One aggregation with k' chains.

    Attributes:
        right: (P,) the probability, over subsets of k' chains of a problem, that its answer is right.
        how: ``exact`` (closed form, or all chains), ``enumerated`` (every subset), or ``resampled``.
        draws: Subsets that were looked at; ``None`` for a closed form.
    """

    right: FloatArray
    how: How
    draws: int | None


def expected_accuracy(
    arrays: RoundArrays,
    k: int,
    *,
    aggregations: Sequence[Aggregation] = AGGREGATIONS,
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[Aggregation, Expected]:
    """Every aggregation with ``k`` of the chains of each problem (all of one that has fewer).

    ``cot``, ``best-of-k`` and one chain have closed forms: a random chain, and order statistics (where scores tie
    between a right and a wrong chain, or an answered chain has no score, the problem is looked at with the others).
    Votes are averaged over every subset where there are at most ``draws`` of them, else over ``draws`` random ones,
    drawn for each problem alone.

    Args:
        arrays: Classes, scores and rightness of the chains.
        k: From 1 to the most chains that a problem has.
        aggregations: Which ones.
        draws: Subsets at the most.
        seed: Of the random subsets; each ``k`` has its own stream.

    Raises:
        ValueError: ``k`` or ``draws`` is out of range.
    """
    width = arrays.table.classes.shape[1]
    if not 1 <= k <= width or draws < 1:
        raise ValueError(f"k lies between 1 and the {width} chains and at least 1 subset is drawn: got {k} and {draws}")
    closed = {one: _closed(arrays, k, one) for one in aggregations}
    open_ones = [one for one, exact in closed.items() if exact is None or np.isnan(exact).any()]
    sums = {one: np.zeros(arrays.right.shape[0]) for one in open_ones}
    batches, how = _subsets(arrays.table.include, k, draws, seed)
    count = 0
    for columns in batches if open_ones else ():
        count += columns.shape[0]
        table, hit = _gathered(arrays, columns)
        every = len(open_ones) * 2 > len(AGGREGATIONS)
        votes = vote_all(table) if every else {one: vote_table(table, *one) for one in open_ones}
        for one in open_ones:
            hits = chosen_right(hit, votes[one].chosen)
            sums[one] += hits.reshape(columns.shape[0], -1).sum(axis=0)
    found: dict[Aggregation, Expected] = {}
    for one in aggregations:
        exact = closed[one]
        if exact is not None and not np.isnan(exact).any():
            found[one] = Expected(right=exact, how="exact", draws=None)
            continue
        mean = sums[one] / count
        right = mean if exact is None else np.where(np.isnan(exact), mean, exact)
        found[one] = Expected(right=right, how=how, draws=count)
    return found


def expected_coverage(arrays: RoundArrays, k: int) -> FloatArray:
    """(P,) the probability that at least one of ``k`` chains is right; of all where a problem has fewer."""
    counts, right = arrays.table.include.sum(axis=1), (arrays.right & arrays.table.include).sum(axis=1)
    return np.array([_covered(int(n), int(c), k) for n, c in zip(counts, right, strict=True)], dtype=np.float64)


def _covered(n: int, correct: int, k: int) -> float:
    return pass_at_k(n, correct, min(k, n)) if n else 0.0


def _gathered(arrays: RoundArrays, columns: IntArray) -> tuple[VoteTable, BoolArray]:
    """D subsets (D, P, k) of the chains of P problems as one table of D x P problems, and who is right in it."""
    table = arrays.table
    rows = np.arange(table.classes.shape[0])[None, :, None]

    def taken(values: NDArray[N]) -> NDArray[N]:
        found: NDArray[N] = values[rows, columns].reshape(-1, columns.shape[2])
        return found

    gathered = VoteTable(
        classes=taken(table.classes),
        o=taken(table.o),
        s=taken(table.s),
        logprob=taken(table.logprob),
        include=taken(table.include),
    )
    return gathered, taken(arrays.right)


def _subsets(include: BoolArray, k: int, draws: int, seed: int) -> tuple[Iterator[IntArray], How]:
    """Batches (D, P, k) of columns, in chain order. A problem with fewer chains has columns of none among them."""
    sizes = include.sum(axis=1)
    problems, width = include.shape
    if (sizes <= k).all():
        return iter([np.broadcast_to(np.arange(width), (1, problems, width))]), "exact"
    batch = max(1, _CELLS // max(1, problems * k))
    if (sizes == width).all() and comb(width, k) <= draws:
        return _every(problems, width, k, batch), "enumerated"
    return _random(include, k, draws, batch, np.random.default_rng([seed, k])), "resampled"


def _every(problems: int, width: int, k: int, batch: int) -> Iterator[IntArray]:
    waiting = combinations(range(width), k)
    while chosen := list(islice(waiting, batch)):
        yield np.broadcast_to(np.array(chosen, dtype=np.int64)[:, None, :], (len(chosen), problems, k))


def _random(include: BoolArray, k: int, draws: int, batch: int, source: np.random.Generator) -> Iterator[IntArray]:
    for start in range(0, draws, batch):
        count = min(batch, draws - start)
        keys = np.where(include, source.random((count, *include.shape)), np.inf)
        yield np.sort(np.argpartition(keys, k - 1, axis=2)[:, :, :k], axis=2)


def _closed(arrays: RoundArrays, k: int, aggregation: Aggregation) -> FloatArray | None:
    """(P,) exact probabilities, NaN for a problem without a closed form; ``None`` for an aggregation without one."""
    method, weights = aggregation
    table = arrays.table
    if method == "cot" or k == 1:
        sizes = table.include.sum(axis=1)
        share: FloatArray = (arrays.right & table.include).sum(axis=1) / np.maximum(sizes, 1)
        return share
    if method != "best-of-k":
        return None
    scores = {"o": table.o, "s": table.s, "S": table.combined}[weights or "o"]
    answered = table.include & (table.classes >= 0)
    values = np.where(answered & ~np.isnan(scores), scores, -np.inf)
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    right = np.take_along_axis(arrays.right & (values > -np.inf), order, axis=1)
    with np.errstate(invalid="ignore"):  # -inf beside -inf: neither is right
        tied = (ranked[:, :-1] - ranked[:, 1:] <= TOLERANCE) & (right[:, :-1] != right[:, 1:])
    sizes = table.include.sum(axis=1)
    chances = np.array([_rank_chances(int(n), min(k, int(n)), values.shape[1]) for n in sizes])
    found: FloatArray = (chances.reshape(values.shape) * right).sum(axis=1)
    unclear = tied.any(axis=1) | (answered & np.isnan(scores)).any(axis=1)
    return np.where(unclear, np.nan, found)


@cache
def _rank_chances(n: int, k: int, width: int) -> tuple[float, ...]:
    """The probability that the chain of each rank is the best of ``k`` of ``n``: C(n - rank - 1, k - 1) / C(n, k)."""
    if n == 0:
        return (0.0,) * width
    return tuple(comb(n - rank - 1, k - 1) / comb(n, k) if rank < n else 0.0 for rank in range(width))
