"""Every aggregation of answers, from one table.

A :class:`VoteTable` holds the answer class and the scores of each chain of each problem. From it any vote can be taken
again, with any number of chains, any subset, any weights, without a model.

============================== ==================================================================================
method                         the answer chosen
============================== ==================================================================================
``cot``                        that of the first chain (the greedy one, or a single sample)
``self-consistency``           the largest class by number of chains (Wang et al., 2022)
``weighted-self-consistency``  the largest class by the sum of a weight: ``S`` = o + s, ``o``, ``s`` or ``logprob``, or
                               by the mean of S (``mean-S``)
``best-of-k``                  the class of the chain with the largest ``o``, ``s`` or ``S``
``sc+prm``                     weighted self-consistency by ``s``
============================== ==================================================================================

Ties: larger total S, then larger best S, then the class seen first, never random; numbers within 1e-9 are equal. A
chain without an answer abstains. A chain with an answer but without the weight is left out of a weighted vote; where no
chain of a problem has the weight, self-consistency decides and the vote says so.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from difficulty.ties import (
    ABSTAINS,
    BoolArray,
    ClassTable,
    FloatArray,
    IntArray,
    class_counts,
    class_maxima,
    class_sums,
    leading,
    picked,
)
from magicore.vote_table import VoteTable

Method = Literal["cot", "self-consistency", "weighted-self-consistency", "best-of-k", "sc+prm"]
Weights = Literal["S", "o", "s", "mean-S", "logprob"]
Ties = Literal["score", "first-seen"]

AGGREGATIONS: tuple[tuple[Method, Weights | None], ...] = (
    ("cot", None),
    ("self-consistency", None),
    ("weighted-self-consistency", "S"),
    ("weighted-self-consistency", "o"),
    ("weighted-self-consistency", "s"),
    ("weighted-self-consistency", "mean-S"),
    ("weighted-self-consistency", "logprob"),
    ("best-of-k", "o"),
    ("best-of-k", "s"),
    ("best-of-k", "S"),
    ("sc+prm", None),
)
"""Every method with every weight that it takes."""

_DEFAULT_WEIGHTS: Mapping[str, Weights] = {"weighted-self-consistency": "S", "best-of-k": "o", "sc+prm": "s"}
_ALLOWED: Mapping[str, tuple[Weights, ...]] = {
    method: tuple(weights for name, weights in AGGREGATIONS if name == method and weights is not None)
    for method in get_args(Method)
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TableVotes:
    """One aggregation of a whole table; arrays have one entry a problem.

    Attributes:
        method: The aggregation.
        weighed_by: ``None`` for ``cot`` and ``self-consistency``.
        winner: (P,) winning class; -1 where no chain has an answer.
        chosen: (P,) column of the chosen chain, of the winning class; -1 likewise.
        count: (P,) chains in the winning class that took part.
        weight: (P,) what the winning class was compared by; NaN where there is no winner.
        effective_k: (P,) chains that took part in deciding.
        abstained: (P,) chains without an answer.
        left_out: (P,) chains with an answer but without the weight (for ``cot``: those after the first).
        fell_back: (P,) no chain had the weight, so self-consistency decided.
    """

    method: Method
    weighed_by: Weights | None
    winner: IntArray
    chosen: IntArray
    count: IntArray
    weight: FloatArray
    effective_k: IntArray
    abstained: IntArray
    left_out: IntArray
    fell_back: BoolArray


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One aggregation of one problem's chains.

    Attributes:
        method: The aggregation.
        weighed_by: ``None`` for ``cot`` and ``self-consistency``.
        winner: Winning class; ``None`` where no chain has an answer.
        chosen: Index of the chosen chain: the one with the largest weight in the winning class (for votes that do not
            weigh chains, the largest S), then the largest S, then the first. ``None`` without a winner.
        counts: Chains of every class, with or without a weight; classes in the order first seen.
        weights: What every class was compared by; a class none of whose chains takes part is not there.
        abstained: Indices of the chains without an answer.
        left_out: Indices of the chains with an answer but without the weight.
        effective_k: How many chains took part in deciding.
        warnings: Why another method decided than was asked for.
    """

    method: Method
    weighed_by: Weights | None
    winner: int | None
    chosen: int | None
    counts: Mapping[int, int]
    weights: Mapping[int, float]
    abstained: tuple[int, ...]
    left_out: tuple[int, ...]
    effective_k: int
    warnings: tuple[str, ...] = ()


def vote(
    classes: Sequence[int | None],
    o: Sequence[float | None] | None = None,
    s: Sequence[float | None] | None = None,
    method: str = "weighted-self-consistency",
    weights: str | None = None,
    *,
    logprob: Sequence[float | None] | None = None,
    ties: Ties = "score",
) -> Vote:
    """Aggregate one problem's chains.

    Args:
        classes: Answer class of each chain; ``None`` abstains.
        o: Outcome scores in [0, 1]; ``None`` where missing.
        s: Process scores in [0, 1]; ``None`` where missing.
        method: An aggregation of this module.
        weights: What to weigh by: S if not given, but o for ``best-of-k``. The other methods do not let it be chosen.
        logprob: Mean token log-probability of each chain; ``None`` where missing.
        ties: ``score`` (the rule of this module), or ``first-seen`` alone, as published code has it.

    Raises:
        ValueError: An unknown method or weight, or scores that do not fit the classes.
    """
    table = VoteTable.of(
        [classes],
        None if o is None else [o],
        None if s is None else [s],
        None if logprob is None else [logprob],
    )
    chosen, by = _checked(method, weights)
    ballot = _Ballot.cast(_looked_at(table, chosen), chosen, by, ties)
    column = int(ballot.column[0])
    counts, compared = ballot.grouped.counts[0], ballot.primary[0]
    indices = np.arange(len(classes))
    return Vote(
        method=chosen,
        weighed_by=by,
        winner=None if column < 0 else classes[column],
        chosen=None if column < 0 else int(ballot.chosen[0]),
        counts={c: int(counts[at]) for at, c in enumerate(classes) if c is not None and counts[at] > 0},
        weights={c: float(compared[at]) for at, c in enumerate(classes) if c is not None and compared[at] > -np.inf},
        abstained=tuple(indices[ballot.abstained[0]].tolist()),
        left_out=tuple(indices[ballot.left_out[0]].tolist()),
        effective_k=int(ballot.takes_part[0].sum()),
        warnings=(_fell_back(chosen, by),) if ballot.fell_back[0] else (),
    )


def vote_table(table: VoteTable, method: str, weights: str | None = None, *, ties: Ties = "score") -> TableVotes:
    """Aggregate all problems of a table at once; equal to :func:`vote` on each.

    Raises:
        ValueError: An unknown method or weight.
    """
    chosen, by = _checked(method, weights)
    looked_at = _looked_at(table, chosen)
    return _table_votes(looked_at, chosen, by, _Ballot.cast(looked_at, chosen, by, ties))


def vote_all(table: VoteTable, *, ties: Ties = "score") -> dict[tuple[Method, Weights | None], TableVotes]:
    """Every aggregation of a table, by method and weight (``AGGREGATIONS``); classes are grouped only once."""
    grouped = ClassTable.of(table.classes, table.combined, table.include)
    votes: dict[tuple[Method, Weights | None], TableVotes] = {}
    for method, weights in AGGREGATIONS:
        looked_at = _looked_at(table, method)
        by = weights or _DEFAULT_WEIGHTS.get(method)
        ballot = _Ballot.cast(looked_at, method, by, ties, grouped if looked_at is table else None)
        votes[method, weights] = _table_votes(looked_at, method, by, ballot)
    return votes


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ballot:
    """One aggregation in the making.

    Attributes:
        grouped: The answer classes.
        primary: (P, K) what classes are compared by, in the column of each class; -inf for one that does not stand.
        takes_part: (P, K) chains that decide.
        abstained: (P, K) chains without an answer.
        left_out: (P, K) chains with an answer but without the weight.
        fell_back: (P,) rows that self-consistency decided because no chain had the weight.
        column: (P,) column of the winning class; -1 without one.
        chosen: (P,) column of the chosen chain; -1 likewise.
    """

    grouped: ClassTable
    primary: FloatArray
    takes_part: BoolArray
    abstained: BoolArray
    left_out: BoolArray
    fell_back: BoolArray
    column: IntArray
    chosen: IntArray

    @classmethod
    def cast(
        cls, table: VoteTable, method: Method, weights: Weights | None, ties: Ties, grouped: ClassTable | None = None
    ) -> _Ballot:
        """Compare the classes, let the tie rule choose one, and choose its chain."""
        if grouped is None:
            grouped = ClassTable.of(table.classes, table.combined, table.include)
        answered = grouped.columns >= 0
        counts = np.where(grouped.counts > 0, grouped.counts, -np.inf)
        ones = np.ones(answered.shape)
        values = ones if weights is None else _weights(table, weights)
        primary = counts if weights is None else _compared(grouped.columns, values, method, weights)
        fell_back = np.logical_and(answered.any(axis=1), np.all(primary == -np.inf, axis=1))
        primary = np.where(fell_back[:, None], counts, primary)
        values = np.where(fell_back[:, None], ones, values)
        takes_part = answered & ~np.isnan(values)
        column = grouped.leader(primary) if ties == "score" else leading(primary)
        of_winner = takes_part & (grouped.columns == column[:, None])
        combined = table.combined
        return cls(
            grouped=grouped,
            primary=primary,
            takes_part=takes_part,
            abstained=table.include & ~answered,
            left_out=answered & ~takes_part,
            fell_back=fell_back,
            column=column,
            chosen=leading(np.where(of_winner, values, -np.inf), np.where(np.isnan(combined), -np.inf, combined)),
        )


def _weights(table: VoteTable, weights: Weights) -> FloatArray:
    """(P, K) what each chain weighs; NaN where missing.

    A log-probability weighs as the mean probability of the chain's tokens, exp of the mean log-probability: the
    length-normalised weight of Wang et al. (2022), section 3.1.
    """
    match weights:
        case "S" | "mean-S":
            return table.combined
        case "o":
            return table.o
        case "s":
            return table.s
        case "logprob":
            return np.exp(table.logprob)


def _compared(columns: IntArray, values: FloatArray, method: Method, weights: Weights) -> FloatArray:
    """(P, K) what classes are compared by: the largest weight, the mean weight or the sum of weights."""
    if method == "best-of-k":
        return class_maxima(columns, values)
    sums = class_sums(columns, values)
    if weights == "mean-S":
        means: FloatArray = sums / np.maximum(class_counts(columns, ~np.isnan(values)), 1)
        return means
    return sums


def _looked_at(table: VoteTable, method: Method) -> VoteTable:
    """The chains a method looks at: the first one of each problem for ``cot``, else all."""
    if method != "cot":
        return table
    return table.subset(np.cumsum(table.include, axis=1) == 1)


def _table_votes(table: VoteTable, method: Method, weights: Weights | None, ballot: _Ballot) -> TableVotes:
    counted = class_counts(ballot.grouped.columns, ballot.takes_part)
    return TableVotes(
        method=method,
        weighed_by=weights,
        winner=picked(table.classes, ballot.column, ABSTAINS),
        chosen=ballot.chosen,
        count=picked(counted, ballot.column, 0),
        weight=picked(ballot.primary, ballot.column, np.nan),
        effective_k=ballot.takes_part.sum(axis=1),
        abstained=ballot.abstained.sum(axis=1),
        left_out=ballot.left_out.sum(axis=1),
        fell_back=ballot.fell_back,
    )


def _checked(method: str, weights: str | None) -> tuple[Method, Weights | None]:
    """The method and what it weighs by, or a sentence on what there is."""
    for known in get_args(Method):
        if method == known:
            break
    else:
        near = difflib.get_close_matches(method, get_args(Method), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(get_args(Method))}"
        raise ValueError(f"no aggregation is named {method!r}: {hint}")
    takes = _ALLOWED[known]
    for allowed in takes:
        if weights == allowed:
            return known, allowed
    if weights is not None and (takes or weights not in get_args(Weights)):
        raise ValueError(f"{method} cannot weigh by {weights!r}: there are {', '.join(takes or get_args(Weights))}")
    return known, _DEFAULT_WEIGHTS.get(known)


def _fell_back(method: Method, weights: Weights | None) -> str:
    named = {"mean-S": "S", "logprob": "log-probability"}.get(str(weights), weights)
    return f"no chain with an answer has an {named} to weigh by, so self-consistency decided instead of {method}"
