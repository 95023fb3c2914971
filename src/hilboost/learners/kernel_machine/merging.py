"""Equal rows: merged before a fit, and seen once by a kernel machine.

Two steps.  :func:`merge_equal_rows` makes one row of rows that are equal in inputs and target, with
the sum of their weights, so that an integer weight is repetition to the last bit.
:class:`DistinctRows` makes one basis vector of rows that are equal in the inputs alone: a machine
gives them one output, so the quadratic model of their losses depends on their weighted mean
gradient and the sum of their weights only.  The losses themselves stay those of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients, Target


def merge_equal_rows(X: Floats, target: Target) -> tuple[Floats, Target]:
    """Rows equal in inputs and target become one of summed weight.

    Parameters
    ----------
    X : (n, d) float64
    target : Target

    Returns
    -------
    X : (m, d) float64
    target : Target

    Notes
    -----
    Where the merged weights differ, rows are sorted: then nothing that follows, random subsets
    included, depends on how repetition was expressed.  Where they are all the same, rows keep the
    order of their first appearance.  Data without weights or equal rows are returned as they are.
    """
    weight = target.weight
    if weight is not None and (weight == 1).all():
        target, weight = Target(target.y), None
    rank = row_ranks(X, target.y)
    m = int(rank.max(initial=-1)) + 1
    if weight is None and m == len(X):
        return X, target
    total = np.bincount(rank, weight, minlength=m).astype(np.float64)
    first = first_rows(rank, m)
    if (total == total[0]).all():
        first = np.sort(first)
        total = total[rank[first]]
    return X[first], Target(target.y[first], total)


def row_ranks(*tables: Floats) -> NDArray[np.int64]:
    """Rank of every row, (n,), in lexicographic order of all columns; equal rows share one.

    Parameters
    ----------
    *tables : (n, d) arrays
        Side by side.

    Notes
    -----
    A column is sorted only among rows that are equal in all columns before it.
    """
    n = len(tables[0])
    rank = np.zeros(n, dtype=np.int64)  # number of rows that come before: gaps mark ties
    tied = np.arange(n)
    for table in tables:
        for j in range(table.shape[1]):
            if len(tied) < 2:
                break
            tied = _refine(rank, tied, table[:, j])
    return np.unique(rank, return_inverse=True)[1].reshape(n)


def _refine(rank: NDArray[np.int64], tied: NDArray[np.int64], column: Floats) -> NDArray[np.int64]:
    """Rank tied rows by one more column, in place; the rows that are still tied."""
    values = column[tied]
    if (values == values[0]).all():
        return tied
    order = np.lexsort((values, rank[tied]))
    tied, values = tied[order], values[order]
    before = rank[tied]
    new_group = np.append(True, before[1:] != before[:-1])
    # NaN equals NaN here: such rows are refused later, by name.
    differs = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    new_value = new_group.copy()
    new_value[1:] |= differs
    position = np.arange(len(tied))
    start_of_group = np.maximum.accumulate(np.where(new_group, position, 0))
    start_of_value = np.maximum.accumulate(np.where(new_value, position, 0))
    rank[tied] = before + start_of_value - start_of_group
    alone = new_value & np.append(new_value[1:], True)
    return tied[~alone]


def first_rows(group: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """The first row of each of ``m`` groups."""
    first = np.empty(m, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return first


def count_distinct(X: Floats) -> int:
    """Number of distinct rows."""
    return int(row_ranks(X).max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Which rows of a table are equal.

    Attributes
    ----------
    first : (m,) int64
        First appearance of every distinct row, ascending.
    group : (n,) int64
        Number of every row among the distinct ones.
    weight : (n,) float64
        Sample weights of all rows.
    """

    first: NDArray[np.int64]
    group: NDArray[np.int64]
    weight: Floats

    @classmethod
    def of(cls, X: Floats, weight: Floats | None) -> DistinctRows | None:
        """``None`` where no two rows are equal."""
        rank = row_ranks(X)
        m = int(rank.max(initial=-1)) + 1
        if m == len(X):
            return None
        by_rank = first_rows(rank, m)
        first = np.sort(by_rank)
        number = np.empty(m, dtype=np.int64)
        number[rank[first]] = np.arange(m)
        return cls(first, number[rank], np.ones(len(X)) if weight is None else weight)

    def sums(self, values: Floats) -> Floats:
        """Sums over equal rows, (m, …) of (n, …)."""
        if values.ndim == 1:
            total = np.bincount(self.group, values, minlength=len(self.first))
            return total.astype(np.float64)
        return np.column_stack([self.sums(column) for column in values.T])

    def means(self, values: Floats, weight: Floats) -> Floats:
        """Weighted means of equal rows, (m, r) of (n, r); 0 where the weights are."""
        total = self.sums(weight)[:, None]
        return np.divide(
            self.sums(weight[:, None] * values),
            total,
            out=np.zeros((len(self.first), values.shape[1])),
            where=total > 0,
        )

    def merged(self, gradients: Gradients, weight: Floats | None) -> tuple[Gradients, Floats]:
        """Gradients of the distinct rows and their weights, for weights (n,) of a sample."""
        weight = np.ones(len(self.group)) if weight is None else weight
        hessian = gradients.hessian
        return (
            Gradients(
                self.means(gradients.negative_gradient, weight),
                None if hessian is None else self.means(hessian, weight),
                gradients.bound,
            ),
            self.sums(weight),
        )

    def members(self, distinct: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows that are equal to some distinct ones, and the places of these among the latter.

        Parameters
        ----------
        distinct : (k,) int64
            Without repetition.

        Returns
        -------
        rows, places : (l,) int64
        """
        place = np.full(len(self.first), -1)
        place[distinct] = np.arange(len(distinct))
        rows = np.flatnonzero(place[self.group] >= 0)
        return rows, place[self.group[rows]]

    def scatter(self, residual: Floats, weight: Floats) -> float:
        """Weighted sum of squares of (n, r) residuals about the means of equal rows."""
        spread = residual - self.means(residual, weight)[self.group]
        return float((weight[:, None] * spread * spread).sum())
