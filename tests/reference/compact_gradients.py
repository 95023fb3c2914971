"""Naive twins of :mod:`hilboost.engine.ops.cpu.compact_gradients`."""

import numpy as np


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
