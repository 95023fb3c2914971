"""Values of the rows of all workers, in the order of the table, and distinct values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.target import Target


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
    return Target(of_all_rows(target.y, target), weight)


def union(numbers: NDArray[Any], target: Target) -> NDArray[Any]:
    """Return the distinct numbers (m,) of all workers, ascending, where each passes its own."""
    return np.unique(of_all_workers(numbers, target)) if target.is_divided else numbers
