"""Naive twins of :mod:`hilboost.engine.ops.cpu.category_splits`, in Python numbers and sets."""

import math

import numpy as np
from tests.reference.column_splits import bounded_score, unpack
from tests.reference.histogram import bins_of

from hilboost.engine.ops.reference.criterion import leaf_score, split_gain

NO_GAIN = -math.inf


def numbers(packed, counted, packing):
    gradient, hessian, count = unpack(packed, packing)
    return gradient, hessian, (count + int(counted)) * packing.count_step


def _level(column, b, n_channels, packing):
    begin = (column.base + b) * n_channels
    leaf_of_row = [int(x) for x in column.histogram[begin : begin + n_channels]]
    return leaf_of_row, numbers(leaf_of_row[0], leaf_of_row[1] if n_channels > 1 else 0, packing)


def _sum(leaf_of_row):
    return [sum(channel) for channel in zip(*leaf_of_row, strict=True)]


def _steps(column, totals, rules):
    """The step of every occupied bin."""
    packing, limits = rules.packing, rules.limits
    n_channels = len(totals)
    g, h, count = numbers(totals[0], totals[1] if n_channels > 1 else 0, packing)
    if h <= 0 or count <= 0:
        return {}
    smoothing = limits.level_smoothing * h / count
    mean = g / h
    levels = {b: _level(column, b, n_channels, packing) for b in range(column.n_bins)}
    levels = {b: level for b, level in levels.items() if any(level[0])}
    light = [b for b in levels if levels[b][1][2] < limits.level_count]
    pool = _sum([levels[b][0] for b in light]) if light else [0] * n_channels
    pooled = numbers(pool[0], pool[1] if n_channels > 1 else 0, packing)
    steps = {}
    for b, (_, own) in levels.items():
        gradient, hessian, _ = pooled if b in light else own
        bottom = hessian + smoothing
        steps[b] = (gradient - mean * hessian) / bottom if bottom > 0 else 0.0
    return steps


def order_levels(column, totals, rules, scratch):
    found = _steps(column, totals, rules)
    for place, b in enumerate(sorted(found, key=lambda b: (found[b], b))):
        scratch.places[place], scratch.gains[b] = b, found[b]
    return len(found)


def scan_levels(column, totals, rules, bounds, scratch):
    packing, limits = rules.packing, rules.limits
    found = _steps(column, totals, rules)
    ranked = sorted(found, key=lambda b: (found[b], b))
    n_channels, l2 = len(totals), limits.l2
    whole = [int(x) for x in totals]
    g, h, count = numbers(whole[0], whole[1] if n_channels > 1 else 0, packing)
    bounded = len(bounds) > 0
    between = (bounds[0, 0], bounds[1, 0]) if bounded else ()
    parent = bounded_score(whole[0], packing, l2, *between)[1] if bounded else leaf_score(g, h, l2)
    best = NO_GAIN, 0
    for place in range(len(ranked) - 1):
        if found[ranked[place]] == found[ranked[place + 1]]:
            continue
        left = _sum([_level(column, b, n_channels, packing)[0] for b in ranked[: place + 1]])
        left_g, left_h, left_c = numbers(left[0], left[1] if n_channels > 1 else 0, packing)
        right_h, right_c = h - left_h, count - left_c
        if min(left_c, right_c) < limits.min_count or min(left_c, right_c) <= 0:
            continue
        if min(left_h, right_h) < limits.min_hessian:
            continue
        more = l2 + limits.level_l2
        sides = leaf_score(left_g, left_h, more) + leaf_score(g - left_g, right_h, more)
        if bounded:
            sides = sum(
                bounded_score(part, packing, more, *between)[1]
                for part in (left[0], whole[0] - left[0])
            )
        gain = split_gain(sides, parent, left_c, right_c)
        if gain > best[0]:
            best = gain, place
    return best


def settle_levels(column, totals, rules, position, scratch, left_totals, left_set):
    packing = rules.packing
    found = _steps(column, totals, rules)
    ranked = sorted(found, key=lambda b: (found[b], b))
    n_channels = len(totals)
    left = ranked[: position + 1]
    left_totals[:] = _sum([_level(column, b, n_channels, packing)[0] for b in left])
    counts = [
        numbers(x[0], x[1] if n_channels > 1 else 0, packing)[2] for x in (left_totals, totals)
    ]
    heavier = 2 * counts[0] >= counts[1]
    missing = column.n_bins - 1
    goes_left = {b: (b in left) if b in found and b != missing else heavier for b in range(256)}
    for word in range(4):
        bits = sum(1 << bit for bit in range(64) if goes_left[64 * word + bit])
        left_set[word] = np.uint64(bits)
    return int((missing in left) if missing in found else heavier)


def level_goes_left(left_sets, number, value):
    code = int(value) if 0 <= value < 255 else 255
    return bool(int(left_sets[number][code // 64]) >> (code % 64) & 1)


def flag_level_rows(table, column, left_set, missing_left, rows, flags):
    bins, missing_bin = bins_of(table.words, column), table.n_bins - 1
    for i, row in enumerate(rows):
        b = int(bins[row])
        flags[i] = missing_left if b == missing_bin else level_goes_left([left_set], 0, b)
    return int(flags.sum())
