"""Naive twins of :mod:`hilboost.engine.ops.cpu.fixed_point`."""

from math import log2

import numpy as np
from tests.reference.exact_sums import add_values

from hilboost.engine.ops.reference import curvature


def _chosen(weights, rows, begin, end):
    chosen = rows[begin:end] if len(rows) else np.arange(begin, end)
    return chosen, weights[chosen] if len(weights) else np.ones(len(chosen))


def absolute_sums(learned, begin, end, whole, scratch, sums):
    gradients, hessians, weights, rows, logistic = learned
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


def pack_gradients(learned, packing, rounding, begin, end, packed, ordered):
    """To the nearest integer: not with a salt."""
    gradients, hessians, weights, rows, logistic = learned
    hessians = curvature(hessians, logistic)
    chosen, w = _chosen(weights, rows, begin, end)
    n_outputs = gradients.shape[1]

    def rounded(value, weight, factor):
        scaled = value * factor
        return int(np.rint(weight * (np.rint(scaled) if rounding.whole else scaled)))

    for i, (row, weight) in enumerate(zip(chosen, w, strict=True), start=begin):
        count = int(np.rint(weight * rounding.of_count))
        for k in range(n_outputs):
            value = rounded(gradients[row, k], weight, rounding.of_gradient)
            value <<= packing.gradient_shift
            if hessians.shape[1]:
                hessian = rounded(hessians[row, k], weight, rounding.of_hessian)
                value += hessian << packing.hessian_shift
            if packing.count_mask:
                value += count
            if packed is None:
                ordered[i] = value
            else:
                packed[row, k] = value
        if packed is not None and packed.shape[1] > n_outputs:
            packed[row, n_outputs] = count


def pack_one(learned, packing, rounding, begin, end, ordered):
    pack_gradients(learned, packing, rounding, begin, end, None, ordered)


def packed_sums(packed, ordered, rows, totals):
    totals[:] = len(rows)
    chosen = ordered[:, None] if packed is None else packed[rows]
    totals[: chosen.shape[1]] = chosen.sum(axis=0)


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
