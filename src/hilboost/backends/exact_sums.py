"""Sums of floating-point numbers that depend neither on their order nor on their grouping.

A sum is a row of five integers.  The first four are its limbs, multiples of powers of two that are
31 bits apart; the fifth, its *top*, says which: ``2**(31 * top)``, ``2**(31 * (top - 1))`` and so
on.  The largest addend alone determines the top: it is less than half of the next higher unit, and
92 to 123 bits longer than the lowest one.  Each addend is rounded to a multiple of the lowest unit,
which changes none that is more than ``2**-39`` times the largest.  All else is integer arithmetic,
so that the sums of blocks, threads or machines can be merged in any way: the result is the sum of
the rounded addends, exactly.

There is room for a total weight of 2**31, or 2**31 rows.  A sum with NaN or infinite addends is
NaN.

References
----------
Demmel & Nguyen, *Parallel reproducible summation*, IEEE Transactions on Computers 64, 2015: bins at
fixed exponents; exponents below the largest addend are kept.  Here, bins hold integers.
"""

import math
from fractions import Fraction

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import float_bits

FIELDS = 5
"""Integers of a sum."""
CHUNK = 1024
"""Numbers that are copied together before they are added."""
LARGEST_TOTAL = 2.0**31
"""Total weight for which there is room, if weights are whole numbers."""

_LIMB_BITS = 31
_LOWEST_TOP = -33
_LIMBS = 4
TOP = 4
"""Place of the top of a sum."""
NOT_FINITE = 64
"""The top of sums with NaN or infinite addends."""
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
_INFINITE = 0x7FF0_0000_0000_0000

# Adding one of these rounds a number to a multiple of 1, 2**-31, 2**-62 or 2**-93, and the last
# bits of the sum are the multiple, as an integer.
_ROUND_1, _ROUND_2, _ROUND_3, _ROUND_4 = (1.5 * 2.0 ** (52 - _LIMB_BITS * k) for k in range(4))
_BITS_1, _BITS_2, _BITS_3, _BITS_4 = (
    int(np.float64(number).view(np.int64)) for number in (_ROUND_1, _ROUND_2, _ROUND_3, _ROUND_4)
)

_FACTORS = np.ldexp(1.0, -_LIMB_BITS * np.arange(_LOWEST_TOP, NOT_FINITE + 1))


def empty_sums(*shape: int) -> NDArray[np.int64]:
    """Return empty sums, (..., 5) int64."""
    sums = np.zeros((*shape, FIELDS), dtype=np.int64)
    sums[..., TOP] = _LOWEST_TOP
    return sums


def is_whole(weights: NDArray[np.float64]) -> bool:
    """Whether weights are whole numbers with room for their total: they repeat rows, exactly.

    weights : (n,) float64, or (0,) for ones
    """
    if not len(weights):
        return True
    return bool(np.array_equal(weights, np.rint(weights)) and weights.sum() < LARGEST_TOTAL)


def sum_of(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Return the sum of values (n,) times their weights (n,), (5,) int64."""
    total, none = empty_sums(), np.empty(0)
    weights = none if weights is None else np.ascontiguousarray(weights)
    add_numbers(np.ascontiguousarray(values, dtype=np.float64), weights, is_whole(weights), total)
    return total


def count_of(n: int) -> NDArray[np.int64]:
    """Return the sum of ``n`` ones, (5,) int64."""
    return np.array([0, 0, n >> _LIMB_BITS, n & ((1 << _LIMB_BITS) - 1), 3], dtype=np.int64)


def mass_of(weights: NDArray[np.float64] | None, n: int) -> NDArray[np.int64]:
    """Return the sum of the weights (n,), (5,) int64; ``None`` means one for each row."""
    return count_of(n) if weights is None else sum_of(weights)


def sums_of_groups(
    groups: NDArray[np.integer],  # (n,) int: rows with a negative group are left out
    values: NDArray[np.float64],  # (n,) float64
    weights: NDArray[np.float64] | None,  # (n,) float64 or None
    n_groups: int,
) -> NDArray[np.float64]:
    """Return the nearest float64 of the sum of values times weights in every group, (n_groups,)."""
    sums, none = empty_sums(n_groups), np.empty(0)
    weights = none if weights is None else np.ascontiguousarray(weights)
    groups = np.ascontiguousarray(groups, dtype=np.int64)
    values = np.ascontiguousarray(values, dtype=np.float64)
    add_to_groups(groups, values, weights, is_whole(weights), sums)
    return rounded(sums)


def masses_of_groups(
    groups: NDArray[np.integer], weights: NDArray[np.float64] | None, n_groups: int
) -> NDArray[np.float64]:
    """Return the sum of the weights in every group, as :func:`sums_of_groups`."""
    if weights is None:
        return np.bincount(groups[groups >= 0], minlength=n_groups).astype(np.float64)
    return sums_of_groups(groups, weights, None, n_groups)


def quotient(total: NDArray[np.int64], mass: NDArray[np.int64]) -> float:
    """Return the float64 nearest to the quotient of two finite sums (5,)."""
    shift = _LIMB_BITS * int(total[TOP] - mass[TOP])
    top, bottom = _in_lowest_units(total), _in_lowest_units(mass)
    return (top << shift) / bottom if shift > 0 else top / (bottom << -shift)


def is_finite(total: NDArray[np.int64]) -> bool:
    """Whether no addend was NaN or infinite."""
    return bool(total[TOP] < NOT_FINITE)


def _in_lowest_units(total: NDArray[np.int64]) -> int:
    value = 0
    for limb in total[:_LIMBS].tolist():
        value = (value << _LIMB_BITS) + limb
    return value


def exact(total: NDArray[np.int64]) -> Fraction:
    """Return the value of a finite sum (5,), exactly."""
    return _in_lowest_units(total) * Fraction(2) ** (_LIMB_BITS * (int(total[TOP]) - _LIMBS + 1))


def rounded(sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the nearest float64 of every sum; ``sums`` (..., 5)."""
    result = np.empty(sums.shape[:-1])
    round_sums(sums.reshape(-1, FIELDS), result.reshape(-1))
    return result


@tiny
def clear_sum(total):
    """Reset a sum (5,) int64 to zero."""
    for limb in range(_LIMBS):
        total[limb] = 0
    total[TOP] = _LOWEST_TOP


@tiny
def top_for(bits):
    """The top for a number of these bits; NaN and infinite numbers have their own."""
    if bits >= _INFINITE:
        return NOT_FINITE
    # A number below 2**e is to be below 2**(31 top + 30): a rounding to any multiple of a higher
    # unit, by the limbs of larger numbers, must give zero.
    return ((bits >> 52) + 249) // 31 - 41


@inner
def _raise_top(total, top):
    """Make room for larger numbers: limbs below the new lowest unit are left out."""
    for _ in range(min(top - total[TOP], _LIMBS)):
        total[3], total[2], total[1], total[0] = total[2], total[1], total[0], 0
    total[TOP] = top


@compiled
def merge_sums(sums, others):
    """Add ``others`` to ``sums``; (m, 5) int64 both."""
    for i in range(sums.shape[0]):
        total, other = sums[i], others[i]
        if other[TOP] > total[TOP]:
            _raise_top(total, other[TOP])
        below = total[TOP] - other[TOP]
        for limb in range(below, _LIMBS):
            total[limb] += other[limb - below]


@inner
def rounded_sum(total):
    """The nearest float64."""
    if total[TOP] >= NOT_FINITE:
        return np.nan
    first, second, third, fourth = _carried(total[0], total[1], total[2], total[3])
    sign, top = 1.0, total[TOP]
    if first < 0:
        sign = -1.0
        first, second, third, fourth = _carried(-first, -second, -third, -fourth)
    for _ in range(_LIMBS - 1):
        if first == 0:
            first, second, third, fourth, top = second, third, fourth, np.int64(0), top - 1
    high, low = first, (second << _LIMB_BITS) + third
    left = 2 * _LIMB_BITS  # bits of the low part that have not moved to the high part
    step = 32
    while step > 0:
        if high < (1 << (62 - step)) and step <= left:
            left -= step
            high = (high << step) + (low >> left)
            low &= (1 << left) - 1
        step >>= 1
    # The last bit, far below those that are kept, only says that the number is not a tie.
    high |= np.int64(low != 0 or fourth != 0)
    return sign * math.ldexp(np.float64(high), int(_LIMB_BITS * (top - 2) + left))


@tiny
def _carried(first, second, third, fourth):
    """The same number with all limbs but the first between 0 and 2**31."""
    mask = (1 << _LIMB_BITS) - 1
    third += fourth >> _LIMB_BITS
    second += third >> _LIMB_BITS
    first += second >> _LIMB_BITS
    return first, second & mask, third & mask, fourth & mask


@compiled
def round_sums(sums, result):
    """The nearest float64 of every sum; sums : (m, 5) int64, result : (m,) float64."""
    for i in range(sums.shape[0]):
        result[i] = rounded_sum(sums[i])


@inner
def _largest_bits(values, weights, weighted):
    """Bits of the largest magnitude; NaN has larger bits than infinity."""
    largest = np.int64(0)
    if weighted:
        for i in range(values.shape[0]):
            largest = max(largest, float_bits(values[i] * weights[i]) & _MAGNITUDE)
    else:
        for i in range(values.shape[0]):
            largest = max(largest, float_bits(values[i]) & _MAGNITUDE)
    return largest


@tiny
def limbs_of(number):
    """Round a number in units of the top to the nearest sum of four limbs."""
    first = number + _ROUND_1
    rest = number - (first - _ROUND_1)
    second = rest + _ROUND_2
    rest -= second - _ROUND_2
    third = rest + _ROUND_3
    fourth = (rest - (third - _ROUND_3)) + _ROUND_4
    return (
        float_bits(first) - _BITS_1,
        float_bits(second) - _BITS_2,
        float_bits(third) - _BITS_3,
        float_bits(fourth) - _BITS_4,
    )


@inner
def add_contiguous(values, weights, whole, total):
    """Add numbers that lie together times the weights to a sum.

    values : (n,) float64; weights : (n,) float64, or (0,) for ones; total : (5,) int64
    whole : bool, see :func:`is_whole`: each addend is rounded, and then repeated; otherwise the
    product is rounded.  The loops are straight vector code.
    """
    weighted = weights.shape[0] > 0
    top = top_for(_largest_bits(values, weights, weighted and not whole))
    if top > total[TOP]:
        _raise_top(total, top)
    factor = math.ldexp(1.0, int(-_LIMB_BITS * total[TOP]))
    a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if weighted and whole:
        for i in range(values.shape[0]):
            times = np.int64(weights[i])
            first, second, third, fourth = limbs_of(values[i] * factor)
            a += times * first
            b += times * second
            c += times * third
            d += times * fourth
    elif weighted:
        for i in range(values.shape[0]):
            first, second, third, fourth = limbs_of(values[i] * weights[i] * factor)
            a += first
            b += second
            c += third
            d += fourth
    else:
        for i in range(values.shape[0]):
            first, second, third, fourth = limbs_of(values[i] * factor)
            a += first
            b += second
            c += third
            d += fourth
    total[0] += a
    total[1] += b
    total[2] += c
    total[3] += d


@inner
def gather(values, k, rows, begin, end, into):
    """Copy ``values[rows[begin:end], k]``, so that the numbers lie together.

    values : (n, r) float64; rows : (m,) uint32, or (0,) for all rows; into : (end - begin,) float64
    """
    if rows.shape[0] > 0:
        for i in range(into.shape[0]):
            into[i] = values[rows[uint64(begin + i)], k]
    else:
        for i in range(into.shape[0]):
            into[i] = values[uint64(begin + i), k]


@compiled
def add_numbers(values, weights, whole, total):
    """Add numbers times their weights to a sum.

    values : (n,) float64; weights : (n,) float64, or (0,) for ones; whole : bool, see
    :func:`is_whole`; total : (5,) int64
    """
    add_contiguous(values, weights, whole, total)


@inner
def _add_one(values, weights, whole, i, total):
    """Add ``values[i]`` times its weight to a sum."""
    value, times = values[i], np.int64(1)
    if weights.shape[0] > 0:
        if whole:
            times = np.int64(weights[i])
        else:
            value *= weights[i]
    top = top_for(float_bits(value) & _MAGNITUDE)
    if top > total[TOP]:
        _raise_top(total, top)
    first, second, third, fourth = limbs_of(value * _FACTORS[total[TOP] - _LOWEST_TOP])
    total[0] += times * first
    total[1] += times * second
    total[2] += times * third
    total[3] += times * fourth


@compiled
def add_to_groups(groups, values, weights, whole, sums):
    """Add numbers times their weights to the sums of their groups.

    groups : (n,) int64, negative for rows that are left out; sums : (n_groups, 5) int64; the others
    as in :func:`add_numbers`
    """
    for i in range(groups.shape[0]):
        if groups[i] >= 0:
            _add_one(values, weights, whole, i, sums[groups[i]])


@compiled
def prefix_sums(values, weights, whole, starts, total, result):
    """Sum of the numbers times their weights before every row, in the rows of its group.

    values, result : (n,) float64; starts : (n_groups + 1,) int64, where the groups begin
    total : (1, 5) int64, working memory; the others as in :func:`add_numbers`
    """
    for group in range(starts.shape[0] - 1):
        for k in range(_LIMBS):
            total[0, k] = 0
        total[0, TOP] = _LOWEST_TOP
        for i in range(starts[group], starts[group + 1]):
            result[i] = rounded_sum(total[0])
            _add_one(values, weights, whole, i, total[0])
