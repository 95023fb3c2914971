"""Columns that a node of a tree with vector leaves may be split by, and random splits of them."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.random_bits import mix
from hilboost.engine.ops.cpu.binning import BinTable, offset_of
from hilboost.engine.ops.cpu.category_splits import SET_WORDS
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.vector_cuts import bin_of, holds, put, put_cut
from hilboost.engine.ops.cpu.vector_levels import draw_subset

# Rows of ``Candidates.found``: what was found out about each candidate column.
GAIN, CUT, SIDE, VALUE = range(4)
FOUND_SIZE = 4


class ValueRanges(NamedTuple):
    """Least and greatest value in every bin."""

    low: NDArray[np.float64]  # (d, n_bins) float64: ``inf`` and ``-inf`` in empty bins
    high: NDArray[np.float64]  # (d, n_bins) float64: ``inf`` and ``-inf`` in empty bins


class Candidates(NamedTuple):
    """Columns that a node may be split by, and what was found out about them."""

    number: NDArray[np.int64]  # (1,) int64: how many there are
    columns: NDArray[np.int64]  # (d,) int64: the candidates first
    found: NDArray[np.float64]  # (FOUND_SIZE, d) float64
    left_sets: NDArray[np.uint64]  # (d, SET_WORDS) uint64: the bins that go left
    present: NDArray[np.uint64]  # (SET_WORDS,) uint64: room for the bins of a node


def empty_candidates(d: int) -> Candidates:
    """Room for ``d`` columns."""
    return Candidates(
        np.zeros(1, dtype=np.int64),
        np.empty(d, dtype=np.int64),
        np.zeros((FOUND_SIZE, d)),
        np.zeros((d, SET_WORDS), dtype=np.uint64),
        np.zeros(SET_WORDS, dtype=np.uint64),
    )


@inner
def _draw_number(state):
    """The next state of the generator and a number in [0, 1)."""
    state = mix(state)
    return state, (state >> uint64(11)) * 1.1102230246251565e-16


@inner
def find_present(table, column, here, present):
    """Note the bins of a node; returns the first and the last one, and 1 if values are missing.

    ``present``: (SET_WORDS,) uint64, written: without the bin of missing values.
    """
    offset, missing = offset_of(table, column), table.n_bins - 1
    first, last, any_missing = table.n_bins, -1, 0
    present[:] = uint64(0)
    for i in range(here.begin, here.end):
        b = bin_of(table, offset, here.rows[i])
        if b == missing:
            any_missing = 1
        else:
            put(present, b)
            first, last = min(first, b), max(last, b)
    return first, last, any_missing


@inner
def _draw_cut(low, high, first, last, number):
    """A cut uniform between two bins: the last bin on its left, and its value."""
    value = low[first] + number * (high[last] - low[first])
    cut = first
    while cut + 1 < last and low[cut + 1] <= value:
        cut += 1
    # Between the values of the bins on both sides, so that rows and bins agree.
    value = max(value, high[cut])
    if first == last or value >= low[cut + 1]:
        value = high[cut]
    return cut, value


@inner
def _draw_split(table, column, here, state, number, c, growth):
    """A random split of a column; False where all of its values in the node are equal."""
    keep_apart()
    candidates, is_category = growth.candidates, growth.categories.is_category
    found, left_set, missing = candidates.found, candidates.left_sets[c], table.n_bins - 1
    first, last, any_missing = find_present(table, column, here, candidates.present)
    if last < 0 or (first == last and any_missing == 0):
        return False
    found[CUT, c], found[VALUE, c] = 0, 0.0
    if is_category.shape[0] > 0 and is_category[column] != 0:
        seed = state ^ uint64(0xA0761D6478BD642F)  # apart from the draws of columns
        draw_subset(candidates.present, any_missing, missing, seed, left_set)
    else:  # of one bin: values against missing ones
        ranges = growth.ranges
        cut, value = _draw_cut(ranges.low[column], ranges.high[column], first, last, number)
        found[CUT, c], found[VALUE, c] = cut, value
        put_cut(cut, int64(0), missing, left_set)
    found[SIDE, c] = int64(holds(left_set, missing))
    return True


@compiled
def draw_candidates(table, here, seed, growth):
    """Columns, and cuts where these are random, that a node may be split by.

    With ``random_cuts``, a cut, or a subset of levels, is drawn as well; columns without two values
    in the node do not count among those drawn.

    table : BinTable; here : NodeRows; seed : uint64; growth : VectorGrowth
    """
    keep_apart()
    candidates, n_drawn = growth.candidates, growth.limits.n_columns
    columns, random_cuts = candidates.columns, growth.limits.random_cuts
    d = columns.shape[0]
    for f in range(d):
        columns[f] = f
    n_found = int64(0)  # not a literal, whose type is compiled for again
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
            usable = _draw_split(table, column, here, state, number, n_found, growth)
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
