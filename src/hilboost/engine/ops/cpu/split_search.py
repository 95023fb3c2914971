"""The best split of a node over many columns, from its histogram."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import keep_apart, lowest_bit
from hilboost.backends.references import by_reference
from hilboost.engine.ops.cpu.category_splits import scan_levels, settle_levels
from hilboost.engine.ops.cpu.column_splits import (
    NO_GAIN,
    Column,
    ScanScratch,
    SplitLimits,
    is_empty,
    place_of,
    scan,
)
from hilboost.engine.ops.cpu.fixed_point import in_64_bits
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.nodes import ARRAY, BEGIN, BIN, COLUMN, END, MISSING_LEFT, SLOT
from hilboost.engine.ops.cpu.packing import Packing, count_bits


class SplitRules(NamedTuple):
    """Settings that all splits of a tree share."""

    # (d,) int64: bins of every column without the one for missing values; a column of none is
    # passed over
    n_values: NDArray[np.int64]
    n_bins: int
    # channels of a histogram that are outputs; one more is that of the count.  ``None`` with one
    # channel.
    n_outputs: int | None
    packing: Packing
    limits: SplitLimits
    # (d,) int64: the direction 1 or -1 of a column and 0 for none; (0,) without any
    monotonic: NDArray[np.int64]
    is_category: NDArray[np.uint8]  # (d,) uint8: 1 at columns of categories; (0,) without any
    symmetric: bool = False  # whether all nodes of a level have one split


class NodeSums(NamedTuple):
    """Packed sums."""

    # (n_nodes, n_channels) int64: of every node, and of the left side of its split
    totals: NDArray[np.int64]
    left_totals: NDArray[np.int64]


class SearchScratch(NamedTuple):
    """Memory for searches."""

    permitted: NDArray[np.uint8]  # (d,) uint8: columns on which the next nodes may be split
    # (2 b, 2, d) uint8: the ones that are searched for both children of each split
    drawn: NDArray[np.uint8]
    sums: NDArray[np.int64]  # (n_threads, 5, 512) int64, zeros at first
    bin_gains: NDArray[np.float64]  # (n_threads, 512) float64
    sides: NDArray[np.int64]  # (n_threads, 2, n_channels) int64


@tiny
def scan_scratch(scratch, thread):
    """The part of a search's memory that is one thread's."""
    sums, sides = scratch.sums[thread], scratch.sides[thread]
    return ScanScratch(sums[0], sums[1], scratch.bin_gains[thread], sides[0], sides[1], sums[2:])


@inner
def column_of(node, number, growth):
    """One column of the histogram of a node."""
    rules, histogram = growth.rules, growth.histograms.slots[growth.nodes.fields[node, SLOT]]
    base = number * (STRIDE if growth.sums.totals.shape[1] == 1 else rules.n_bins)
    return Column(histogram, base, rules.n_values[number], rules.n_bins, np.int64(number))


@inner
def _column_of_rows(node, number, squeezes, growth, compact, bins):
    """One column of the histogram of a node, summed from its rows, with one channel.

    Where few bins hold rows, most time would pass over the others: ``squeezes`` leaves them out.
    The numbers of the others are bits, which give their order::

        rows      7 2 7 5              bins that hold rows    ..1..1.1
        cells     . . 2 . . 5 . 7      squeezed               2 5 7

    ``compact`` is a part of the growth. ``bins[0]``: cells, zeros before and after. ``bins[1]``:
    written. ``bins[2]``: the bits.
    """
    keep_apart()
    table, fields, buffers = growth.table, growth.nodes.fields, growth.buffers
    rows, ordered = buffers.rows[fields[node, ARRAY]], buffers.ordered[fields[node, ARRAY]]
    words, shift = table.words[number // 8], uint64(8 * (number % 8))
    cells, written, held = bins[0], bins[1], bins[2]
    held[:4] = 0
    for i in range(fields[node, BEGIN], fields[node, END]):
        j = uint64(i)
        b = (words[uint64(rows[j])] >> shift) & uint64(255)
        cells[b] += in_64_bits(ordered[j], compact)
        held[b >> uint64(6)] |= int64(1) << int64(b & uint64(63))
    if not squeezes:
        written[: table.n_bins] = 0
    n_held, n_values, n_bins = uint64(0), table.n_values[number], table.n_bins
    has_missing = cells[uint64(n_bins - 1)] != 0
    for word in range(4):
        here = uint64(held[word])
        while here != uint64(0):
            b = uint64(64 * word + lowest_bit(here))
            here &= here - uint64(1)
            written[n_held if squeezes else b], cells[b] = cells[b], 0
            n_held += uint64(1)
    if squeezes:
        written[n_held] = 0
        n_values = np.int64(n_held) - np.int64(has_missing)
        n_bins = n_values + 1
    return Column(written, 0, n_values, n_bins, np.int64(number))


@inner
def _column_of_node(node, number, squeezes, growth, scratch):
    """One column of a node, from its histogram or, without one, from its rows."""
    if growth.nodes.fields[node, SLOT] >= 0:
        return column_of(node, number, growth)
    return _column_of_rows(node, number, squeezes, growth, growth.buffers.compact, scratch.bins)


@inner
def _bounds_of(node, constraints):
    """Least and greatest value below a node, (2, n_outputs), or (0, 0) without directions.

    ``None`` in trees of numbers without constraints: directions and categories are not read.
    """
    if constraints is None:
        return None
    return constraints.bounds[node]


@inner
def _on_levels(number, bounds, rules):
    """Whether a column is split on sets of levels."""
    if bounds is None or rules.is_category.shape[0] == 0:
        return False
    return rules.is_category[number] != 0


@inner
def _search_column(column, totals, n_outputs, bounds, rules, least, scratch):
    """Best split of a column; one of no larger gain than ``least`` need not be found."""
    if bounds is not None and _on_levels(column.number, bounds, rules):
        gain, cut = scan_levels(column, totals, rules, bounds, scratch)
        return gain, cut, np.int64(0)
    return scan(column, totals, n_outputs, bounds, rules, least, scratch)


@compiled
def search_columns(first, last, node, drawn, growth, scratch):
    """Best split of a node over the columns ``[first, last)``; the first one wins a tie.

    ``drawn``: (d,) uint8: the columns that are searched. ``scratch``: ScanScratch.
    """
    keep_apart()
    rules, totals = by_reference(growth.rules), growth.sums.totals[node]
    bounds = _bounds_of(node, growth.constraints)
    best, best_column, best_cut, best_left = NO_GAIN, np.int64(0), np.int64(0), np.int64(0)
    for f in range(first, last):
        if not drawn[f] or rules.n_values[f] == 0:
            continue
        column = _column_of_node(node, f, not _on_levels(f, bounds, rules), growth, scratch)
        n_outputs = rules.n_outputs
        gain, cut, left = _search_column(column, totals, n_outputs, bounds, rules, best, scratch)
        if gain > best:
            best, best_column, best_cut, best_left = gain, f, cut, left
    if best > NO_GAIN and not _on_levels(best_column, bounds, rules):
        column = _column_of_node(node, best_column, False, growth, scratch)
        best_cut = place_of(best_cut, column, totals, rules.n_outputs)
    return best, best_column, best_cut, best_left


@inner
def sum_left(column, cut, missing_left, left_totals):
    """Sums of the left side of a cut."""
    n_channels = left_totals.shape[0]
    for c in range(n_channels):
        left = 0
        for b in range(cut + 1):
            left += column.histogram[(column.base + b) * n_channels + c]
        if missing_left:
            left += column.histogram[(column.base + column.n_bins - 1) * n_channels + c]
        left_totals[c] = left


@inner
def _middle_cut(column, cut, n_channels):
    """The middle one of all cuts that send the same rows left."""
    following, last = cut + 1, column.n_values
    while following < last and is_empty(
        column.histogram, (column.base + following) * n_channels, n_channels
    ):
        following += 1
    return (cut + following - 1) // 2 if following < last else last - 1


@tiny
def _heavier_left(left_totals, totals, packing):
    """Whether the left side holds at least half of the weight."""
    return 2 * count_bits(left_totals, packing) >= count_bits(totals, packing)


@compiled
def best_of_parts(gains, splits):
    """The best of the splits of some groups of columns, the first of equals.

    gains, splits : (n,) float64, (n, 3) int64, as :func:`search_columns` returns them
    """
    chosen = 0
    for part in range(1, gains.shape[0]):
        if gains[part] > gains[chosen]:
            chosen = part
    return gains[chosen], splits[chosen, 0], splits[chosen, 1], splits[chosen, 2]


@inner
def _settle_levels(node, column, cut, categories, growth, scratch):
    """Settle a split, if it is one on levels: whether it is, and where missing values go."""
    if (
        categories is not None
        and categories.is_category.shape[0] > 0
        and categories.is_category[column.number]
    ):
        totals, left = growth.sums.totals[node], growth.sums.left_totals[node]
        rules, left_set = by_reference(growth.rules), categories.left_sets[node]
        missing_left = settle_levels(column, totals, rules, cut, scratch, left, left_set)
        return True, np.int64(missing_left)
    return False, np.int64(0)


@compiled
def settle_split(node, split, growth, scratch):
    """Note a node's best split, if it is good enough, and the sums of its left side.

    A cut anywhere between two neighboring bins that hold rows sends the same rows left: the middle
    one is taken.  Rows without a value follow the larger part where none was seen.
    """
    keep_apart()
    gain, number, cut, missing_left = split
    nodes, rules, sums = growth.nodes, growth.rules, growth.sums
    fields, limits, packing = nodes.fields, rules.limits, rules.packing
    nodes.gains[node] = NO_GAIN
    if gain == NO_GAIN or gain < limits.min_gain or gain <= 0.0:
        return
    nodes.gains[node] = gain
    totals, left_totals = sums.totals[node], sums.left_totals[node]
    n_channels = totals.shape[0]
    column = _column_of_node(node, number, False, growth, scratch)
    by_level, missing_of_levels = _settle_levels(
        node, column, cut, growth.categories, growth, scratch
    )
    if by_level:
        cut, missing_left = np.int64(0), missing_of_levels
    else:
        sum_left(column, cut, missing_left, left_totals)
        cut = _middle_cut(column, cut, n_channels)
        if is_empty(column.histogram, (column.base + column.n_bins - 1) * n_channels, n_channels):
            missing_left = np.int64(_heavier_left(left_totals, totals, packing))
    fields[node, COLUMN], fields[node, BIN], fields[node, MISSING_LEFT] = number, cut, missing_left
