"""Splits on the levels of a category: which go left, found from the histogram of one column.

The levels of a node are sorted by their smoothed Newton steps, and the best cut of this order is
taken: without smoothing, no other set of levels has a larger gain (Fisher 1958)::

    level        a    b    c    d    e          f: no rows here
    step        .3  -.5   .9   .1  -.4
    order        b    e  | d    a    c          left = {b, e}, f follows the heavier side

Levels of too little weight share one step, that of all of them together, and are never divided:
cuts fall between different steps only.  So the names of levels change nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart, prefetch
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.column_splits import NO_GAIN, bounded_score, is_empty, score_in_bounds
from hilboost.engine.ops.cpu.criterion import (
    LeafLimits,
    LeafSums,
    leaf_score,
    leaf_value,
    split_gain,
    with_l2,
)
from hilboost.engine.ops.cpu.packing import unpack, weight_of

UNSEEN = 255
"""The bit of a set that stands for levels which the fit did not see."""
MAX_LEVELS = UNSEEN
"""Bins are bytes: 255 levels, and one value for missing."""
SET_WORDS = 4

_AHEAD = 32


class CategorySplits(NamedTuple):
    """Columns of categories, and the splits on them."""

    is_category: NDArray[np.uint8]  # (d,) uint8: 1 at columns of categories; (0,) without any
    # (n_nodes, SET_WORDS) uint64: written at nodes that such a column splits; (0, SET_WORDS)
    # without any
    left_sets: NDArray[np.uint64]


@inner
def numbers(sums, packing):
    """Unpack the sums (n_channels,) of one output."""
    gradient, hessian, _ = unpack(sums[0], packing)
    return LeafSums(gradient, hessian, weight_of(sums, packing))


@inner
def _step(sums, mean, smoothed):
    """A level's Newton step beyond the node's, shrunk as if some rows more lay on the node's."""
    beyond = LeafSums(sums.gradient - mean * sums.hessian, sums.hessian, sums.weight)
    return leaf_value(beyond, smoothed)


@inner
def sort_by_step(order, size, steps):
    """Sort ``order[:size]`` by step, then by number (Shell's method, nothing allocated)."""
    gap = size // 2
    while gap > 0:
        for i in range(gap, size):
            here = order[i]
            j = i
            while j >= gap:
                other = order[j - gap]
                if steps[other] < steps[here] or (steps[other] == steps[here] and other < here):
                    break
                order[j] = other
                j -= gap
            order[j] = here
        gap //= 2


@inner
def _add_cell(histogram, cell, sums):
    for c in range(sums.shape[0]):
        sums[c] += histogram[cell + c]


@inner
def order_levels(column, totals, rules, scratch):  # how many bins are occupied
    """Sort the occupied bins of a column, the one for missing values among them.

    ``totals``: (n_channels,) int64, of the node: one output, and perhaps a channel for the count.
    ``rules.limits``: steps are shrunk as if ``level_smoothing`` rows more lay on the node's; levels
    of less weight than ``level_count`` share one step.
    """
    keep_apart()
    packing, limits = rules.packing, rules.limits
    order, steps = scratch.places, scratch.gains
    n_channels, histogram = totals.shape[0], column.histogram
    gradient, hessian, count = numbers(totals, packing)
    if hessian <= 0.0 or count <= 0.0:
        return np.int64(0)
    mean = gradient / hessian
    smoothed = with_l2(limits.criterion, limits.level_smoothing * hessian / count)
    size, light_levels = np.int64(0), scratch.right
    light_levels[:] = 0
    for b in range(column.n_bins):
        cell = (column.base + b) * n_channels
        if is_empty(histogram, cell, n_channels):
            continue
        order[size] = b
        size += 1
        of_level = numbers(histogram[cell : cell + n_channels], packing)
        if of_level.weight < limits.level_count:
            steps[b] = np.inf
            _add_cell(histogram, cell, light_levels)
        else:
            steps[b] = _step(of_level, mean, smoothed)
    light = _step(numbers(light_levels, packing), mean, smoothed)
    for i in range(size):
        if steps[order[i]] == np.inf:
            steps[order[i]] = light
    sort_by_step(order, size, steps)
    return size


@inner
def scan_levels(column, totals, rules, bounds, scratch):
    """Best cut of the sorted levels of a column, for one output.

    Parameters
    ----------
    bounds : (2, 1) float64, least and greatest value below the node, or (0, 0) without bounds
    others : as in :func:`order_levels`

    Returns
    -------
    gain, position
        Levels up to this place of the order go left; ``NO_GAIN`` where no cut is allowed, the first
        of equal cuts wins.

    Notes
    -----
    ``limits.level_l2`` is added to the hessian of both sides: the best of many sets looks better
    than it is.
    """
    keep_apart()
    packing, limits = rules.packing, rules.limits
    left, order, steps = scratch.left, scratch.places, scratch.gains
    size = order_levels(column, totals, rules, scratch)
    best_gain, best_position = NO_GAIN, np.int64(0)
    of_node, bounded = numbers(totals, packing), bounds.shape[0] > 0
    criterion = with_l2(limits.criterion, limits.criterion.l2 + limits.level_l2)
    within, parent = LeafLimits(criterion, -np.inf, np.inf), leaf_score(of_node, limits.criterion)
    if bounded:
        within = LeafLimits(criterion, bounds[0, 0], bounds[1, 0])
        own = LeafLimits(limits.criterion, within.lower, within.upper)
        _, parent = bounded_score(totals[0], of_node.weight, packing, own)
    left[:] = 0
    for i in range(size - 1):
        _add_cell(column.histogram, (column.base + order[i]) * totals.shape[0], left)
        if steps[order[i]] == steps[order[i + 1]]:
            continue
        a = numbers(left, packing)
        if a.weight < limits.min_count or a.weight <= 0.0 or a.hessian < limits.min_hessian:
            continue
        c = LeafSums(
            of_node.gradient - a.gradient, of_node.hessian - a.hessian, of_node.weight - a.weight
        )
        if c.weight < limits.min_count or c.weight <= 0.0 or c.hessian < limits.min_hessian:
            break
        sides = leaf_score(a, criterion) + leaf_score(c, criterion)
        if bounded:
            right = totals[0] - left[0]
            sides = score_in_bounds(left[0], a.weight, right, c.weight, packing, within, 0)
        gain = split_gain(sides, parent, a.weight, c.weight, criterion)
        if gain > best_gain:
            best_gain, best_position = gain, np.int64(i)
    return best_gain, best_position


@inner
def settle_levels(column, totals, rules, position, scratch, left_totals, left_set):
    """Note which levels go left, and the sums of their side.

    Parameters
    ----------
    position : int, as :func:`scan_levels` found it
    left_totals : (n_channels,) int64, written
    left_set : (SET_WORDS,) uint64, written: a bit a level, those without rows here and
        :data:`UNSEEN` on the heavier side
    others : as in :func:`order_levels`

    Returns
    -------
    int
        1 where missing values go left.
    """
    keep_apart()
    order, packing = scratch.places, rules.packing
    size = order_levels(column, totals, rules, scratch)
    left_totals[:] = 0
    for i in range(position + 1):
        _add_cell(column.histogram, (column.base + order[i]) * totals.shape[0], left_totals)
    heavier = np.int64(2.0 * weight_of(left_totals, packing) >= weight_of(totals, packing))
    left_set[:] = ~uint64(0) if heavier else uint64(0)
    missing_left = heavier
    for i in range(size):
        b = order[i]
        goes_left = np.int64(i <= position)
        if b == column.n_bins - 1:
            missing_left = goes_left
            continue
        bit = uint64(1) << uint64(b & 63)
        if goes_left:
            left_set[b >> 6] |= bit
        else:
            left_set[b >> 6] &= ~bit
    return missing_left


@compiled
def flag_level_rows(table, column, left_set, missing_left, rows, flags):
    """Mark the rows whose level goes left and count them.

    left_set : (SET_WORDS,) uint64; rows : (m,) uint32; flags : (m,) uint8, written
    """
    keep_apart()
    bins, offset = table.flat, offset_of(table, column)
    missing = uint8(table.n_bins - 1)
    other = uint64(missing_left)
    count = 0
    for i in range(rows.shape[0]):
        j = uint64(i)
        if i + _AHEAD < rows.shape[0]:
            prefetch(bins, int64(offset) + 8 * int64(rows[i + _AHEAD]))
        b = bins[offset + uint64(8) * uint64(rows[j])]
        left = (left_set[b >> 6] >> uint64(b & 63)) & uint64(1)
        if b == missing:
            left = other
        flags[j] = uint8(left)
        count += int64(left)
    return count


@compiled
def level_goes_left(left_sets, number, value):
    """Whether the level ``value`` (a code, or anything else for one not seen) is in a set.

    left_sets : (n_sets, SET_WORDS) uint64
    """
    code = np.int64(value) if 0.0 <= value < UNSEEN else np.int64(UNSEEN)
    return (left_sets[number, code >> 6] >> uint64(code & 63)) & uint64(1) != uint64(0)
