"""Values to bins, and the table of bins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, tiny


class BinTable(NamedTuple):
    """A table of bins, eight columns to a word."""

    # (n_words, n) uint64: ``words[w, i]`` packs the bins of columns ``8 w … 8 w + 7`` of row ``i``,
    # lowest byte first
    words: NDArray[np.uint64]
    flat: NDArray[np.uint8]  # (n_words * n * 8,) uint8: the same memory
    # (d,) int64: bins of every column without the one for missing values
    n_values: NDArray[np.int64]
    n_bins: int  # bins of every column, the last one for missing values; at most 256


class BinEdges(NamedTuple):
    """The edges of the bins of all columns."""

    # (d, 2**k) float64: ascending, filled up with ``inf``; a value ``v`` falls into the first bin
    # with ``v <= thresholds[b]``
    thresholds: NDArray[np.float64]
    # (d,) int64: steps of the bisection of each column, which has at most ``2**n_steps - 1`` edges
    n_steps: NDArray[np.int64]
    missing_bin: int

    def of_columns(self, first: int, last: int) -> BinEdges:
        """Return the edges of some columns."""
        return BinEdges(self.thresholds[first:last], self.n_steps[first:last], self.missing_bin)


@tiny
def offset_of(table, column):
    """Where the bins of a column begin in the flat table; rows are 8 bytes apart."""
    return uint64((column // 8) * table.words.shape[1] * 8 + column % 8)


@compiled
def pack_bins(values, edges, begin, words, column, position):
    """Bin a block of rows, the first of which is ``begin``, and pack eight columns into a word.

    ``values``: (m, d) float32 or float64. ``edges``: BinEdges. ``words``: (n_words, n) uint64,
    written in ``[:, begin:begin + m]``. ``column``: (m,) float64, position : (m,) uint64; working
    memory.

    Notes
    -----
    All rows of the block take a step of the bisection together::

        position   0 0 0 0  ->  4 0 4 4  ->  6 0 4 6  ->  …
    """
    (m, d), n_steps, missing_bin = values.shape, edges.n_steps, uint64(edges.missing_bin)
    for w in range(words.shape[0]):
        packed = words[w, begin : begin + m]
        for i in range(m):
            packed[i] = 0
        for k in range(8 * w, min(8 * w + 8, d)):
            column_edges, shift = edges.thresholds[k], uint64(8 * (k - 8 * w))
            for i in range(m):
                column[i] = values[i, k]
                position[i] = 0
            for step in range(n_steps[k] - 1, -1, -1):
                half = uint64(1) << uint64(step)
                last = half - uint64(1)
                for i in range(m):
                    here = position[i]
                    # A product, because some processors' compilers make a choice a branch, which
                    # is wrong every other time.
                    position[i] = here + half * uint64(column_edges[here + last] < column[i])
            for i in range(m):
                b = missing_bin if np.isnan(column[i]) else position[i]
                packed[i] |= b << shift
