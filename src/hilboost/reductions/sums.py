"""Exact sums over the rows of all workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilboost.backends import exact_sums
from hilboost.backends.exact_sums import (
    LARGEST_TOTAL,
    add_numbers,
    add_to_groups,
    count_of,
    empty_sums,
    is_finite,
    merge_sums,
    quotient,
    rounded,
)
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
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


def has_whole_weights(target: Target) -> bool:
    """Whether all weights are whole numbers; see :func:`is_whole`."""
    return is_whole(target.weight, target.share)


def merged(sums: Ints, share: RowShare | None) -> Ints:
    """Return exact sums over all workers from those over the rows that are here, (..., 5)."""
    return sums if share is None else share.exchange.merged(sums)


def sum_of_blocks(blocks: Iterable[Ints], share: RowShare | None) -> Ints:
    """Return exact sums over all workers from those over blocks of the rows here, (..., 5)."""
    first, *others = blocks
    for sums in others:
        merge_sums(first, sums)
    return merged(first, share)


def total_of(values: Floats, target: Target) -> Ints:
    """Return the exact sum of values (n,) times the weights of the rows, (5,)."""
    sums, weight = empty_sums(), _weights(target)
    values = np.ascontiguousarray(values, dtype=np.float64)
    add_numbers(values, weight, has_whole_weights(target), sums)
    return merged(sums, target.share)


def total(values: Floats, target: Target) -> float:
    """Return the sum of values (n,) times the weights of the rows, rounded once."""
    return float(rounded(total_of(values, target)))


def mass_of(target: Target) -> Ints:
    """Return the exact sum of the weights, (5,)."""
    if target.weight is None:
        return merged(count_of(len(target.y)), target.share)
    return total_of(target.weight, replace(target, weight=None))


def total_weight(target: Target) -> float:
    """Return the sum of the weights, rounded once."""
    return float(rounded(mass_of(target)))


def mean(target: Target) -> Floats:
    """Return the weighted mean of every column of ``y``, (c,), the nearest float64 each."""
    mass = mass_of(target)
    totals = [total_of(y, target) for y in target.y.T]
    if not all(is_finite(found) for found in totals):
        raise InvalidData(
            "y times sample_weight exceeds the largest number of float64; divide sample_weight by "
            "its mean, or y by a constant."
        )
    return np.array([quotient(found, mass) for found in totals])


def extremes(values: Floats, target: Target) -> tuple[float, float]:
    """Return the least and the largest of the values (n,) of all rows."""
    low = largest(float((-values).max(initial=-np.inf)), target.share)
    return -low, largest(float(values.max(initial=-np.inf)), target.share)


def count_rows(chosen: ArrayLike, target: Target) -> int:
    """Return the number of chosen rows (n,), whatever their weights."""
    return count(int(np.count_nonzero(chosen)), target.share)


def count_units(target: Target) -> int:
    """Return the number of rows or groups."""
    return count(target.n_units, target.share)


def sums_of_groups(
    groups: NDArray[np.integer], values: Floats, n_groups: int, target: Target
) -> Floats:
    """Return the sum of values (n,) times the weights of the rows in every group, (n_groups,).

    Rows with a negative group are left out.
    """
    sums, weight = empty_sums(n_groups), _weights(target)
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    values = np.ascontiguousarray(values, dtype=np.float64)
    add_to_groups(groups, values, weight, has_whole_weights(target), sums)
    return rounded(merged(sums, target.share))


def masses_of_groups(groups: NDArray[np.integer], n_groups: int, target: Target) -> Floats:
    """Return the sum of the weights in every group, (n_groups,)."""
    if target.weight is not None:
        return sums_of_groups(groups, target.weight, n_groups, replace(target, weight=None))
    n_rows = np.bincount(groups[groups >= 0], minlength=n_groups)
    return counts(n_rows, target.share).astype(np.float64)


def _weights(target: Target) -> Floats:
    return _NONE if target.weight is None else np.ascontiguousarray(target.weight)


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
