"""Merging of rows with equal inputs and targets, and lexicographic ranks of rows.

An integer weight is then equivalent to repeating the row, bit for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.target import Target
from hilboost.reductions.rounding import without_rounding


def merge_equal_rows(X: Floats, target: Target) -> tuple[Floats, Target]:
    """Merge rows with equal inputs and targets, and equal groups or times; weights are summed.

    If the merged weights differ, rows are sorted.  All later steps, including random subsets, then
    do not depend on whether rows were repeated or weighted.  If all merged weights are equal, rows
    keep the order of their first appearance.  Data without weights or equal rows are returned
    unchanged.
    """
    weight = target.weight
    if weight is not None and (weight == 1).all():
        target, weight = Target(target.y, dependence=target.dependence), None
    dependence = target.dependence
    rank = row_ranks(X, target.y, _columns(dependence, len(X)))
    m = int(rank.max(initial=-1)) + 1
    if weight is None and m == len(X):
        return X, target
    total = np.bincount(rank, weight, minlength=m).astype(np.float64)
    first = first_rows(rank, m)
    if (total == total[0]).all():
        first = np.sort(first)
        total = total[rank[first]]
    return X[first], Target(
        target.y[first], total, dependence=dependence and dependence.rows(first)
    )


def _columns(dependence: Dependence | None, n: int) -> NDArray:
    """Groups, times and roles of ``n`` rows as columns."""
    arrays = () if dependence is None else dependence.arrays
    return np.hstack([np.empty((n, 0)), *(one.reshape(n, -1) for one in arrays if one is not None)])


def row_ranks(*tables: Floats, exactly: bool = True) -> Ints:
    """Rank of each row, (n,), in lexicographic order of the columns of all tables in turn.

    Equal rows, or unless ``exactly`` those that differ by rounding alone, have equal ranks.  A
    column is sorted only among rows that are equal in all columns before it.
    """
    n = len(tables[0])
    rank = np.zeros(n, dtype=np.int64)  # number of rows that come before; equal for ties
    tied = np.arange(n)
    for table in tables:
        for j in range(table.shape[1]):
            if len(tied) < 2:
                break
            values = table[tied, j] if exactly else without_rounding(table[tied, j])
            tied = _refine(rank, tied, values)
    return np.unique(rank, return_inverse=True)[1].reshape(n)


def _refine(rank: Ints, tied: Ints, values: Floats) -> Ints:
    """Rank tied rows by their values, in place; return the rows that are still tied."""
    if (values == values[0]).all():
        return tied
    order = np.lexsort((values, rank[tied]))
    tied, values = tied[order], values[order]
    before = rank[tied]
    new_group = np.append(True, before[1:] != before[:-1])
    # NaN equals NaN here; such rows are rejected later.
    differs = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    new_value = new_group.copy()
    new_value[1:] |= differs
    position = np.arange(len(tied))
    start_of_group = np.maximum.accumulate(np.where(new_group, position, 0))
    start_of_value = np.maximum.accumulate(np.where(new_value, position, 0))
    rank[tied] = before + start_of_value - start_of_group
    alone = new_value & np.append(new_value[1:], True)
    return tied[~alone]


def first_rows(group: Ints, m: int) -> Ints:
    """Return the first row of each of ``m`` groups."""
    first = np.empty(m, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]
    return first


def count_distinct(X: Floats) -> int:
    """Count the rows that are distinct but for rounding."""
    return int(row_ranks(X, exactly=False).max(initial=-1)) + 1
