"""Gradients as integers.

Integer sums do not depend on their order, so a histogram is the same on any number of threads or
machines.  The scales are powers of two: a product by one is exact.
"""

import numpy as np
from numba import uint64

from hilboost.backends.compiled import compiled, reordered


# Reassociation lets the sums run in vector registers; they only choose a power of two.
@reordered
def _absolute_sum(values, begin, end):
    total = 0.0
    for i in range(begin, end):
        total += abs(values[i])
    return total


@compiled
def absolute_sums(gradients, hessians, weights, rows, begin, end):
    """Weighted sums of ``|gradient|`` and hessian (largest over the outputs) over some rows.

    gradients, hessians : (n, r) float64; hessians (n, 0) where constant
    weights : (n,) float64, or (0,) for ones
    rows : (m,) uint32, or (0,) for all rows
    Returns ``(sum |g|, sum h, sum w)``.
    """
    r = gradients.shape[1]
    n_hessians = hessians.shape[1]
    if r == 1 and weights.shape[0] == 0 and rows.shape[0] == 0:
        sum_h = _absolute_sum(hessians[:, 0], begin, end) if n_hessians > 0 else 0.0
        return _absolute_sum(gradients[:, 0], begin, end), sum_h, float(end - begin)
    best_g, best_h, total_w = 0.0, 0.0, 0.0
    for k in range(r):
        sum_g, sum_h, total_w = 0.0, 0.0, 0.0
        for i in range(begin, end):
            row = rows[i] if rows.shape[0] > 0 else i
            w = weights[row] if weights.shape[0] > 0 else 1.0
            total_w += w
            sum_g += w * abs(gradients[row, k])
            if n_hessians > 0:
                sum_h += w * hessians[row, k]
        best_g, best_h = max(best_g, sum_g), max(best_h, sum_h)
    return best_g, best_h, total_w


@compiled
def _round(value, row, salt):
    """The nearest integer, or with a salt one of the two neighbors at random, right on average.

    The random number is a counter's: it depends on the row and the salt alone.
    """
    if salt == uint64(0):
        return np.int64(np.rint(value))
    bits = (uint64(row) + salt) * uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> uint64(29))) * uint64(0xBF58476D1CE4E5B9)
    return np.int64(np.floor(value + np.float64(bits >> uint64(40)) * 5.9604644775390625e-08))


@compiled
def pack_one(gradients, hessians, begin, end, layout, factors, salt, ordered):
    """:func:`pack_gradients` for all rows, one output, no weights: straight vector code."""
    hessian_shift, gradient_shift = layout[0], layout[3]
    count = np.int64(1 if layout[2] != 0 else 0)
    if hessians.shape[1] == 0:
        for i in range(begin, end):
            ordered[i] = (np.int64(np.rint(gradients[i, 0] * factors[0])) << gradient_shift) + count
    else:
        for i in range(begin, end):
            ordered[i] = (
                (_round(gradients[i, 0] * factors[0], i, salt) << gradient_shift)
                + (_round(hessians[i, 0] * factors[1], i, salt) << hessian_shift)
                + count
            )


@compiled
def pack_gradients(
    gradients,
    hessians,
    weights,
    rows,
    begin,
    end,
    layout,
    factors,
    whole,
    salt,
    count_channel,
    packed,
    ordered,
):
    """Round and pack gradient, hessian and weight of ``rows[begin:end]``.

    Parameters
    ----------
    gradients, hessians, weights, rows : as in :func:`absolute_sums`
    layout : (4,) int64, see :mod:`hilboost.backends.split`
    factors : (3,) float64, of gradient, hessian and count
    whole : bool
        Weights are whole numbers: they multiply the rounded gradient, so that a row of weight 2
        counts as the row twice, exactly.  Otherwise the product is rounded.
    salt : uint64
        Not 0: round at random (steps are coarse), with this number as the seed.
    count_channel : bool, the count has a channel of its own
    packed : (n, n_channels) int64, written at the rows where there are several channels
    ordered : (m,) int64, written at the positions where there is one
    """
    r = gradients.shape[1]
    n_hessians = hessians.shape[1]
    hessian_shift, gradient_shift = layout[0], layout[3]
    count_here = layout[2] != 0
    for i in range(begin, end):
        row = rows[i] if rows.shape[0] > 0 else i
        w = weights[row] if weights.shape[0] > 0 else 1.0
        count = np.int64(np.rint(w * factors[2]))
        for k in range(r):
            g = gradients[row, k] * factors[0]
            g = w * (np.rint(g) if whole and salt == uint64(0) else g)
            value = _round(g, row, salt) << gradient_shift
            if n_hessians > 0:
                h = hessians[row, k] * factors[1]
                h = w * (np.rint(h) if whole and salt == uint64(0) else h)
                value += _round(h, row, salt) << hessian_shift
            if count_here:
                value += count
            if packed.shape[1] == 1:
                ordered[i] = value
            else:
                packed[row, k] = value
        if count_channel:
            packed[row, r] = count


@compiled
def packed_sums(packed, ordered, rows, totals):
    """Sums of the packed gradients over the learned rows, a channel each."""
    totals[:] = 0
    if packed.shape[1] == 1:
        total = 0
        for i in range(ordered.shape[0]):
            total += ordered[i]
        totals[0] = total
        return
    for i in range(rows.shape[0]):
        for c in range(packed.shape[1]):
            totals[c] += packed[rows[i], c]
