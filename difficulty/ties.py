"""Answer classes of many problems as arrays, and the one tie rule.

Rows are problems, columns are chains in chain order; class -1 abstains and a NaN score is missing. Arrays over classes
have the same shape: what belongs to a class stands in the column of the class's first chain, so the smallest column
among equals is the class seen first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

N = TypeVar("N", np.int64, np.float64)

TOLERANCE = 1e-9
"""Numbers closer than this are equal, so that the order in which a sum was formed decides nothing."""

ABSTAINS = -1
DIMENSIONS = 2  # problems, chains


def first_columns(classes: IntArray) -> IntArray:
    """For each chain the column of the first chain of its class in its row; -1 for one that abstains.

    Args:
        classes: (P, K) class of each chain, any non-negative number; -1 abstains.
    """
    order = np.argsort(classes, axis=1, kind="stable")
    ordered = np.take_along_axis(classes, order, axis=1)
    starts = np.zeros(classes.shape, dtype=np.int64)
    positions = np.arange(classes.shape[1])
    starts[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], positions[1:], 0)
    starts = np.maximum.accumulate(starts, axis=1)
    columns = np.empty(classes.shape, dtype=np.int64)
    np.put_along_axis(columns, order, np.take_along_axis(order, starts, axis=1), axis=1)
    return np.where(classes < 0, ABSTAINS, columns)


def class_sums(columns: IntArray, values: FloatArray) -> FloatArray:
    """(P, K) sum of the chains' values in each class; -inf where no chain of the class has one."""
    used = (columns >= 0) & ~np.isnan(values)
    where = _flat(columns)[used]
    sums = np.bincount(where, weights=values[used], minlength=columns.size).reshape(columns.shape)
    counted = np.bincount(where, minlength=columns.size).reshape(columns.shape)
    return np.where(counted > 0, sums, -np.inf)


def class_counts(columns: IntArray, included: BoolArray | None = None) -> IntArray:
    """(P, K) number of chains (of the included chains) in each class."""
    used = columns >= 0 if included is None else (columns >= 0) & included
    return np.bincount(_flat(columns)[used], minlength=columns.size).reshape(columns.shape)


def class_maxima(columns: IntArray, values: FloatArray) -> FloatArray:
    """(P, K) largest of the chains' values in each class; -inf where no chain of the class has one."""
    used = (columns >= 0) & ~np.isnan(values)
    maxima = np.full(columns.size, -np.inf)
    np.maximum.at(maxima, _flat(columns)[used], values[used])
    return maxima.reshape(columns.shape)


def leading(*criteria: FloatArray, tolerance: float = TOLERANCE) -> IntArray:
    """In each row the column that is largest by the first criterion, then by the second, and so on, then the leftmost.

    Columns that are -inf by the first criterion do not take part; -inf by a later one ranks below every number.

    Args:
        criteria: (P, K) arrays, the most important first.
        tolerance: Values this close to the row's largest are equal to it.

    Returns:
        (P,) columns; -1 in rows where no column takes part.
    """
    alive = criteria[0] > -np.inf
    for criterion in criteria:
        values = np.where(alive, criterion, -np.inf)
        alive = alive & (values >= values.max(axis=1, keepdims=True, initial=-np.inf) - tolerance)
    found = np.full(alive.shape[0], -1, dtype=np.int64)
    if alive.shape[1] > 0:
        found = np.where(alive.any(axis=1), alive.argmax(axis=1), found)
    return found


def picked(values: NDArray[N], column: IntArray, otherwise: N | float) -> NDArray[N]:
    """(P,) each row's value in its own column; ``otherwise`` where the column is -1."""
    chosen = np.full(len(column), otherwise, dtype=values.dtype)
    rows = np.flatnonzero(column >= 0)
    chosen[rows] = values[rows, column[rows]]
    return chosen


def _flat(columns: IntArray) -> IntArray:
    flat: IntArray = columns + np.arange(columns.shape[0])[:, None] * columns.shape[1]
    return flat


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassTable:
    """Counts and combined scores of the answer classes of P problems with up to K chains each.

    Attributes:
        columns: (P, K) for each chain the column of its class; -1 for a chain that abstains or is left out.
        counts: (P, K) chains in each class.
        total: (P, K) sum of S in each class; -inf where no chain of it has an S.
        best: (P, K) largest S in each class; -inf likewise.
    """

    columns: IntArray
    counts: IntArray
    total: FloatArray
    best: FloatArray

    @classmethod
    def of(cls, classes: IntArray, combined: FloatArray, include: BoolArray | None = None) -> Self:
        """Group chains into classes.

        Args:
            classes: (P, K) class of each chain, any non-negative number; -1 abstains.
            combined: (P, K) S of each chain; NaN where missing.
            include: (P, K) the chains to look at; all of them if not given.
        """
        columns = first_columns(classes if include is None else np.where(include, classes, ABSTAINS))
        return cls(
            columns=columns,
            counts=class_counts(columns),
            total=class_sums(columns, combined),
            best=class_maxima(columns, combined),
        )

    def leader(self, primary: FloatArray) -> IntArray:
        """The winning class of each problem: THE tie rule of routing and voting.

        Largest ``primary``; among equals the larger total S, then the larger best S, then the class seen first. A class
        without any S ranks below one that has some. Never random.

        Args:
            primary: (P, K) what is compared; -inf for a class that does not stand.

        Returns:
            (P,) column of the winning class; -1 where no class stands.
        """
        return leading(primary, self.total, self.best)

    def majority(self) -> IntArray:
        """(P,) column of the largest class by number of chains; -1 where every chain abstains."""
        return self.leader(np.where(self.counts > 0, self.counts, -np.inf))
