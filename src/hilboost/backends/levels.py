"""Splits on the levels of a category: which go left, found from the histogram of one column.

The levels of a node are sorted by their smoothed Newton steps, and the best cut of this order is
taken: without smoothing, no other set of levels has a larger gain (Fisher 1958)::

    level        a    b    c    d    e          f: no rows here
    step        .3  -.5   .9   .1  -.4
    order        b    e  | d    a    c          left = {b, e}, f follows the heavier side

Levels of too little weight share one step, that of all of them together, and are never divided:
cuts fall between different steps only.  So the names of levels change nothing.
"""

import numpy as np
from numba import int64, uint8, uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.split import (
    COUNT,
    COUNT_MASK,
    GRADIENT,
    GRADIENT_SHIFT,
    HESSIAN,
    HESSIAN_MASK,
    HESSIAN_OF_COUNT,
    HESSIAN_SHIFT,
    L2,
    MIN_COUNT,
    MIN_HESSIAN,
    NO_GAIN,
    bounded_score,
)
from hilboost.backends.sync import keep_apart, prefetch

# limits (float64), behind those of :mod:`hilboost.backends.split`
LEVEL_SMOOTHING, LEVEL_COUNT, LEVEL_L2 = 4, 5, 6
UNSEEN = 255
"""The bit of a set that stands for levels which the fit did not see."""
MAX_LEVELS = UNSEEN
"""A byte a leaf: 255 levels, and one value for missing."""
SET_WORDS = 4

_AHEAD = 32


@compiled
def numbers(packed, counted, layout, scales):
    """``(G, H, count)`` of a packed sum; ``counted`` is that of the count's channel, or 0."""
    count = packed & layout[COUNT_MASK]
    hessian = ((packed >> layout[HESSIAN_SHIFT]) & layout[HESSIAN_MASK]) * scales[
        HESSIAN
    ] + count * scales[HESSIAN_OF_COUNT]
    gradient = (packed >> layout[GRADIENT_SHIFT]) * scales[GRADIENT]
    return gradient, hessian, (count + counted) * scales[COUNT]


@compiled
def _step(gradient, hessian, mean, smoothing):
    """A level's Newton step beyond the node's, shrunk as if ``smoothing`` lay on the node's."""
    return (gradient - mean * hessian) / (hessian + smoothing)


@compiled
def _sort(order, size, steps):
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


@compiled
def order_levels(histogram, base, n_bins, totals, layout, scales, limits, order, steps):
    """Sort the occupied bins of a column, the one for missing values among them.

    Parameters
    ----------
    histogram : flat int64; the column's bins start at ``base``
    n_bins : int
    totals : (n_channels,) int64, of the node: one output, and perhaps a channel for the count
    layout, scales, limits : see :mod:`hilboost.backends.split`
    order : (n_bins,) int64, written
    steps : (n_bins,) float64, written at occupied bins

    Returns
    -------
    int
        How many bins are occupied.
    """
    keep_apart()
    n_channels = totals.shape[0]
    of_count = n_channels - 1
    whole = totals[of_count] if of_count > 0 else np.int64(0)
    gradient, hessian, count = numbers(totals[0], whole, layout, scales)
    if hessian <= 0.0 or count <= 0.0:
        return np.int64(0)
    mean = gradient / hessian
    smoothing = limits[LEVEL_SMOOTHING] * hessian / count
    size = np.int64(0)
    light_packed, light_counted = np.int64(0), np.int64(0)
    for b in range(n_bins):
        leaf = (base + b) * n_channels
        packed = histogram[leaf]
        counted = histogram[leaf + of_count] if of_count > 0 else np.int64(0)
        if packed == 0 and counted == 0:
            continue
        order[size] = b
        size += 1
        g, h, c = numbers(packed, counted, layout, scales)
        if c < limits[LEVEL_COUNT]:
            steps[b] = np.inf
            light_packed += packed
            light_counted += counted
        else:
            steps[b] = _step(g, h, mean, smoothing) if h + smoothing > 0.0 else 0.0
    g, h, c = numbers(light_packed, light_counted, layout, scales)
    light = _step(g, h, mean, smoothing) if h + smoothing > 0.0 else 0.0
    for i in range(size):
        if steps[order[i]] == np.inf:
            steps[order[i]] = light
    _sort(order, size, steps)
    return size


@compiled
def _score(gradient, hessian, l2):
    return gradient * gradient / (hessian + l2) if hessian > 0.0 else 0.0


@compiled
def scan_levels(
    histogram, base, n_bins, totals, layout, scales, limits, bounds, scratch, order, steps
):
    """Best cut of the sorted levels of a column, for one output.

    Parameters
    ----------
    bounds : (2, 1) float64, least and greatest value below the node, or (0, 0) without bounds
    scratch : (n_channels,) int64
    others : as in :func:`order_levels`

    Returns
    -------
    gain, position
        Levels up to this place of the order go left; ``NO_GAIN`` where no cut is allowed, the first
        of equal cuts wins.

    Notes
    -----
    ``limits[LEVEL_L2]`` is added to the hessian of both sides: the best of many sets looks better
    than it is.
    """
    keep_apart()
    n_channels = totals.shape[0]
    of_count = n_channels - 1
    size = order_levels(histogram, base, n_bins, totals, layout, scales, limits, order, steps)
    best_gain, best_position = NO_GAIN, np.int64(0)
    whole = totals[of_count] if of_count > 0 else np.int64(0)
    gradient, hessian, count = numbers(totals[0], whole, layout, scales)
    l2 = limits[L2] + limits[LEVEL_L2]
    bounded = bounds.shape[0] > 0
    if bounded:
        _, parent = bounded_score(totals[0], layout, scales, limits[L2], bounds[0, 0], bounds[1, 0])
    else:
        parent = _score(gradient, hessian, limits[L2])
    for c in range(n_channels):
        scratch[c] = 0
    for i in range(size - 1):
        for c in range(n_channels):
            scratch[c] += histogram[(base + order[i]) * n_channels + c]
        if steps[order[i]] == steps[order[i + 1]]:
            continue
        counted = scratch[of_count] if of_count > 0 else np.int64(0)
        g, h, n_left = numbers(scratch[0], counted, layout, scales)
        if n_left < limits[MIN_COUNT] or n_left <= 0.0 or h < limits[MIN_HESSIAN]:
            continue
        n_right, h_right = count - n_left, hessian - h
        if n_right < limits[MIN_COUNT] or n_right <= 0.0 or h_right < limits[MIN_HESSIAN]:
            break
        if bounded:
            _, left = bounded_score(scratch[0], layout, scales, l2, bounds[0, 0], bounds[1, 0])
            _, right = bounded_score(
                totals[0] - scratch[0], layout, scales, l2, bounds[0, 0], bounds[1, 0]
            )
            gain = left + right - parent
        else:
            gain = _score(g, h, l2) + _score(gradient - g, h_right, l2) - parent
        if gain > best_gain:
            best_gain, best_position = gain, np.int64(i)
    return best_gain, best_position


@compiled
def settle_levels(
    histogram,
    base,
    n_bins,
    totals,
    layout,
    scales,
    limits,
    position,
    order,
    steps,
    left_totals,
    left_set,
):
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
    n_channels = totals.shape[0]
    of_count = n_channels - 1
    size = order_levels(histogram, base, n_bins, totals, layout, scales, limits, order, steps)
    for c in range(n_channels):
        left_totals[c] = 0
        for i in range(position + 1):
            left_totals[c] += histogram[(base + order[i]) * n_channels + c]
    counted = left_totals[of_count] if of_count > 0 else np.int64(0)
    whole = totals[of_count] if of_count > 0 else np.int64(0)
    _, _, n_left = numbers(left_totals[0], counted, layout, scales)
    _, _, count = numbers(totals[0], whole, layout, scales)
    heavier = np.int64(2.0 * n_left >= count)
    every = uint64(0) - uint64(heavier)
    for word in range(SET_WORDS):
        left_set[word] = every
    missing_left = heavier
    for i in range(size):
        b = order[i]
        goes_left = np.int64(i <= position)
        if b == n_bins - 1:
            missing_left = goes_left
            continue
        bit = uint64(1) << uint64(b & 63)
        if goes_left:
            left_set[b >> 6] |= bit
        else:
            left_set[b >> 6] &= ~bit
    return missing_left


@compiled
def flag_level_rows(bins, n, column, left_set, missing_bin, missing_left, rows, begin, end, flags):
    """Mark the rows whose level goes left and count them.

    bins : (n_words * n * 8,) uint8; left_set : (SET_WORDS,) uint64; rows : (m,) uint32
    flags : (m,) uint8, written in ``[begin, end)``
    """
    keep_apart()
    offset = uint64((column // 8) * n * 8 + column % 8)
    missing = uint8(missing_bin)
    other = uint64(missing_left)
    count = 0
    for i in range(begin, end):
        j = uint64(i)
        if i + _AHEAD < end:
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
