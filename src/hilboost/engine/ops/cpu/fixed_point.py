"""Gradients as integers.

Integer sums do not depend on their order, so a histogram is the same on any number of threads or
machines.  The scales are powers of two: a product by one is exact.

A packed gradient has room for the sum over all rows, and that of one row needs few of its bits.
In large tables, gradients move from node to node in half of the memory::

    32 bits    gradient | hessian
    64 bits    gradient | hessian | count       what histograms add up
"""

import math
from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.exact_sums import CHUNK, add_contiguous, gather
from hilboost.backends.loss_gradients import curvature
from hilboost.backends.random_bits import bits_of
from hilboost.engine.ops.cpu.packing import Packing

_SMALLEST_TOTAL, _SMALLEST_EXPONENT, _LARGEST_EXPONENT = 1e-300, -1074, 500


class WeightedGradients(NamedTuple):
    """Gradients, hessians and weights of the rows to learn from."""

    gradients: NDArray[np.float64]  # (n, r) float64
    hessians: NDArray[np.float64]  # (n, r) float64: (n, 0) where constant
    weights: NDArray[np.float64]  # (n,) float64: (0,) for ones
    rows: NDArray[np.uint32]  # (m,) uint32: (0,) for all rows
    # whether weights are whole numbers, see :func:`~hilboost.backends.exact_sums.is_whole`
    whole: bool
    logistic: bool = False  # whether ``hessians`` are the gradients, see :func:`curvature`


class Rounding(NamedTuple):
    """How numbers become integers."""

    of_gradient: float  # factors; powers of two
    of_hessian: float  # factors; powers of two
    of_count: float  # factors; powers of two
    # weights are whole numbers: they multiply the rounded gradient, so that a row of weight 2
    # counts as the row twice, exactly.  Otherwise the product is rounded.
    whole: bool
    salt: np.uint64  # not 0: round at random (steps are coarse), see :func:`row_bits`
    first_row: int  # number in the whole table of the first row that is here


class Layout(NamedTuple):
    """The part of a layout that depends on the rows and their weights alone."""

    packing: Packing  # with steps of one
    rounding: Rounding  # with factors of one
    # the largest sums of magnitudes in steps, by which each tree finds its factors
    gradient_room: float
    hessian_room: float
    at_random: bool  # whether gradients are rounded at random

    def n_channels(self, r: int) -> int:
        """Channels of ``r`` outputs; the last one counts where no other does."""
        return r + (self.packing.count_mask == 0)

    def width(self, r: int, weighted: bool) -> int:
        """How many channels of a row are stored: all but a last one that is one for each row."""
        is_one = self.packing.count_mask == 0 and self.rounding.of_count == 1.0 and not weighted
        return self.n_channels(r) - is_one


@compiled
def absolute_sums(learned, begin, end, scratch, sums):
    """Add the weighted sums of ``|gradient|``, hessian and weight over some rows to ``sums``.

    learned : WeightedGradients
    scratch : (2, CHUNK) float64
    sums : (2 r + 1, 5) int64; gradients, hessians where there are some, and weights where there are
        some
    """
    gradients, hessians, weights, rows, whole, logistic = learned
    r, here = gradients.shape[1], scratch[0]
    for chunk in range(begin, end, CHUNK):
        last = min(chunk + CHUNK, end)
        weight = weights[:0]
        if weights.shape[0] > 0:
            weight = scratch[1, : last - chunk]
            for i in range(last - chunk):
                row = chunk + i if rows.shape[0] == 0 else np.int64(rows[uint64(chunk + i)])
                weight[i] = weights[uint64(row)]
            add_contiguous(weight, weights[:0], whole, sums[2 * r])
        for part in range(2):
            values, derived = hessians if part else gradients, logistic and part == 1
            for k in range(values.shape[1]):
                gather(values, k, rows, chunk, last, here[: last - chunk])
                total = sums[part * r + k]
                _add_magnitudes(here[: last - chunk], derived, weight, whole, total)


@compiled
def factor_of(total, room):
    """The largest power of two by which a sum of magnitudes stays in its field, up to 2**500.

    total : float, 0 or more; room : float, the largest number that it may become, 1 or more
    """
    exponent = math.floor(math.log2(room) - math.log2(max(total, _SMALLEST_TOTAL)))
    return math.ldexp(1.0, int(max(min(exponent, _LARGEST_EXPONENT), _SMALLEST_EXPONENT)))


@inner
def _add_magnitudes(numbers, logistic, weight, whole, total):
    """Add magnitudes, times their weights, to a sum; the numbers are replaced."""
    for i in range(numbers.shape[0]):
        numbers[i] = abs(curvature(numbers[i], logistic))
    add_contiguous(numbers, weight, whole, total)


@tiny
def row_bits(number, rounding):
    """Random bits of a row, or of an output of it; the same number has the same bits everywhere.

    The last 16 bits of the salt are an offset, which is added to the random numbers of all rows.
    """
    salt = rounding.salt
    if salt == uint64(0):
        return uint64(0)
    offset = salt & uint64(0xFFFF)
    return bits_of(salt | uint64(0xFFFF), number) + (offset << uint64(8)) + (offset << uint64(40))


@tiny
def round_step(value, bits, rounding):
    """The nearest integer, or with a salt one of the two neighbors at random, right on average.

    bits : uint64; the last 24 are used
    """
    if rounding.salt == uint64(0):
        return np.int64(np.rint(value))
    return np.int64(np.floor(value + np.float64(bits & uint64(0xFFFFFF)) * 5.9604644775390625e-08))


@compiled
def pack_one(learned, packing, rounding, begin, end, ordered):
    """:func:`pack_gradients` for all rows, one output, no weights: straight vector code."""
    gradients, hessians, logistic = learned.gradients, learned.hessians, learned.logistic
    hessian_shift, gradient_shift = packing.hessian_shift, packing.gradient_shift
    g_factor, h_factor = rounding.of_gradient, rounding.of_hessian
    count = np.int64(1 if packing.count_mask != 0 else 0)
    if hessians.shape[1] == 0:
        for i in range(begin, end):
            j = uint64(i)
            ordered[j] = (np.int64(np.rint(gradients[j, 0] * g_factor)) << gradient_shift) + count
    else:
        for i in range(begin, end):
            j, bits = uint64(i), row_bits(rounding.first_row + i, rounding)
            gradient = round_step(gradients[j, 0] * g_factor, bits, rounding)
            scaled = curvature(hessians[j, 0], logistic) * h_factor
            hessian = round_step(scaled, bits >> uint64(32), rounding)
            ordered[j] = (gradient << gradient_shift) + (hessian << hessian_shift) + count


@tiny
def _times_weight(value, weight, bits, rounding):
    """A weighted gradient or hessian, already in steps, as an integer."""
    nearest = rounding.whole and rounding.salt == uint64(0)
    return round_step(weight * (np.rint(value) if nearest else value), bits, rounding)


@compiled
def pack_gradients(learned, packing, rounding, begin, end, packed, ordered):
    """Round and pack gradient, hessian and weight of ``rows[begin:end]``.

    ``packed``: (n, width) int64 or None: written at the rows where there are several channels; one
    more than outputs where the count has a channel of its own, and is not one for each row.
    ``ordered``: (m,) int64: written at the positions where there is one channel, and no ``packed``.
    """
    gradients, hessians, weights, rows, _, logistic = learned
    r = gradients.shape[1]
    for i in range(begin, end):
        row = rows[i] if rows.shape[0] > 0 else i
        w = weights[row] if weights.shape[0] > 0 else 1.0
        count = np.int64(np.rint(w * rounding.of_count))
        for k in range(r):
            bits = row_bits((rounding.first_row + np.int64(row)) * r + k, rounding)
            g = gradients[row, k] * rounding.of_gradient
            value = _times_weight(g, w, bits, rounding) << packing.gradient_shift
            if hessians.shape[1] > 0:
                h = curvature(hessians[row, k], logistic) * rounding.of_hessian
                value += _times_weight(h, w, bits >> uint64(32), rounding) << packing.hessian_shift
            if packing.count_mask != 0:
                value += count
            if packed is None:
                ordered[i] = value
            else:
                packed[row, k] = value
        if packed is not None and packed.shape[1] > r:
            packed[row, r] = count


@compiled
def packed_sums(packed, ordered, rows, totals):
    """Sums of the packed gradients over the learned rows, a channel each."""
    for c in range(totals.shape[0]):
        totals[c] = 0
    if packed is None:
        total = 0
        for i in range(ordered.shape[0]):
            total += ordered[i]
        totals[0] = total
        return
    for i in range(rows.shape[0]):
        for c in range(packed.shape[1]):
            totals[c] += packed[rows[i], c]
    if packed.shape[1] < totals.shape[0]:
        totals[packed.shape[1]] = rows.shape[0]


class Compact(NamedTuple):
    """How the 32 bits of a row are read; each row counts once."""

    hessian_bits: int  # lowest bits of the 32; 0 where hessians are constant
    hessian_shift: int  # the lowest bit of either among 64
    gradient_shift: int  # the lowest bit of either among 64


@tiny
def in_64_bits(value, compact):
    """The packed gradient of a row, int64.

    value : int32, or int64 if ``compact`` is None
    """
    if compact is None:
        return value
    hessian = np.int64(value) & ((np.int64(1) << compact.hessian_bits) - 1)
    gradient = np.int64(value) >> compact.hessian_bits
    return (gradient << compact.gradient_shift) + (hessian << compact.hessian_shift) + 1


@compiled
def pack_compact(learned, compact, rounding, begin, end, ordered, result):
    """:func:`~hilboost.engine.ops.cpu.fixed_point.pack_one` in 32 bits.

    ``learned``: one output, all rows, no weights. ``ordered``: (n,) int32. ``result``: (2,) int64:
    the sum of the packed gradients, and a number that is 0 if each one fits.
    """
    gradients, hessians, logistic = learned.gradients, learned.hessians, learned.logistic
    bits, g_factor, h_factor = compact.hessian_bits, rounding.of_gradient, rounding.of_hessian
    g_sum, h_sum, beyond = np.int64(0), np.int64(0), np.int64(0)
    if hessians.shape[1] == 0:
        for i in range(begin, end):
            j = uint64(i)
            gradient = np.int64(np.rint(gradients[j, 0] * g_factor))
            ordered[j] = np.int32(gradient)
            beyond |= gradient ^ np.int64(np.int32(gradient))
            g_sum += gradient
    else:
        for i in range(begin, end):
            j, drawn = uint64(i), row_bits(rounding.first_row + i, rounding)
            gradient = round_step(gradients[j, 0] * g_factor, drawn, rounding)
            scaled = curvature(hessians[j, 0], logistic) * h_factor
            hessian = round_step(scaled, drawn >> uint64(32), rounding)
            both = (gradient << bits) + hessian
            ordered[j] = np.int32(both)
            beyond |= (both ^ np.int64(np.int32(both))) | (hessian >> bits)
            g_sum += gradient
            h_sum += hessian
    total = (g_sum << compact.gradient_shift) + (h_sum << compact.hessian_shift)
    result[0], result[1] = total + (end - begin), beyond
