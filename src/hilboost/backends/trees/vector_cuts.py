"""Cuts of one column for a tree with vector leaves: exact sums, no histograms.

A histogram of ``r`` outputs holds ``bins x r`` sums a column, which few rows never fill.  Here the
rows of a node are sorted by bin, one column at a time, and one running sum of ``r`` numbers passes
over them; for randomized trees one pass a drawn cut is enough.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, reordered
from hilboost.backends.intrinsics import keep_apart, prefetch
from hilboost.backends.trees.binning import BinTable, offset_of
from hilboost.backends.trees.column_splits import NO_GAIN
from hilboost.backends.trees.draws import mix

# Rows of ``Candidates.found``: what was found out about each candidate column.
GAIN, CUT, SIDE, VALUE = range(4)
FOUND_SIZE = 4

_AHEAD = 8


class VectorGradients(NamedTuple):
    """The gradients to learn from, about their mean.

    Attributes
    ----------
    values : (n, k) float64
        Multiplied by the weights.
    weights : (n,) float64
        (0,) for ones.
    squares : (n,) float64
        Weight times squared length of each row's gradient.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    squares: NDArray[np.float64]


class NodeRows(NamedTuple):
    """The rows of a node, and sums over them.

    Attributes
    ----------
    rows : (m,) uint32
        The node's are those in ``[begin, end)``.
    begin, end : int
    totals : (k,) float64
        Sum of the gradients.
    weight : float
    """

    rows: NDArray[np.uint32]
    begin: int
    end: int
    totals: NDArray[np.float64]
    weight: float


class CutScratch(NamedTuple):
    """Memory of one thread.

    Attributes
    ----------
    starts : (n_bins + 1,) int64
    order : (m,) uint32
    sums : (k,) float64
    """

    starts: NDArray[np.int64]
    order: NDArray[np.uint32]
    sums: NDArray[np.float64]


class ValueRanges(NamedTuple):
    """Least and greatest value in every bin.

    Attributes
    ----------
    low, high : (d, n_bins) float64
        ``inf`` and ``-inf`` in empty bins.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Candidates(NamedTuple):
    """Columns that a node may be split by, and what was found out about them.

    Attributes
    ----------
    number : (1,) int64
        How many there are.
    columns : (d,) int64
        The candidates first.
    found : (FOUND_SIZE, d) float64
    """

    number: NDArray[np.int64]
    columns: NDArray[np.int64]
    found: NDArray[np.float64]


@reordered
def squares(sums, totals):
    """``|S|²`` and ``|T - S|²``."""
    left, right = 0.0, 0.0
    for j in range(sums.shape[0]):
        s = sums[j]
        t = totals[j] - s
        left += s * s
        right += t * t
    return left, right


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
def _sort_by_bin(table, column, here, scratch):
    """Rows of a node by bin, stably; ``starts[b]`` is where those of bin ``b`` begin."""
    starts, order, offset = scratch.starts, scratch.order, offset_of(table, column)
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
def _add_rows(gradients, order, begin, end, last, sums, weight):
    """Add the gradients of some sorted rows, and their weight to ``weight``."""
    values, weights = gradients.values, gradients.weights
    for i in range(begin, end):
        if i + _AHEAD < last:
            prefetch(values, int64(order[i + _AHEAD]) * values.shape[1])
        add_row(sums, values, order[i])
        weight += weights[order[i]] if weights.shape[0] > 0 else 1.0
    return weight


@compiled
def scan_cuts(table, column, here, gradients, min_weight, tie, scratch):
    """Best cut of one column over the rows of a node.

    Parameters
    ----------
    table : BinTable
    column : int
    here : NodeRows
    gradients : VectorGradients
    min_weight : float, least weight of a side
    tie : float, by so much a cut must be better than one before it
    scratch : CutScratch

    Returns
    -------
    score, bin, missing_left
        Score ``|S_l|²/W_l + |S_r|²/W_r``; the first of nearly equal cuts wins.
    """
    keep_apart()
    _sort_by_bin(table, column, here, scratch)
    starts, order, sums = scratch.starts, scratch.order, scratch.sums
    best, best_bin, best_left = NO_GAIN, 0, 0
    missing, n_rows = table.n_bins - 1, here.end - here.begin
    first_missing = starts[missing]
    directions = 2 if n_rows > first_missing else 1
    for missing_left in range(directions):
        sums[:] = 0.0
        left = 0.0
        if missing_left:
            left = _add_rows(gradients, order, first_missing, n_rows, n_rows, sums, left)
        for b in range(missing):
            begin, end = starts[b], starts[b + 1]
            if end == begin:
                continue
            left = _add_rows(gradients, order, begin, end, n_rows, sums, left)
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


@compiled
def score_cut(table, column, here, gradients, min_weight, cut, missing_left, sums):
    """Score of one cut, ``NO_GAIN`` where a side would be too light.

    The side with fewer rows is summed; the other one is what it lacks of the whole.
    """
    keep_apart()
    offset, missing = offset_of(table, column), table.n_bins - 1
    weights = gradients.weights
    n_left = 0
    for i in range(here.begin, here.end):
        b = bin_of(table, offset, here.rows[i])
        n_left += int64(b <= cut or (missing_left != 0 and b == missing))
    summed = 2 * n_left <= here.end - here.begin  # whether the left side is
    sums[:] = 0.0
    weight = 0.0
    for i in range(here.begin, here.end):
        row = here.rows[i]
        b = bin_of(table, offset, row)
        if (b <= cut or (missing_left != 0 and b == missing)) == summed:
            add_row(sums, gradients.values, row)
            weight += weights[row] if weights.shape[0] > 0 else 1.0
    other_weight = here.weight - weight
    if weight < min_weight or other_weight < min_weight or weight <= 0.0 or other_weight <= 0.0:
        return NO_GAIN
    a, c = squares(sums, here.totals)
    return a / weight + c / other_weight


@inner
def _draw_number(state):
    """The next state of the generator and a number in [0, 1)."""
    state = mix(state)
    return state, (state >> uint64(11)) * 1.1102230246251565e-16


@inner
def _draw_cut(table, ranges, column, here, number, found, c):
    """A cut uniform between the node's least and greatest value; False where these are equal."""
    keep_apart()
    low, high = ranges.low[column], ranges.high[column]
    offset, n_bins = offset_of(table, column), table.n_bins
    first, last, any_missing = n_bins, -1, False
    for i in range(here.begin, here.end):
        b = bin_of(table, offset, here.rows[i])
        if b == n_bins - 1:
            any_missing = True
        else:
            first, last = min(first, b), max(last, b)
    if last < 0 or (first == last and not any_missing):
        return False
    found[SIDE, c] = 0
    if first == last:  # values against missing ones
        found[CUT, c], found[VALUE, c] = last, high[last]
        return True
    value = low[first] + number * (high[last] - low[first])
    cut = first
    while cut + 1 < last and low[cut + 1] <= value:
        cut += 1
    # Between the values of the bins on both sides, so that rows and bins agree.
    value = max(value, high[cut])
    if value >= low[cut + 1]:
        value = high[cut]
    found[CUT, c], found[VALUE, c] = cut, value
    return True


@inner
def draw_candidates(table, ranges, here, seed, n_drawn, random_cuts, candidates):
    """Columns, and cuts where these are random, that a node may be split by.

    Parameters
    ----------
    ranges : ValueRanges
    seed : uint64, of the node
    n_drawn : int, how many columns to draw
    random_cuts : bool
        A cut is drawn as well; columns without two values in the node do not count among those
        drawn.
    candidates : Candidates, written
    """
    keep_apart()
    columns, found = candidates.columns, candidates.found
    d = columns.shape[0]
    for f in range(d):
        columns[f] = f
    n_found = 0
    candidates.number[0] = d
    if n_drawn >= d and not random_cuts:
        return
    state = seed
    left = d
    while left > 0 and n_found < n_drawn:
        state, number = _draw_number(state)
        chosen = n_found + int64(number * left)
        left -= 1
        column = columns[chosen]
        state, number = _draw_number(state)
        usable = True
        if random_cuts:
            usable = _draw_cut(table, ranges, column, here, number, found, n_found)
        if usable:
            columns[chosen] = columns[n_found]
            columns[n_found] = column
            n_found += 1
        else:  # out of the way, behind those that are left
            columns[chosen] = columns[n_found + left]
            columns[n_found + left] = column
    candidates.number[0] = n_found


@inner
def best_candidate(candidates, tie):
    """The best of the candidates, the first of nearly equal ones; -1 where none is allowed."""
    found = candidates.found
    best = -1
    for c in range(candidates.number[0]):
        if found[GAIN, c] > NO_GAIN and (best < 0 or found[GAIN, c] > found[GAIN, best] + tie):
            best = c
    return best


@compiled
def value_ranges(table, X, ranges):
    """Least and greatest value of every bin of every column.

    X : (n, d); ``ranges.low`` filled with inf, ``ranges.high`` with -inf
    """
    for column in range(X.shape[1]):
        offset = offset_of(table, column)
        low, high = ranges.low[column], ranges.high[column]
        for i in range(X.shape[0]):
            b = bin_of(table, offset, i)
            if b < table.n_bins - 1:
                x = X[i, column]
                low[b] = min(low[b], x)
                high[b] = max(high[b], x)


def empty_ranges(table: BinTable) -> ValueRanges:
    """Ranges of no values."""
    shape = len(table.n_values), table.n_bins
    return ValueRanges(np.full(shape, np.inf), np.full(shape, -np.inf))
