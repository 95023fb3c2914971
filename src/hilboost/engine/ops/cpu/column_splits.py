"""The best split of one column from its histogram.

All sums are integers, so a split does not depend on the order in which rows were added.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import float_bits, keep_apart
from hilboost.engine.ops.cpu.criterion import (
    Criterion,
    LeafLimits,
    LeafSums,
    leaf_score,
    score_of_sides,
    score_of_value,
    split_gain,
    value_within,
)
from hilboost.engine.ops.cpu.packing import count_bits, unpack, weight_of

NO_GAIN = -np.inf
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


class SplitLimits(NamedTuple):
    """Constraints on a split."""

    criterion: Criterion
    min_count: float  # least sums of weights and of hessians (over all outputs) on either side
    min_hessian: float
    min_gain: float
    # for categories: see :mod:`hilboost.engine.ops.cpu.category_splits`
    level_smoothing: float = 0.0
    level_count: float = 0.0
    level_l2: float = 0.0


class Column(NamedTuple):
    """One column of a node's histogram."""

    histogram: NDArray[np.int64]  # bin ``b`` begins at ``(base + b) * n_channels``
    base: int
    # bins that values can fall into, and all of them: the last one is for missing values
    n_values: int
    n_bins: int
    number: int = 0  # of the column


class Cuts(NamedTuple):
    """Some cuts of a column."""

    missing_left: int  # the side of missing values
    last: int  # so many of the first bins may go left
    beyond: bool  # whether the last cut divides missing values from all others: they have no order
    direction: int  # in which the values of both sides must not fall


class ScanScratch(NamedTuple):
    """Memory of one thread."""

    sums: NDArray[np.int64]  # (n_bins,) int64
    places: NDArray[np.int64]  # (n_bins,) int64
    gains: NDArray[np.float64]  # (n_bins,) float64
    left: NDArray[np.int64]  # (n_channels,) int64
    right: NDArray[np.int64]  # (n_channels,) int64
    bins: NDArray[np.int64]  # (3, 512) int64: of the column of a node without a histogram


@compiled
def bounded_score(value, weight, packing, limits):
    """The leaf value of a packed sum of rows of a weight, kept in bounds, and its score."""
    gradient, hessian, _ = unpack(value, packing)
    if hessian <= 0.0:
        return value_within(LeafSums(0.0, 0.0, weight), limits), 0.0
    sums = LeafSums(gradient, hessian, weight)
    step = value_within(sums, limits)
    return step, score_of_value(step, sums, limits.criterion)


@inner
def score_in_bounds(left, left_weight, right, right_weight, packing, limits, direction):
    """The score of both sides of a split, ``NO_GAIN`` where their values fall in ``direction``."""
    left_value, left_score = bounded_score(left, left_weight, packing, limits)
    right_value, right_score = bounded_score(right, right_weight, packing, limits)
    return NO_GAIN if direction * (right_value - left_value) < 0.0 else left_score + right_score


@inner
def _bound_gains(counts, n_cuts, totals, bounds, rules, cuts, scratch):
    """Gains of the same cuts where values have bounds, and must not fall in a direction."""
    keep_apart()
    packing, sums, gains = rules.packing, scratch.sums, scratch.gains
    limits = LeafLimits(rules.limits.criterion, bounds[0, 0], bounds[1, 0])
    step = packing.count_step
    total, n_all = totals[0], count_bits(totals, packing)
    _, parent = bounded_score(total, n_all * step, packing, limits)
    for b in range(n_cuts):
        if gains[b] == NO_GAIN:
            continue
        left = sums[b]
        n_left = (left & packing.count_mask) if counts is None else counts[b]
        on_left, on_right = n_left * step, (n_all - n_left) * step
        asked = 0 if cuts.beyond and b == n_cuts - 1 else cuts.direction
        sides = score_in_bounds(left, on_left, total - left, on_right, packing, limits, asked)
        gains[b] = split_gain(sides, parent, on_left, on_right, limits.criterion)


@inner
def _fill_gains(counts, n_cuts, totals, rules, scratch):
    """Gains of cuts of a column of one output from the running sums of its bins.

    Straight-line arithmetic over a short array, which the compiler turns into vector code; a cut
    that is not allowed gets ``NO_GAIN``.  ``counts`` (n_cuts,) is ``None`` where the packed sums
    hold the counts.
    """
    packing, limits, sums, gains = rules.packing, rules.limits, scratch.sums, scratch.gains
    criterion, min_count, min_hessian = limits.criterion, limits.min_count, limits.min_hessian
    gradient_step, hessian_step, count_step = packing.steps[0], packing.steps[1], packing.count_step
    total = totals[0]
    # Counts and hessians are multiples of powers of two: their differences are exact.
    all_gradient, all_hessian, count = unpack(total, packing)
    all_count = np.float64(count if counts is None else totals[1])
    parent = leaf_score(LeafSums(all_gradient, all_hessian, all_count * count_step), criterion)
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
        on_left = LeafSums(left_gradient, left_hessian, left_count * count_step)
        on_right = LeafSums(right_gradient, right_hessian, right_count * count_step)
        sides = score_of_sides(on_left, on_right, criterion)
        smallest = min(on_left.weight, on_right.weight)
        least = min(left_hessian, right_hessian)
        allowed = (smallest >= min_count) & (smallest > 0.0) & (least >= min_hessian)
        gain = split_gain(sides, parent, on_left.weight, on_right.weight, criterion)
        gains[b] = gain if allowed else NO_GAIN


@inner
def _sum_bins(cells, cuts, sums, counts):
    """Running sums over the first bins, which begin with missing values on the left; how many.

    Bins without rows are squeezed out: small nodes have few others.  ``counts`` is ``None`` where
    the packed sums hold the counts.
    """
    left, left_count, n_cuts = np.int64(0), np.int64(0), np.int64(0)
    if cuts.missing_left:
        n_cuts = np.int64(1)
        left = sums[0] = cells[cells.shape[0] - (1 if counts is None else 2)]
        if counts is not None:
            left_count = counts[0] = cells[cells.shape[0] - 1]
    for b in range(cuts.last):
        here = cells[b] if counts is None else cells[2 * b]
        held = here
        if counts is not None:
            held |= cells[2 * b + 1]
            left_count += cells[2 * b + 1]
            counts[n_cuts] = left_count
        left += here
        sums[n_cuts] = left
        n_cuts += np.int64(held != 0)
    return n_cuts


@inner
def place_of(cut, column, totals, n_outputs):
    """The bin of a cut: the one that is so many of those that hold rows, from 1 on.

    Without a branch on the bins, whose outcome the processor could not foresee.
    """
    n_channels = np.int64(1) if n_outputs is None else totals.shape[0]
    first, n_so_far, place = column.base * n_channels, np.int64(0), np.int64(0)
    cells = column.histogram[first : first + column.n_values * n_channels]
    for b in range(column.n_values):
        n_so_far += np.int64(not is_empty(cells, b * n_channels, n_channels))
        place += np.int64(n_so_far < cut)
    return place


@tiny
def _whole_vectors(n_cuts):
    """Gains are computed and compared in whole vectors, in which bins without a cut have none."""
    return (n_cuts + 7) & ~7


@inner
def _gains_of_one(cells, totals, counts, bounds, rules, cuts, scratch):
    """Gains of cuts of one output."""
    sums = scratch.sums
    n_cuts = _sum_bins(cells, cuts, sums, counts)
    for b in range(n_cuts, _whole_vectors(n_cuts)):  # nothing is on the right
        sums[b] = totals[0]
        if counts is not None:
            counts[b] = totals[1]
    _fill_gains(counts, _whole_vectors(n_cuts), totals, rules, scratch)
    if bounds is not None and bounds.shape[0] > 0:
        _bound_gains(counts, n_cuts, totals, bounds, rules, cuts, scratch)
    return n_cuts


@inner
def score_channels(sums, weight, n_outputs, packing, criterion):
    """The sums over outputs of scores and hessians."""
    total_score, total_hessian = 0.0, 0.0
    for k in range(n_outputs):
        gradient, hessian, _ = unpack(sums[k], packing)
        total_score += leaf_score(LeafSums(gradient, hessian, weight), criterion)
        total_hessian += hessian
    return total_score, total_hessian


@inner
def _parent_score(totals, n_outputs, packing, criterion, bounds):
    """The score of a node, within its bounds."""
    total_score, weight = 0.0, weight_of(totals, packing)
    if bounds is None or bounds.shape[0] == 0:
        return score_channels(totals, weight, n_outputs, packing, criterion)[0]
    for k in range(n_outputs):
        limits = LeafLimits(criterion, bounds[0, k], bounds[1, k])
        total_score += bounded_score(totals[k], weight, packing, limits)[1]
    return total_score


@inner
def _bounded_sides(left, right, n_outputs, packing, criterion, direction, bounds):
    """Both sides' scores within bounds, or ``NO_GAIN`` where some output is out of order."""
    keep_apart()
    sides, n_left, n_right = 0.0, weight_of(left, packing), weight_of(right, packing)
    for k in range(n_outputs):
        limits = LeafLimits(criterion, bounds[0, k], bounds[1, k])
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


@inner
def _gain_of_cut(left, right, parent, n_outputs, bounds, rules, direction):
    """Gain of a cut of several outputs from the sums of both sides, or ``NO_GAIN``."""
    packing, limits, criterion = rules.packing, rules.limits, rules.limits.criterion
    n_left, n_right = weight_of(left, packing), weight_of(right, packing)
    if min(n_left, n_right) < limits.min_count or min(n_left, n_right) <= 0.0:
        return NO_GAIN
    left_score, left_hessian = score_channels(left, n_left, n_outputs, packing, criterion)
    right_score, right_hessian = score_channels(right, n_right, n_outputs, packing, criterion)
    if min(left_hessian, right_hessian) < limits.min_hessian:
        return NO_GAIN
    sides = left_score + right_score
    if bounds is not None and bounds.shape[0] > 0:
        sides = _bounded_sides(left, right, n_outputs, packing, criterion, direction, bounds)
    return split_gain(sides, parent, n_left, n_right, criterion)


@inner
def _gains_of_outputs(cells, totals, n_outputs, bounds, rules, cuts, scratch):
    """Gains of cuts of several outputs; ``min_hessian`` bounds the sum of their hessians."""
    keep_apart()
    n_channels, left, right, gains = totals.shape[0], scratch.left, scratch.right, scratch.gains
    missing = cells.shape[0] - n_channels
    for c in range(n_channels):
        left[c] = cells[missing + c] if cuts.missing_left else 0
        right[c] = totals[c] - left[c]
    parent = _parent_score(totals, n_outputs, rules.packing, rules.limits.criterion, bounds)
    n_cuts = np.int64(0)
    for b in range(-cuts.missing_left, cuts.last):
        if b < 0 or move_left(cells, b * n_channels, totals, left, right):
            direction = cuts.direction
            if cuts.beyond and _same_channels(right, cells, missing):
                direction = 0
            gains[n_cuts] = _gain_of_cut(left, right, parent, n_outputs, bounds, rules, direction)
            n_cuts += 1
    for b in range(n_cuts, _whole_vectors(n_cuts)):
        gains[b] = NO_GAIN
    return n_cuts


@inner
def find_gains(column, totals, n_outputs, bounds, rules, cuts, scratch):
    """Write the gains of the different cuts of a column: one after each bin that holds rows.

    ``totals`` (n_channels,) int64; ``n_outputs`` of the rules; ``bounds`` (2, n_outputs) float64,
    least and greatest values below the node, or (0, 0) without bounds: ``None`` where no node has
    any.  ``scratch.gains`` is written, and the number of cuts returned; with missing values on the
    left, the first cut is before all bins.
    """
    n_channels = np.int64(1) if n_outputs is None else totals.shape[0]
    first = column.base * n_channels
    cells = column.histogram[first : first + column.n_bins * n_channels]
    if n_outputs is None:
        return _gains_of_one(cells, totals, None, bounds, rules, cuts, scratch)
    if n_outputs == 1:
        return _gains_of_one(cells, totals, scratch.places, bounds, rules, cuts, scratch)
    return _gains_of_outputs(cells, totals, n_outputs, bounds, rules, cuts, scratch)


@inner
def scan(column, totals, n_outputs, bounds, rules, least, scratch):
    """Best split of a column, arguments as in :func:`find_gains`.

    Returns
    -------
    gain, cut, missing_left
        The number of the cut, see :func:`place_of`.  ``gain`` is ``NO_GAIN`` where no split has a
        larger gain than ``least``; the first of equal cuts wins.
    """
    n_channels = np.int64(1) if n_outputs is None else totals.shape[0]
    best_rank, best_gain = _rank(least), NO_GAIN
    best_cut, best_left, direction = np.int64(0), np.int64(0), np.int64(0)
    if bounds is not None and rules.monotonic.shape[0] > 0:
        direction = rules.monotonic[column.number]
    missing = (column.base + column.n_bins - 1) * n_channels
    directions = 1 if is_empty(column.histogram, missing, n_channels) else 2
    for missing_left in range(directions):
        beyond = directions == 2 and missing_left == 0
        last = column.n_values if beyond else column.n_values - 1
        cuts = Cuts(np.int64(missing_left), np.int64(last), beyond, direction)
        n_cuts = find_gains(column, totals, n_outputs, bounds, rules, cuts, scratch)
        # The place is looked for in few columns: most have no better gain than those before.
        largest = _largest_rank(scratch.gains, _whole_vectors(n_cuts), scratch.sums)
        if largest > best_rank:
            best_rank, best_left = largest, np.int64(missing_left)
            place = _first_place(largest, scratch.sums)
            best_gain, best_cut = scratch.gains[place], place + 1 - missing_left
    return best_gain, best_cut, best_left


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
