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
from hilboost.engine.ops.cpu.vector_cuts import bin_of
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
    # (d, SET_WORDS) uint64: a bit a level that goes left, for columns of categories; (0, SET_WORDS)
    # without any
    left_sets: NDArray[np.uint64]
    present: NDArray[np.uint64]  # (SET_WORDS,) uint64: room for the levels of a node


def empty_candidates(d: int, any_categories: bool) -> Candidates:
    """Room for ``d`` columns."""
    return Candidates(
        np.zeros(1, dtype=np.int64),
        np.empty(d, dtype=np.int64),
        np.zeros((FOUND_SIZE, d)),
        np.zeros((d if any_categories else 0, SET_WORDS), dtype=np.uint64),
        np.zeros(SET_WORDS, dtype=np.uint64),
    )


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
def _draw_split(table, column, here, state, number, c, growth):
    """A random split of a column; False where all of its values in the node are equal."""
    candidates, is_category = growth.candidates, growth.categories.is_category
    found = candidates.found
    if is_category.shape[0] == 0 or not is_category[column]:
        return _draw_cut(table, growth.ranges, column, here, number, found, c)
    seed = state ^ uint64(0xA0761D6478BD642F)  # apart from the draws of columns
    left_set = candidates.left_sets[c]
    missing_left = draw_subset(table, column, here, seed, candidates.present, left_set)
    found[CUT, c], found[SIDE, c], found[VALUE, c] = 0, missing_left, 0.0
    return missing_left >= 0


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
