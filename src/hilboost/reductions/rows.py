"""Values of the rows of all workers in the order of the table, and rows that are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.target import Target

ROUNDING = 2.0**-46  # difference of two results for the same number, relative to its size
_MOST_ROUNDING = 2.0**-44  # range of many results for it
_ONE_SCALE = 2.0**-24  # least size in a column of one scale, relative to the typical size
_BEYOND_INTEGERS = 2.0**64


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array (n,), ascending.

    NumPy finds distinct integers by hash tables, which takes longer than to sort them.
    """
    if values.dtype.kind not in "biu" or not len(values):
        return np.unique(values)
    values = np.sort(values)
    is_first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values[is_first]


def of_all_workers(values: NDArray[Any], target: Target) -> NDArray[Any]:
    """Return the values (m, ...) of all workers, in the order of the workers."""
    return values if target.share is None else target.share.exchange.gathered(values)


def of_all_rows(values: NDArray[Any], target: Target) -> NDArray[Any]:
    """Return the values (n, ...) of the rows of all workers, in the order of the table."""
    if not target.is_divided:
        return values
    order = np.argsort(of_all_workers(target.numbers, target))
    return of_all_workers(values, target)[order]


def whole_target(target: Target) -> Target:
    """Return the target of the rows of all workers, in the order of the table."""
    if not target.is_divided:
        return target
    weight = None if target.weight is None else of_all_rows(target.weight, target)
    return Target(of_all_rows(target.y, target), weight, dependence=whole_dependence(target))


def whole_dependence(target: Target) -> Dependence | None:
    """Gather from all workers by what their rows are held out, in the order of the table."""
    found = target.dependence
    if found is None or not target.is_divided:
        return found
    groups, times, roles = (
        None if one is None else of_all_rows(one, target) for one in found.arrays
    )
    return Dependence(groups, times, found.gap, roles)


def union(numbers: NDArray[Any], target: Target) -> NDArray[Any]:
    """Return the distinct numbers (m,) of all workers, ascending, where each passes its own."""
    return np.unique(of_all_workers(numbers, target)) if target.is_divided else numbers


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


def without_rounding(values: Floats) -> Floats:
    """Replace finite values (n,) that differ by rounding alone by the least of them."""
    distinct, place = np.unique(values, return_inverse=True)
    finite = np.flatnonzero(np.isfinite(distinct))
    if len(finite) < 2:
        return values
    ends = ends_of_equals(distinct[finite], None)
    least = distinct[finite][np.append(0, ends[:-1] + 1)]
    distinct[finite] = np.repeat(least, np.diff(ends, prepend=-1))
    return distinct[place]


def are_close(low: Floats, high: Floats, tolerance: Floats | float) -> NDArray[np.bool_]:
    """Whether ascending numbers differ by no more than a tolerance."""
    with np.errstate(over="ignore"):
        return high - low <= tolerance


def ends_of_equals(distinct: Floats, mass: Floats | None) -> Ints:
    """Find the last value of each run of values that differ by rounding alone.

    Integers are exact, and so are values so dense that a run exceeds the rounding of one number.
    """
    size, n = np.abs(distinct), len(distinct)
    if size.max() < _BEYOND_INTEGERS and (distinct == np.rint(distinct)).all():
        return np.arange(n)
    size = np.maximum(size, _size_of_one_scale(size, mass))
    apart = ~are_close(distinct[:-1], distinct[1:], ROUNDING * np.maximum(size[:-1], size[1:]))
    first = np.flatnonzero(np.append(True, apart))
    last = np.append(first[1:] - 1, n - 1)
    most = _MOST_ROUNDING * np.maximum(size[first], size[last])
    apart |= ~are_close(distinct[first], distinct[last], most)[np.cumsum(apart)]
    return np.append(np.flatnonzero(apart), n - 1)


def _size_of_one_scale(size: Floats, mass: Floats | None) -> float:
    """Size that a quarter of the nonzero values reach; 0 if sizes between it and zero occur."""
    order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
    masses = np.cumsum(np.ones(len(order)) if mass is None else mass[order])
    typical = size[order][np.searchsorted(masses, 0.25 * masses[-1])]
    smallest = size[size > ROUNDING * typical].min()
    return float(typical) if smallest >= _ONE_SCALE * typical else 0.0
