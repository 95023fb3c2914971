"""Histograms of fixed-point gradients.

The binned table is held word by word: ``words[w, i]`` packs the bins of columns ``8 w … 8 w + 7``
of row ``i``, lowest byte first, so that one load feeds eight additions into a slab of the histogram
that stays in the first-level cache::

    columns   0 1 2 … 7 | 8 9 … 15 | 16 …
    words     [0, i]      [1, i]     [2, i]

A histogram is flat: ``histogram[(column * stride + bin) * n_channels + channel]``, int64.

Indices in the loops are unsigned: a signed one may be negative and count from the end, which the
compiler can rule out only where the loop begins at zero, and which keeps loops from vector code.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import add_pair, keep_apart, prefetch
from hilboost.engine.ops.cpu.fixed_point import in_64_bits

_AHEAD = 128
"""Rows between the one that is added and the one that is asked for, in nodes of many rows."""
STRIDE = 256
"""Bins a column takes in a histogram of one channel: a constant, which addresses fold in."""


class Histograms(NamedTuple):
    """Memory for the histograms of the open nodes."""

    # (n_slots, d * stride * n_channels) int64: a stride of :data:`STRIDE` with one channel and of
    # ``n_bins`` with more.  One slot for every leaf keeps parents for subtraction; two slots do
    # without.
    slots: NDArray[np.int64]
    # (n_threads, k, d * stride * n_channels) int64: sums over parts of the rows of k nodes
    private: NDArray[np.int64]
    # (d * stride * n_channels,) int64: a copy of the root's, for the next tree; (0,) if it is not
    # needed
    kept: NDArray[np.int64]


class OrderedRows(NamedTuple):
    """Rows and their packed gradients, in the same order."""

    rows: NDArray[np.uint32]  # (m,) uint32
    gradients: NDArray[np.int64] | NDArray[np.int32]  # (m,) int64 or int32


class Part(NamedTuple):
    """A part of the table that is summed: some words of some rows, by their positions."""

    first_word: int
    last_word: int
    begin: int
    end: int


@inner
def _bin_range(first_word, last_word, n_columns, n_bins, n_channels):
    begin = min(8 * first_word, n_columns) * n_bins * n_channels
    end = min(8 * last_word, n_columns) * n_bins * n_channels
    return begin, end


@tiny
def _rows_ahead(begin, end):
    """How many rows before its turn a row is asked for: less in nodes of few rows."""
    return min(_AHEAD, (end - begin) // 8)


@tiny
def _add_eight(word, value, base, histogram):
    """Add a number in the bins of the eight columns of a word."""
    for k in range(8):
        b = (word >> uint64(8 * k)) & uint64(255)
        histogram[base + uint64(k * STRIDE) + b] += value


@compiled
def accumulate(table, ordered, compact, part, is_first, histogram):
    """Add some rows to the slabs of some words, one channel.

    Cells of bins that a column does not have remain as they are.

    ``table``: BinTable. ``ordered``: OrderedRows. ``compact``: how 32 bits of a gradient are read;
    None with 64. ``part``: Part. ``is_first``: whether what is in the slabs is overwritten.
    ``histogram``: (d * STRIDE,) int64.
    """
    keep_apart()
    first_word, last_word, begin, end = part
    rows, gradients = ordered
    words, n_values, n_bins = table.words, table.n_values, table.n_bins
    n_columns = n_values.shape[0]
    if is_first:
        for f in range(8 * first_word, min(8 * last_word, n_columns)):
            slab = uint64(f * STRIDE)
            for b in range(n_values[f]):
                histogram[slab + uint64(b)] = 0
            histogram[slab + uint64(n_bins - 1)] = 0
    mask, ahead = uint64(255), _rows_ahead(begin, end)
    last_asked = max(begin, end - ahead)
    for w in range(first_word, last_word):
        column = words[w]
        base = uint64(8 * w * STRIDE)
        n_here = min(8, n_columns - 8 * w)
        if n_here == 8:
            for i in range(begin, last_asked):
                j = uint64(i)
                prefetch(column, int64(rows[j + uint64(ahead)]))
                value = in_64_bits(gradients[j], compact)
                _add_eight(column[uint64(rows[j])], value, base, histogram)
            for i in range(last_asked, end):
                j = uint64(i)
                value = in_64_bits(gradients[j], compact)
                _add_eight(column[uint64(rows[j])], value, base, histogram)
            continue
        if n_here >= 4:
            for i in range(begin, end):
                j = uint64(i)
                if i + ahead < end:
                    prefetch(column, int64(rows[j + uint64(ahead)]))
                word = column[uint64(rows[j])]
                value = in_64_bits(gradients[j], compact)
                for k in range(4):
                    b = (word >> uint64(8 * k)) & mask
                    histogram[base + uint64(k * STRIDE) + b] += value
        for k in range(4 * (n_here // 4), n_here):
            shift, slab = uint64(8 * k), base + uint64(k * STRIDE)
            for i in range(begin, end):
                j = uint64(i)
                value = in_64_bits(gradients[j], compact)
                histogram[slab + ((column[uint64(rows[j])] >> shift) & mask)] += value


@compiled
def accumulate_channels(table, rows, packed, part, n_channels, is_first, histogram):
    """The same for several channels, ``packed`` (n, width) int64 in the table's row order.

    If the width is one less than ``n_channels``, the last channel counts one for each row.
    """
    keep_apart()
    first_word, last_word, begin, end = part
    words, n_columns, n_bins = table.words, table.n_values.shape[0], table.n_bins
    width = packed.shape[1]
    low, high = _bin_range(first_word, last_word, n_columns, n_bins, n_channels)
    if is_first:
        histogram[low:high] = 0
    if n_channels == 2:
        for w in range(first_word, last_word):
            slabs = histogram[16 * w * n_bins :]
            if width == 1:
                _accumulate_pairs(table, w, rows, packed, None, part, slabs)
            else:
                _accumulate_pairs(table, w, rows, packed, packed, part, slabs)
        return
    channels, ahead = uint64(n_channels), _rows_ahead(begin, end)
    for w in range(first_word, last_word):
        column = words[w]
        n_here = min(8, n_columns - 8 * w)
        for i in range(begin, end):
            j = uint64(i)
            row = uint64(rows[j])
            if i + ahead < end:
                prefetch(column, int64(rows[j + uint64(ahead)]))
            word = column[row]
            for k in range(n_here):
                b = (word >> uint64(8 * k)) & uint64(255)
                cell = (uint64(8 * w + k) * uint64(n_bins) + b) * channels
                for c in range(width):
                    histogram[cell + uint64(c)] += packed[row, uint64(c)]
                if width < n_channels:
                    histogram[cell + uint64(width)] += 1


@inner
def _accumulate_pairs(table, w, rows, packed, counts, part, slabs):
    """Two channels of the columns of one word, whose values are read once for a row.

    ``counts`` is ``packed`` itself, or ``None`` if each row counts one.
    """
    column, n_bins, begin, end = table.words[w], table.n_bins, part.begin, part.end
    n_here = min(8, table.n_values.shape[0] - 8 * w)
    step, mask, width = uint64(2 * n_bins), uint64(255), packed.shape[1]
    ahead = _rows_ahead(begin, end)
    for i in range(begin, end):
        j = uint64(i)
        if i + ahead < end:
            later = int64(rows[j + uint64(ahead)])
            prefetch(column, later)
            prefetch(packed, width * later)
        row = uint64(rows[j])
        word, first, second = column[row], packed[row, 0], np.int64(1)
        if counts is not None:
            second = counts[row, 1]
        if n_here == 8 and n_bins == STRIDE:
            for k in range(8):
                b = (word >> uint64(8 * k)) & mask
                add_pair(slabs, uint64(2 * k * STRIDE) + uint64(2) * b, first, second)
        else:
            for k in range(n_here):
                b = (word >> uint64(8 * k)) & mask
                add_pair(slabs, uint64(k) * step + uint64(2) * b, first, second)


@compiled
def add(histogram, other, begin, end):
    """Add another histogram over ``[begin, end)``."""
    for i in range(begin, end):
        histogram[uint64(i)] += other[uint64(i)]


@compiled
def subtract(histogram, other, begin, end):
    """Sibling subtraction in place: the parent's histogram becomes the larger child's."""
    for i in range(begin, end):
        histogram[uint64(i)] -= other[uint64(i)]


@inner
def n_channels_of(growth):
    """Channels of a histogram: as many as the sums of nodes, and one without ``packed``."""
    if growth.packed is None:
        return np.int64(1)
    return np.int64(growth.sums.totals.shape[1])


@tiny
def cells_of(column, table, n_channels):
    """Cells of a column: begin and end of its values, and the cell of missing values, or -1."""
    if n_channels == 1:
        begin = column * STRIDE
        return begin, begin + table.n_values[column], begin + table.n_bins - 1
    begin = column * table.n_bins * n_channels
    return begin, begin + table.n_bins * n_channels, np.int64(-1)
