"""Naive twins of :mod:`hilboost.engine.ops.cpu.column_splits`: every cut, in Python integers."""

import math

import numpy as np

from hilboost.engine.ops.reference.criterion import (
    leaf_score,
    leaf_value,
    score_of_sides,
    score_of_value,
    split_gain,
)

NO_GAIN = -math.inf


def unpack(value, packing):
    """Gradient, hessian and count of a packed sum."""
    value = int(value)
    count = value & packing.count_mask
    hessian = ((value >> packing.hessian_shift) & packing.hessian_mask) * packing.hessian_step
    hessian += count * packing.hessian_of_count
    return (value >> packing.gradient_shift) * packing.gradient_step, hessian, count


def score(value, packing, l2):
    gradient, hessian, count = unpack(value, packing)
    return leaf_score(gradient, hessian, l2), hessian, count * packing.count_step


def bounded_score(value, packing, l2, lower, upper):
    gradient, hessian, _ = unpack(value, packing)
    if hessian <= 0:
        return min(max(0.0, lower), upper), 0.0
    step = min(max(leaf_value(gradient, hessian, l2), lower), upper)
    return step, score_of_value(step, gradient, hessian, l2)


def _gain_in_bounds(left, right, whole, counts, rules, direction, bounds):
    """By the outputs' values on both sides, which must not be out of order."""
    packing, l2, gain, parent = rules.packing, rules.limits.l2, 0.0, 0.0
    for k, (lower, upper) in enumerate(zip(*bounds, strict=True)):
        scores = [
            bounded_score(sums[k], packing, l2, lower, upper) for sums in (left, right, whole)
        ]
        if direction * (scores[1][0] - scores[0][0]) < 0:
            return NO_GAIN
        gain += scores[0][1] + scores[1][1]
        parent += scores[2][1]
    return split_gain(gain, parent, *counts)


def cuts(column, n_channels):
    """(bin, missing_left, sums of the left side) of every cut, in the order of preference."""
    missing = column.n_bins - 1
    bins = [
        [int(column.histogram[(column.base + b) * n_channels + c]) for c in range(n_channels)]
        for b in range(column.n_bins)
    ]
    some_missing = any(bins[missing])
    for missing_left in (0, 1) if some_missing else (0,):
        last = column.n_values if some_missing and not missing_left else column.n_values - 1
        for cut in range(last):
            if any(bins[cut]):
                members = bins[: cut + 1] + ([bins[missing]] if missing_left else [])
                yield cut, missing_left, [sum(channel) for channel in zip(*members, strict=True)]


def _is_missing_against_all(right, column):
    begin = (column.base + column.n_bins - 1) * len(right)
    return right == column.histogram[begin : begin + len(right)].tolist()


def _score_of_cut(left, right, limits, count):
    """From gradient and hessian of both sides, and the smaller count."""
    if count < limits.min_count or count <= 0 or min(left[1], right[1]) < limits.min_hessian:
        return NO_GAIN
    return score_of_sides(left, right, limits.l2)


def scan(column, total, rules, direction, bounds, least, scratch):
    packing, limits = rules.packing, rules.limits
    parent = score(total, packing, limits.l2)[0]
    best = NO_GAIN, 0, 0
    for cut, missing_left, (left,) in cuts(column, 1):
        *of_left, left_c = unpack(left, packing)
        *of_right, right_c = unpack(int(total) - left, packing)
        counts = left_c * packing.count_step, right_c * packing.count_step
        sides = _score_of_cut(of_left, of_right, limits, min(counts))
        if sides == NO_GAIN:
            continue
        gain = split_gain(sides, parent, *counts)
        if bounds is not None and len(bounds):
            right = [int(total) - left]
            asked = 0 if _is_missing_against_all(right, column) else direction
            gain = _gain_in_bounds([left], right, [total], counts, rules, asked, bounds)
        if gain > max(best[0], least):
            bins = column.histogram[column.base : column.base + cut]
            best = gain, np.count_nonzero(bins), missing_left
    return best


def scan_pairs(column, totals, rules, least, scratch):
    packing, limits = rules.packing, rules.limits
    total, total_count = (int(t) for t in totals)
    parent = score(total, packing, limits.l2)[0]
    best = NO_GAIN, 0, 0
    for cut, missing_left, (left, left_c) in cuts(column, 2):
        of_left, of_right = (unpack(side, packing)[:2] for side in (left, total - left))
        counts = left_c * packing.count_step, (total_count - left_c) * packing.count_step
        sides = _score_of_cut(of_left, of_right, limits, min(counts))
        if sides == NO_GAIN:
            continue
        gain = split_gain(sides, parent, *counts)
        if gain > max(best[0], least):
            best = gain, cut, missing_left
    return best


def _score_channels(sums, n_outputs, packing, l2):
    parts = [score(value, packing, l2) for value in sums[:n_outputs]]
    count = sums[n_outputs] * packing.count_step if len(sums) > n_outputs else parts[0][2]
    return sum(p[0] for p in parts), sum(p[1] for p in parts), count


def scan_channels(column, totals, rules, direction, bounds, scratch):
    n_outputs, packing, limits = rules.n_outputs, rules.packing, rules.limits
    whole = [int(t) for t in totals]
    parent = _score_channels(whole, n_outputs, packing, limits.l2)[0]
    best = NO_GAIN, 0, 0
    for cut, missing_left, left in cuts(column, len(whole)):
        right = [t - x for t, x in zip(whole, left, strict=True)]
        left_score, left_h, left_c = _score_channels(left, n_outputs, packing, limits.l2)
        right_score, right_h, right_c = _score_channels(right, n_outputs, packing, limits.l2)
        if min(left_c, right_c) < limits.min_count or right_c <= 0:
            continue
        if min(left_h, right_h) < limits.min_hessian:
            continue
        gain = split_gain(left_score + right_score, parent, left_c, right_c)
        if bounds is not None and len(bounds):
            asked = 0 if _is_missing_against_all(right, column) else direction
            counts = left_c, right_c
            gain = _gain_in_bounds(left, right, whole, counts, rules, asked, bounds)
        if gain > best[0]:
            best = gain, cut, missing_left
    return best
