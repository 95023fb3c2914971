"""Naive twins of :mod:`hilboost.engine.ops.cpu.fixed_point`."""

from math import log2

import numpy as np
from tests.reference.exact_sums import add_values

from hilboost.engine.ops.reference import curvature


def absolute_sums(learned, begin, end, scratch, sums):
    gradients, hessians, weights, rows, whole, logistic = learned
    hessians = curvature(hessians, logistic)
    r = gradients.shape[1]
    chosen = rows[begin:end] if len(rows) else np.arange(begin, end)
    w = weights[chosen] if len(weights) else weights
    add_values(np.abs(gradients[chosen]), w, whole, sums[:r])
    add_values(hessians[chosen], w, whole, sums[r : r + hessians.shape[1]])
    if len(weights):
        add_values(w[:, None], w[:0], whole, sums[2 * r :])


def factor_of(total, room):
    exponent = np.floor(log2(room) - log2(max(total, 1e-300)))
    return 2.0 ** min(exponent, 500.0)


def in_64_bits(value, compact):
    """The packed gradient of a row, by division with remainder."""
    if compact is None:
        return int(value)
    gradient, hessian = divmod(int(value), 2**compact.hessian_bits)
    return (gradient << compact.gradient_shift) + (hessian << compact.hessian_shift) + 1


def pack_compact(learned, compact, rounding, begin, end, ordered, result):
    """To the nearest integer: not with a salt."""
    result[:] = 0
    for i in range(begin, end):
        gradient, hessian = int(np.rint(learned.gradients[i, 0] * rounding.of_gradient)), 0
        if learned.hessians.shape[1]:
            hessian = int(np.rint(learned.hessians[i, 0] * rounding.of_hessian))
        value = (gradient << compact.hessian_bits) + hessian
        if hessian >= 2**compact.hessian_bits or not -(2**31) <= value < 2**31:
            result[1] = 1
            continue
        ordered[i] = value
        result[0] += in_64_bits(value, compact)
