"""Packed gradients of rows in 32 bits.

A packed gradient has room for the sum over all rows, and that of one row needs few of its bits.
In large tables, gradients move from node to node in half of the memory::

    32 bits    gradient | hessian
    64 bits    gradient | hessian | count       what histograms add up
"""

from typing import NamedTuple

import numpy as np
from numba import uint64

from hilboost.backends.compiled import compiled, tiny
from hilboost.backends.logistic import curvature
from hilboost.engine.ops.cpu.fixed_point import round_step, row_bits


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
