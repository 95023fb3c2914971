"""The best split of one column from its histogram.

All sums are integers, so a split does not depend on the order in which rows were added.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import float_bits, keep_apart
from hilboost.engine.ops.cpu.criterion import (
    LeafLimits,
    leaf_score,
    leaf_value,
    score_of_sides,
    score_of_value,
    split_gain,
)
from hilboost.engine.ops.cpu.packing import unpack, weight_of

NO_GAIN = -np.inf
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


class SplitLimits(NamedTuple):
    """Constraints on a split."""

    l2: float  # added to the hessian of a side
    min_count: float  # least sums of weights and of hessians (over all outputs) on either side
    min_hessian: float  # least sums of weights and of hessians (over all outputs) on either side
    min_gain: float
    # for categories: see :mod:`hilboost.engine.ops.cpu.category_splits`
    level_smoothing: float = 0.0
    level_count: float = 0.0  # for categories: see :mod:`hilboost.engine.ops.cpu.category_splits`
    level_l2: float = 0.0  # for categories: see :mod:`hilboost.engine.ops.cpu.category_splits`


class Column(NamedTuple):
    """One column of a node's histogram."""

    histogram: NDArray[np.int64]  # bin ``b`` begins at ``(base + b) * n_channels``
    base: int
    # bins that values can fall into, and all of them: the last one is for missing values
    n_values: int
    n_bins: int
    number: int = 0  # of the column


class ScanScratch(NamedTuple):
    """Memory of one thread."""

    sums: NDArray[np.int64]  # (n_bins,) int64
    places: NDArray[np.int64]  # (n_bins,) int64
    gains: NDArray[np.float64]  # (n_bins,) float64
    left: NDArray[np.int64]  # (n_channels,) int64
    right: NDArray[np.int64]  # (n_channels,) int64
    bins: NDArray[np.int64]  # (3, 512) int64: of the column of a node without a histogram


@compiled
def score(value, packing, l2):
    """The score, hessian and count of one packed sum."""
    gradient, hessian, count = unpack(value, packing)
    return leaf_score(gradient, hessian, l2), hessian, count * packing.count_step


@compiled
def bounded_score(value, weight, packing, limits):
    """The leaf value of a packed sum of rows of a weight, kept in bounds, and its score."""
    gradient, hessian, _ = unpack(value, packing)
    if hessian <= 0.0:
        return leaf_value(0.0, 0.0, weight, limits), 0.0
    step = leaf_value(gradient, hessian, weight, limits)
    return step, score_of_value(step, gradient, hessian, limits.l2)


@inner
def score_in_bounds(left, left_weight, right, right_weight, packing, limits, direction):
    """The score of both sides of a split, ``NO_GAIN`` where their values fall in ``direction``."""
    left_value, left_score = bounded_score(left, left_weight, packing, limits)
    right_value, right_score = bounded_score(right, right_weight, packing, limits)
    return NO_GAIN if direction * (right_value - left_value) < 0.0 else left_score + right_score


@inner
def _bound_gains(n_cuts, n_ordered, total, rules, direction, bounds, scratch):
    """Gains of the same cuts where values have bounds, and must not fall in ``direction``.

    Cuts from ``n_ordered`` on divide missing values from all others, which have no order.
    """
    keep_apart()
    if bounds.shape[0] == 0:
        return
    packing, sums, gains = rules.packing, scratch.sums, scratch.gains
    limits = LeafLimits(rules.limits.l2, bounds[0, 0], bounds[1, 0])
    mask, count_step = packing.count_mask, packing.count_step
    _, parent = bounded_score(total, (total & mask) * count_step, packing, limits)
    for b in range(n_cuts):
        if gains[b] == NO_GAIN:
            continue
        asked, left, right = direction if b < n_ordered else 0, sums[b], total - sums[b]
        n_left, n_right = (left & mask) * count_step, (right & mask) * count_step
        sides = score_in_bounds(left, n_left, right, n_right, packing, limits, asked)
        gains[b] = split_gain(sides, parent, n_left, n_right)


@inner
def fill_gains(counts, n_cuts, total, total_count, rules, scratch):
    """Gains of all cuts of a column from the running sums of its bins, both in ``scratch``.

    Straight-line arithmetic over a short array, which the compiler turns into vector code; a cut
    that is not allowed gets ``NO_GAIN``.  ``counts`` (n_cuts,) is ``None`` where the packed sums
    hold the counts.
    """
    packing, limits, sums, gains = rules.packing, rules.limits, scratch.sums, scratch.gains
    l2, min_count, min_hessian = limits.l2, limits.min_count, limits.min_hessian
    gradient_step, hessian_step = packing.steps[0], packing.steps[1]
    parent, _, _ = score(total, packing, l2)
    # Counts and hessians are multiples of powers of two: their differences are exact.
    _, all_hessian, count = unpack(total, packing)
    all_count = np.float64(count if counts is None else total_count)
    for b in range(n_cuts):
        left = sums[b]
        left_count = np.float64((left & packing.count_mask) if counts is None else counts[b])
        right_count = all_count - left_count
        left_hessian = (
            np.float64((left >> packing.hessian_shift) & packing.hessian_mask) * hessian_step
            + left_count * packing.hessian_of_count
        )
        right_hessian = all_hessian - left_hessian
        left_gradient = np.float64(left >> packing.gradient_shift) * gradient_step
        right_gradient = np.float64((total - left) >> packing.gradient_shift) * gradient_step
        sides = score_of_sides(left_gradient, left_hessian, right_gradient, right_hessian, l2)
        smallest = min(left_count, right_count) * packing.count_step
        allowed = (
            (smallest >= min_count)
            & (smallest > 0.0)
            & (min(left_hessian, right_hessian) >= min_hessian)
            & ((left_hessian + l2) * (right_hessian + l2) > 0.0)
        )
        gain = split_gain(
            sides, parent, left_count * packing.count_step, right_count * packing.count_step
        )
        gains[b] = gain if allowed else NO_GAIN


@inner
def sum_bins(bins, last, left, sums):
    """Running sums from ``left`` on over the first ``last`` bins; how many of these hold rows.

    Bins without rows are squeezed out: small nodes have few others.
    """
    n_cuts = np.int64(0)
    for b in range(last):
        here = bins[b]
        left += here
        sums[n_cuts] = left
        n_cuts += np.int64(here != 0)
    return n_cuts


@inner
def sum_pairs(cells, last, sums, counts):
    """The same for a channel of packed gradients and one of counts, from ``sums[0]`` on."""
    left, left_count, n_cuts = sums[0], counts[0], np.int64(0)
    for b in range(last):
        here, rows = cells[2 * b], cells[2 * b + 1]
        left += here
        left_count += rows
        sums[n_cuts] = left
        counts[n_cuts] = left_count
        n_cuts += np.int64((here | rows) != 0)
    return n_cuts


@inner
def place_of(cut, column):
    """The bin of a cut of a column with one channel: the bin ``cut`` of those that hold rows.

    Without a branch on the bins, whose outcome the processor could not foresee.
    """
    bins = column.histogram[column.base : column.base + column.n_values]
    n_so_far, place = np.int64(0), np.int64(0)
    for b in range(bins.shape[0]):
        n_so_far += np.int64(bins[b] != 0)
        place += np.int64(n_so_far <= cut)
    return place


@tiny
def _rank(gain):
    """A gain as an integer of the same order; NaN is no gain."""
    bits = float_bits(gain + 0.0 if gain == gain else NO_GAIN)
    return bits ^ ((bits >> 63) & _MAGNITUDE)


@inner
def _largest_rank(gains, n_cuts, ranks):
    """The largest rank of a gain, in vector code: records in a loop are hard to foresee.

    ranks : (n_bins,) int64, written
    """
    largest = np.int64(-_MAGNITUDE)
    for i in range(n_cuts):
        ranks[i] = _rank(gains[i])
        largest = max(largest, ranks[i])
    return largest


@tiny
def _first_place(number, numbers):
    """Where a number is found first."""
    place = np.int64(0)
    while numbers[place] != number:
        place += 1
    return place


@compiled
def scan(column, total, rules, direction, bounds, least, scratch):
    """Best split of a column with one channel.

    ``bounds``: (2, 1) float64, least and greatest value below the node, or (0, 0) without bounds:
    ``None`` where no node has any.

    Returns
    -------
    gain, cut, missing_left
        The number of the cut among the bins that hold rows, see :func:`place_of`.  ``gain`` is
        ``NO_GAIN`` where no split is found; the first of equal cuts wins.
    """
    best_rank, best_gain = _rank(least), NO_GAIN
    best_cut, best_left = np.int64(-1), np.int64(0)
    gains = scratch.gains
    n_values = column.n_values
    bins = column.histogram[column.base : column.base + column.n_bins]
    missing = bins[column.n_bins - 1]
    directions = 2 if missing != 0 else 1
    for missing_left in range(directions):
        # Missing against all the rest is one more place to cut.
        last = n_values if (directions == 2 and missing_left == 0) else n_values - 1
        n_cuts = sum_bins(bins, last, missing if missing_left else np.int64(0), scratch.sums)
        n_filled = (n_cuts + 7) & ~7  # whole vectors: a cut with nothing on its right has no gain
        for i in range(n_cuts, n_filled):
            scratch.sums[i] = total
        fill_gains(None, n_filled, total, np.int64(0), rules, scratch)
        if bounds is not None:
            n_ordered = n_cuts - np.int64(last == n_values)
            _bound_gains(n_cuts, n_ordered, total, rules, direction, bounds, scratch)
        # The place is looked for in few columns: most have no better gain than those before.
        largest = _largest_rank(gains, n_filled, scratch.sums)
        if largest > best_rank:
            best_rank, best_left = largest, np.int64(missing_left)
            best_cut = _first_place(largest, scratch.sums)
            best_gain = gains[best_cut]
    if best_cut < 0:
        return NO_GAIN, np.int64(0), np.int64(0)
    return best_gain, best_cut, best_left


@compiled
def scan_pairs(column, totals, rules, least, scratch):
    """Best split of a column of one output whose counts have a channel of their own.

    Arguments as in :func:`scan`, with ``totals`` (2,) int64 and without bounds.  The cut is a bin.
    """
    best_rank, best_gain = _rank(least), NO_GAIN
    best_bin, best_left = np.int64(0), np.int64(0)
    gains, sums, counts, n_values = scratch.gains, scratch.sums, scratch.places, column.n_values
    cells = column.histogram[2 * column.base : 2 * (column.base + column.n_bins)]
    missing = 2 * (column.n_bins - 1)
    directions = 2 if (cells[missing] | cells[missing + 1]) != 0 else 1
    for missing_left in range(directions):
        last = n_values if (directions == 2 and missing_left == 0) else n_values - 1
        sums[0] = cells[missing] if missing_left else np.int64(0)
        counts[0] = cells[missing + 1] if missing_left else np.int64(0)
        n_cuts = sum_pairs(cells, last, sums, counts)
        fill_gains(counts, n_cuts, totals[0], totals[1], rules, scratch)
        largest = _largest_rank(gains, n_cuts, sums)
        if largest > best_rank:
            cut = _first_place(largest, sums)
            best_rank, best_gain, best_left = largest, gains[cut], np.int64(missing_left)
            n_so_far, best_bin = np.int64(0), np.int64(-1)
            while n_so_far <= cut:
                best_bin += 1
                n_so_far += np.int64((cells[2 * best_bin] | cells[2 * best_bin + 1]) != 0)
    return best_gain, best_bin, best_left


@inner
def score_channels(sums, n_outputs, packing, l2):
    """The sums over outputs of scores and hessians, and the count."""
    total_score, total_hessian, count = 0.0, 0.0, 0.0
    for k in range(n_outputs):
        score_k, hessian, count_k = score(sums[k], packing, l2)
        total_score += score_k
        total_hessian += hessian
        if k == 0:
            count = count_k
    if sums.shape[0] > n_outputs:
        count = sums[n_outputs] * packing.count_step
    return total_score, total_hessian, count


@inner
def _parent_score(totals, n_outputs, packing, l2, bounds):
    """The score of a node, within its bounds."""
    if bounds is None or bounds.shape[0] == 0:
        return score_channels(totals, n_outputs, packing, l2)[0]
    total_score, weight = 0.0, weight_of(totals, packing)
    for k in range(n_outputs):
        limits = LeafLimits(l2, bounds[0, k], bounds[1, k])
        total_score += bounded_score(totals[k], weight, packing, limits)[1]
    return total_score


@inner
def _bounded_sides(left, right, n_outputs, packing, l2, direction, bounds):
    """Both sides' scores within bounds, or ``NO_GAIN`` where some output is out of order."""
    keep_apart()
    sides, n_left, n_right = 0.0, weight_of(left, packing), weight_of(right, packing)
    for k in range(n_outputs):
        limits = LeafLimits(l2, bounds[0, k], bounds[1, k])
        sides += score_in_bounds(left[k], n_left, right[k], n_right, packing, limits, direction)
    return sides


@inner
def _same_channels(sums, histogram, cell):
    """Whether the channels of a cell of a histogram are these."""
    same = True
    for c in range(sums.shape[0]):
        same &= histogram[cell + c] == sums[c]
    return same


@tiny
def is_empty(histogram, cell, n_channels):
    """Whether a cell of a histogram holds no rows."""
    empty = True
    for c in range(n_channels):
        empty &= histogram[cell + c] == 0
    return empty


@inner
def move_left(histogram, cell, totals, left, right):
    """Add a bin to the sums of the left side; whether it holds rows."""
    some = False
    for c in range(totals.shape[0]):
        here = histogram[cell + c]
        some |= here != 0
        left[c] += here
        right[c] = totals[c] - left[c]
    return some


@compiled
def scan_channels(column, totals, rules, direction, bounds, scratch):
    """The same with several channels: one per output and, where needed, one for the count.

    ``totals`` (n_channels,) int64; ``bounds`` (2, n_outputs) or (0, 0) float64, or ``None``.  The
    gain is the sum over outputs, and ``min_hessian`` bounds the sum of their hessians.
    """
    keep_apart()
    best_gain, best_bin, best_left = NO_GAIN, 0, 0
    n_channels, n_values, histogram = totals.shape[0], column.n_values, column.histogram
    n_outputs, packing, limits = rules.n_outputs, rules.packing, rules.limits
    l2, min_count, min_hessian = limits.l2, limits.min_count, limits.min_hessian
    left, right = scratch.left, scratch.right
    parent = _parent_score(totals, n_outputs, packing, l2, bounds)
    missing = (column.base + column.n_bins - 1) * n_channels
    directions = 1 if is_empty(histogram, missing, n_channels) else 2
    for missing_left in range(directions):
        for c in range(n_channels):
            left[c] = histogram[missing + c] if missing_left else 0
        last = n_values if (directions == 2 and missing_left == 0) else n_values - 1
        for b in range(last):
            if not move_left(histogram, (column.base + b) * n_channels, totals, left, right):
                continue
            left_score, left_hessian, left_weight = score_channels(left, n_outputs, packing, l2)
            if left_weight < min_count or left_hessian < min_hessian:
                continue
            right_score, right_hessian, right_weight = score_channels(right, n_outputs, packing, l2)
            if right_weight < min_count or right_hessian < min_hessian or right_weight <= 0:
                break
            sides = left_score + right_score
            if bounds is not None and bounds.shape[0] > 0:
                ordered = last < n_values or not _same_channels(right, histogram, missing)
                asked = direction if ordered else 0
                sides = _bounded_sides(left, right, n_outputs, packing, l2, asked, bounds)
            gain = split_gain(sides, parent, left_weight, right_weight)
            if gain > best_gain:
                best_gain, best_bin, best_left = gain, b, missing_left
    return best_gain, best_bin, best_left
