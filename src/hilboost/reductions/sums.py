"""Exact sums over the rows of all workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import exact_sums
from hilboost.backends.exact_sums import (
    LARGEST_TOTAL,
    add_numbers,
    add_to_groups,
    count_of,
    empty_sums,
    quotient,
    rounded,
)
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target

_NONE = np.empty(0)


def is_whole(weight: Floats | None, share: RowShare | None) -> bool:
    """Whether the weights of all workers are whole numbers with room for their total.

    ``weight`` is (n,); ``None`` and (0,) stand for ones.
    """
    if share is None:
        return weight is None or exact_sums.is_whole(weight)
    if weight is None:
        return True
    whole = np.array_equal(weight, np.rint(weight))
    total = min(float(weight.sum()), LARGEST_TOTAL) if whole else 0.0
    n_fractional, sum_here = share.exchange.sum(np.array([not whole, total], dtype=np.int64))
    return bool(n_fractional == 0 and sum_here < LARGEST_TOTAL)


def merged(sums: NDArray[np.int64], share: RowShare | None) -> NDArray[np.int64]:
    """Return exact sums over all workers from those over the rows that are here, (..., 5)."""
    return sums if share is None else share.exchange.merged(sums)


def total_of(values: Floats, weight: Floats | None, share: RowShare | None) -> NDArray[np.int64]:
    """Return the exact sum of values (n,) times weights (n,), (5,)."""
    sums = empty_sums()
    weights = _NONE if weight is None else np.ascontiguousarray(weight)
    values = np.ascontiguousarray(values, dtype=np.float64)
    add_numbers(values, weights, is_whole(weight, share), sums)
    return merged(sums, share)


def total(values: Floats, weight: Floats | None, share: RowShare | None) -> float:
    """Return the sum of values (n,) times weights (n,), rounded once."""
    return float(rounded(total_of(values, weight, share)))


def mass_of(weight: Floats | None, n: int, share: RowShare | None) -> NDArray[np.int64]:
    """Return the exact sum of the weights of the n rows that are here and of all others, (5,)."""
    return merged(count_of(n), share) if weight is None else total_of(weight, None, share)


def total_weight(target: Target) -> float:
    """Return the sum of the weights, rounded once."""
    return float(rounded(mass_of(target.weight, len(target.y), target.share)))


def mean(target: Target) -> Floats:
    """Return the weighted mean of every column of ``y``, (c,), the nearest float64 each."""
    mass = mass_of(target.weight, len(target.y), target.share)
    totals = [total_of(y, target.weight, target.share) for y in target.y.T]
    return np.array([quotient(found, mass) for found in totals])


def sums_of_groups(
    groups: NDArray[np.integer],
    values: Floats,
    weight: Floats | None,
    n_groups: int,
    share: RowShare | None,
) -> Floats:
    """Return the sum of values (n,) times weights (n,) in every group, (n_groups,).

    Rows with a negative group are left out.
    """
    sums = empty_sums(n_groups)
    weights = _NONE if weight is None else np.ascontiguousarray(weight)
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    values = np.ascontiguousarray(values, dtype=np.float64)
    add_to_groups(groups, values, weights, is_whole(weight, share), sums)
    return rounded(merged(sums, share))


def masses_of_groups(
    groups: NDArray[np.integer], weight: Floats | None, n_groups: int, share: RowShare | None
) -> Floats:
    """Return the sum of the weights (n,) in every group, (n_groups,)."""
    if weight is not None:
        return sums_of_groups(groups, weight, None, n_groups, share)
    counts = np.bincount(groups[groups >= 0], minlength=n_groups).astype(np.int64)
    return (counts if share is None else share.exchange.sum(counts)).astype(np.float64)


def on_any_worker(found: bool, share: RowShare | None) -> bool:
    """Whether something was found by any of the workers."""
    if share is None:
        return found
    return bool(share.exchange.sum(np.array([found], dtype=np.int64))[0])


def counts(numbers: NDArray[np.integer], share: RowShare | None) -> NDArray[np.integer]:
    """Return the sums of numbers over all workers."""
    return numbers if share is None else share.exchange.sum(numbers.astype(np.int64))


def added(values: Floats, share: RowShare | None) -> Floats:
    """Return the sum of an array over all workers, whose rounding depends on their number."""
    return values if share is None else share.exchange.added(values)


def count(n: int, share: RowShare | None) -> int:
    """Return the sum of a number over all workers."""
    return int(counts(np.array([n]), share)[0])


def largest(value: float, share: RowShare | None) -> float:
    """Return the largest of the numbers of all workers."""
    return value if share is None else float(share.exchange.largest(np.array([value]))[0])
