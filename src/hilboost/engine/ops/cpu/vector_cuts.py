"""Splits of one column for a tree with vector leaves: exact sums, no histograms.

A histogram of ``r`` outputs holds ``bins x r`` sums a column, which few rows never fill.  Here the
rows of a node are sorted by bin, one column at a time, and one running sum of ``r`` numbers passes
over them; for randomized trees one pass a drawn split is enough.  A split is a set of bins that go
left, that of missing values among them.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny
from hilboost.backends.intrinsics import keep_apart, prefetch
from hilboost.backends.sums_in_eights import squares
from hilboost.engine.ops.cpu.binning import BinTable, offset_of
from hilboost.engine.ops.cpu.column_splits import NO_GAIN

_AHEAD = 8
ALMOST = 1.0 - 1e-6  # of a weight that others must reach: sums of fractions are rounded


class VectorGradients(NamedTuple):
    """The gradients to learn from, about their mean."""

    values: NDArray[np.float64]  # (n, k) float64: multiplied by the weights
    weights: NDArray[np.float64]  # (n,) float64: (0,) for ones
    squares: NDArray[np.float64]  # (n,) float64: weight times squared length of each row's gradient


class NodeRows(NamedTuple):
    """The rows of a node, and sums over them."""

    rows: NDArray[np.uint32]  # (m,) uint32: the node's are those in ``[begin, end)``
    begin: int
    end: int
    totals: NDArray[np.float64]  # (k,) float64: sum of the gradients
    weight: float


class NodeColumn(NamedTuple):
    """A column of a node, whose rows are divided by it."""

    table: BinTable
    number: int  # of the column
    here: NodeRows
    gradients: VectorGradients


class CutScratch(NamedTuple):
    """Memory of one thread."""

    starts: NDArray[np.int64]  # (n_bins + 1,) int64
    order: NDArray[np.uint32]  # (m,) uint32
    sums: NDArray[np.float64]  # (k,) float64


@inner
def add_row(sums, values, row):
    """Add a row's gradient."""
    for j in range(sums.shape[0]):
        sums[j] += values[row, j]


@inner
def bin_of(table, offset, row):
    """The bin of a row in the column that begins at ``offset``."""
    return int64(table.flat[offset + uint64(8) * uint64(row)])


@inner
def sort_by_bin(column, scratch):
    """Rows of a node by bin, stably; bin ``b`` begins at ``starts[b]``."""
    table, here, starts, order = column.table, column.here, scratch.starts, scratch.order
    offset = offset_of(table, column.number)
    starts[:] = 0
    for i in range(here.begin, here.end):
        starts[bin_of(table, offset, here.rows[i]) + 1] += 1
    for b in range(table.n_bins):
        starts[b + 1] += starts[b]
    for i in range(here.begin, here.end):
        b = bin_of(table, offset, here.rows[i])
        order[starts[b]] = here.rows[i]
        starts[b] += 1
    for b in range(table.n_bins, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = 0


@inner
def add_rows(gradients, order, begin, end, last, sums, weight):
    """Add the gradients of some sorted rows, and their weight to ``weight``."""
    values, weights = gradients.values, gradients.weights
    for i in range(begin, end):
        if i + _AHEAD < last:
            prefetch(values, int64(order[i + _AHEAD]) * values.shape[1])
        add_row(sums, values, order[i])
        weight += weights[order[i]] if weights.shape[0] > 0 else 1.0
    return weight


@inner
def scan_cuts(column, min_weight, tie, scratch):
    """Best cut of one column over the rows of a node.

    Returns
    -------
    score, bin, missing_left
        Score ``|S_l|²/W_l + |S_r|²/W_r``; the first of nearly equal cuts wins.
    """
    keep_apart()
    sort_by_bin(column, scratch)
    table, here, gradients = column.table, column.here, column.gradients
    starts, order, sums = scratch.starts, scratch.order, scratch.sums
    best, best_bin, best_left = NO_GAIN, 0, 0
    missing, n_rows = table.n_bins - 1, here.end - here.begin
    first_missing = starts[missing]
    directions = 2 if n_rows > first_missing else 1
    for missing_left in range(directions):
        sums[:] = 0.0
        left = 0.0
        if missing_left:
            left = add_rows(gradients, order, first_missing, n_rows, n_rows, sums, left)
        for b in range(missing):
            begin, end = starts[b], starts[b + 1]
            if end == begin:
                continue
            left = add_rows(gradients, order, begin, end, n_rows, sums, left)
            if end == first_missing and (directions == 1 or missing_left):
                break
            right = here.weight - left
            if left < min_weight:
                continue
            if right < min_weight or right <= 0.0:
                break
            a, c = squares(sums, here.totals)
            score = a / left + c / right
            if score > best + tie:
                best, best_bin, best_left = score, b, missing_left
    return best, best_bin, best_left


@tiny
def holds(bins, b):
    """Whether a set of bins (SET_WORDS,) holds a bin."""
    return (bins[b >> 6] >> uint64(b & 63)) & uint64(1) != uint64(0)


@tiny
def put(bins, b):
    """Put a bin into a set."""
    bins[b >> 6] |= uint64(1) << uint64(b & 63)


@inner
def put_cut(cut, missing_left, missing, left_set):
    """Send the bins up to a cut left, and that of missing values if ``missing_left``."""
    left_set[:] = uint64(0)
    for word in range((cut >> 6) + 1):
        n_left = min(cut + 1 - 64 * word, 64)
        left_set[word] = ~uint64(0) >> uint64(64 - n_left)
    if missing_left:
        put(left_set, missing)


@inner
def score_split(column, min_weight, left_set, is_cut, sums):
    """Score of one split, ``NO_GAIN`` where a side would be too light.

    Of a cut, the side with fewer rows is summed; the other one is what it lacks of the whole.
    """
    keep_apart()
    table, here, gradients = column.table, column.here, column.gradients
    offset, weights, summed = offset_of(table, column.number), gradients.weights, True
    if is_cut:
        n_left = 0
        for i in range(here.begin, here.end):
            n_left += int64(holds(left_set, bin_of(table, offset, here.rows[i])))
        summed = 2 * n_left <= here.end - here.begin  # whether the left side is
    sums[:] = 0.0
    weight = 0.0
    for i in range(here.begin, here.end):
        row = here.rows[i]
        if holds(left_set, bin_of(table, offset, row)) == summed:
            add_row(sums, gradients.values, row)
            weight += weights[row] if weights.shape[0] > 0 else 1.0
    other_weight = here.weight - weight
    if weight < min_weight or other_weight < min_weight or weight <= 0.0 or other_weight <= 0.0:
        return NO_GAIN
    a, c = squares(sums, here.totals)
    return a / weight + c / other_weight
