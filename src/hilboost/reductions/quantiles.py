"""Weighted quantiles over the rows of all workers, by counting.

Values are ordered like the integers that their bits stand for.  The value at a quantile is found
digit by digit: in each of eight passes, every group counts, by the next eight bits, its rows that
have the digits found so far::

    digits found   3F E0            rows of the group that begin with 3F E0
    next digit     00 01 02 … FF    weight of each; the sums of all workers are exchanged
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.quantiles import leaf_quantiles, weighted_quantile
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.exchange import RowShare
from hilboost.core.target import Target

_DIGITS = 256
_SHIFTS = range(56, -1, -8)
_TOLERANCE = 1e-12  # of the rounding of weights, as in ``weighted_quantile``
_SIGN = np.uint64(1 << 63)


def quantile(values: Floats, level: float, target: Target) -> float:
    """Return the weighted quantile of values (n,); equal weights and level 1/2: the median."""
    if target.share is None:
        order = np.argsort(values, kind="stable")
        weights = np.ones(len(values)) if target.weight is None else target.weight[order]
        return float(weighted_quantile(values[order], weights, level))
    one = np.zeros(len(values), dtype=np.int32)
    return float(quantiles_of_groups(values, one, 1, level, target)[0])


def quantiles_of_groups(
    values: Floats, groups: NDArray[np.int32], n_groups: int, level: float, target: Target
) -> Floats:
    """Return the weighted quantile of the values (n,) in every group, (n_groups,).

    Rows of negative groups are left out; a group without rows has 0.  Cost O(n) for each of eight
    passes and n_groups · 16 KiB to exchange if there are other workers, otherwise O(n log n).
    """
    weight, share = target.weight, target.share
    weights = np.empty(0) if weight is None else weight
    if share is None:
        return leaf_quantiles(np.ascontiguousarray(values), weights, groups, n_groups, level)
    inside = np.flatnonzero(groups >= 0)
    keys, own = _keys(values[inside]), groups[inside].astype(np.int64)
    units = _units(None if weight is None else weight[inside], own, n_groups, share)
    totals = share.exchange.sum(_added(own, units, n_groups))
    wanted, tolerance = level * totals, _TOLERANCE * totals
    found, mass = _search(keys, units, own, wanted - tolerance, share)
    result = np.where(totals > 0, _numbers(found), 0.0)
    ties = (mass <= wanted + tolerance) & (mass < totals)
    following = _next_numbers(keys, own, found, share)
    result[ties] = 0.5 * (result[ties] + following[ties])
    return result + 0.0  # of either zero, the positive one


def _keys(values: Floats) -> NDArray[np.uint64]:
    """Integers in the order of the values, (n,)."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers(keys: NDArray[np.uint64]) -> Floats:
    """The values of such integers."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def _units(weight: Floats | None, groups: Ints, n_groups: int, share: RowShare) -> Ints:
    """Weights as integers, (n,): multiples of a power of two, for each group its own."""
    if weight is None:
        return np.ones(len(groups), dtype=np.int64)
    largest = np.zeros(n_groups)
    np.maximum.at(largest, groups, weight)
    largest = share.exchange.largest(largest)
    sizes = share.exchange.sum(np.bincount(groups, minlength=n_groups).astype(np.int64))
    factors = np.ones(n_groups)
    for k in np.flatnonzero(sizes):
        room = 61.0 - math.ceil(math.log2(sizes[k]))
        factors[k] = math.ldexp(1.0, int(min(room - math.frexp(largest[k])[1], 1000.0)))
    return np.rint(weight * factors[groups]).astype(np.int64)


def _added(places: Ints, units: Ints, n: int) -> Ints:
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, places, units)
    return sums


def _search(
    keys: NDArray[np.uint64], units: Ints, groups: Ints, wanted: Floats, share: RowShare
) -> tuple[NDArray[np.uint64], Ints]:
    """Find the smallest key up to which a group has the wanted mass, and that mass."""
    n_groups, every = len(wanted), np.arange(len(wanted))
    found, below = np.zeros(n_groups, dtype=np.uint64), np.zeros(n_groups, dtype=np.int64)
    mass = below
    for shift in _SHIFTS:
        digits = ((keys >> np.uint64(shift)) & np.uint64(_DIGITS - 1)).astype(np.int64)
        here = _added(groups * _DIGITS + digits, units, n_groups * _DIGITS)
        counts = share.exchange.sum(here).reshape(n_groups, _DIGITS)
        sums = below[:, None] + counts.cumsum(axis=1)
        # Rounding may ask for more than there is: then the last digit that occurs.
        enough = (sums >= wanted[:, None]) & (counts > 0)
        last = _DIGITS - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
        digit = np.where(enough.any(axis=1), enough.argmax(axis=1), last)
        mass = sums[every, digit]
        below = mass - counts[every, digit]
        found |= digit.astype(np.uint64) << np.uint64(shift)
        inside = digits == digit[groups]
        keys, units, groups = keys[inside], units[inside], groups[inside]
    return found, mass


def _next_numbers(
    keys: NDArray[np.uint64], groups: Ints, found: NDArray[np.uint64], share: RowShare
) -> Floats:
    """The smallest value above the one that was found, in every group."""
    above = keys > found[groups]
    smallest = np.full(len(found), np.inf)
    np.minimum.at(smallest, groups[above], _numbers(keys[above]))
    return -share.exchange.largest(-smallest)
