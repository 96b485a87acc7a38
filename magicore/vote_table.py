"""Answer classes and scores of many problems' chains: what every vote is taken from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from difficulty.ties import ABSTAINS, DIMENSIONS, TOLERANCE, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteTable:
    """Answer classes and scores of P problems with up to K chains each.

    Attributes:
        classes: (P, K) answer class of each chain, numbered within its problem; -1 abstains.
        o: (P, K) outcome scores in [0, 1]; NaN where missing.
        s: (P, K) aggregated process scores in [0, 1]; NaN where missing.
        logprob: (P, K) mean log-probability of the chain's tokens, at most 0; NaN where missing.
        include: (P, K) the chains that take part: false where a row is shorter than K, or a chain is left aside.

    Raises:
        ValueError: Shapes differ, a class is below -1, a score is outside [0, 1] or a log-probability above 0.
    """

    classes: IntArray
    o: FloatArray
    s: FloatArray
    logprob: FloatArray
    include: BoolArray

    def __post_init__(self) -> None:
        shapes = {name: getattr(self, name).shape for name in ("classes", "o", "s", "logprob", "include")}
        if self.classes.ndim != DIMENSIONS or len(set(shapes.values())) != 1:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise ValueError(f"a vote table needs arrays of one shape (problems, chains): got {listed}")
        if (self.classes < ABSTAINS).any():
            raise ValueError(f"an answer class is {self.classes.min()}; -1 abstains, classes count from 0")
        for name, low, high in (("o", 0.0, 1.0), ("s", 0.0, 1.0), ("logprob", -math.inf, 0.0)):
            values = getattr(self, name)
            wrong = (values < low) | (values > high + TOLERANCE) | np.isinf(values)
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                raise ValueError(
                    f"{name} of chain {column} of problem {row} is {values[row, column]}, "
                    f"outside [{low:g}, {high:g}]; missing is NaN"
                )

    @classmethod
    def of(
        cls,
        classes: Sequence[Sequence[int | None]],
        o: Sequence[Sequence[float | None]] | None = None,
        s: Sequence[Sequence[float | None]] | None = None,
        logprob: Sequence[Sequence[float | None]] | None = None,
    ) -> VoteTable:
        """A table from lists, one a problem, which may differ in length; ``None`` abstains or is missing.

        Raises:
            ValueError: A problem has another number of scores than of classes.
        """
        width = max((len(row) for row in classes), default=0)
        filled = np.full((len(classes), width), ABSTAINS, dtype=np.int64)
        include = np.zeros(filled.shape, dtype=np.bool_)
        for index, row in enumerate(classes):
            filled[index, : len(row)] = [ABSTAINS if value is None else value for value in row]
            include[index, : len(row)] = True
        scores = [_scores(name, values, classes, width) for name, values in (("o", o), ("s", s), ("logprob", logprob))]
        return cls(classes=filled, o=scores[0], s=scores[1], logprob=scores[2], include=include)

    @property
    def combined(self) -> FloatArray:
        """(P, K) S = o + s; NaN where o or s is missing."""
        return self.o + self.s

    def first(self, k: int) -> VoteTable:
        """The table as if only the first k chains had been sampled.

        Raises:
            ValueError: k is below 1.
        """
        if k < 1:
            raise ValueError(f"a vote needs at least one chain: got k = {k}")
        return VoteTable(
            classes=self.classes[:, :k],
            o=self.o[:, :k],
            s=self.s[:, :k],
            logprob=self.logprob[:, :k],
            include=self.include[:, :k],
        )

    def subset(self, mask: BoolArray) -> VoteTable:
        """The table with only the chains where the mask is true: (P, K), or (K,) for the same chains everywhere."""
        return replace(self, include=self.include & mask)


def initial_chain(record: Mapping[str, Any]) -> bool:
    """Whether a line of chains.jsonl is a chain of round 0."""
    return record.get("round") == 0


def same_text(problem: str, answers: Sequence[str | None]) -> list[int | None]:
    """Classes of canonical answers by equal text, numbered as first seen; ``None`` abstains."""
    numbers: dict[str, int] = {}
    return [None if answer is None else numbers.setdefault(answer, len(numbers)) for answer in answers]


def table_of_chains(
    records: Iterable[Mapping[str, Any]],
    *,
    keep: Callable[[Mapping[str, Any]], bool] = initial_chain,
    classes: Callable[[str, Sequence[str | None]], Sequence[int | None]] = same_text,
) -> tuple[list[str], VoteTable]:
    """The vote table of a finished run, from the lines of its chains.jsonl alone.

    Args:
        records: The lines, parsed, in any order.
        keep: Which chains vote; by default those of round 0.
        classes: Gives the answer classes of one problem from its id and its chains' canonical answers.

    Returns:
        The problem ids in order of appearance, and the table; a problem's chains stand in order of round and index.

    Raises:
        ValueError: A line lacks its problem, round or index, or holds an impossible score.
    """
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for number, record in enumerate(records, start=1):
        lacking = [key for key in ("problem", "round", "index") if record.get(key) is None]
        if lacking:
            raise ValueError(f"chain {number} has no {', '.join(lacking)}: is this a chains.jsonl?")
        chains = problems.setdefault(str(record["problem"]), [])
        if keep(record):
            chains.append(record)
    rows = [sorted(chains, key=lambda chain: (chain["round"], chain["index"])) for chains in problems.values()]
    table = VoteTable.of(
        [classes(problem, [chain.get("answer") for chain in row]) for problem, row in zip(problems, rows, strict=True)],
        [[chain.get("orm") for chain in row] for row in rows],
        [[chain.get("prm") for chain in row] for row in rows],
        [[_mean_logprob(chain.get("token_logprobs")) for chain in row] for row in rows],
    )
    return list(problems), table


def _scores(
    name: str,
    values: Sequence[Sequence[float | None]] | None,
    classes: Sequence[Sequence[int | None]],
    width: int,
) -> FloatArray:
    filled = np.full((len(classes), width), np.nan)
    if values is None:
        return filled
    lengths, expected = [len(row) for row in values], [len(row) for row in classes]
    if lengths != expected:
        raise ValueError(f"{name} needs one entry a chain: got rows of {lengths[:5]} for chains {expected[:5]}")
    for index, row in enumerate(values):
        filled[index, : len(row)] = [np.nan if value is None else value for value in row]
    return filled


def _mean_logprob(token_logprobs: Sequence[float | None] | None) -> float | None:
    """Mean over the tokens; ``None`` without any, or where one is missing."""
    if not token_logprobs or any(value is None for value in token_logprobs):
        return None
    known = [value for value in token_logprobs if value is not None]
    return min(0.0, math.fsum(known) / len(known))
