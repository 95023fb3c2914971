"""Stable partition of a node's rows, in two passes that threads share.

Rows and their packed gradients live in two buffers; a split reads one and writes the other::

    source   [ a b c d | e f g h ]        chunks of two threads
    flags      1 0 0 1   0 1 0 1          1 = goes left
    target   [ a d f h | b c e g ]        left rows first, both in their old order
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import (
    HAS_COMPRESS,
    compress_eight,
    flag_bits,
    keep_apart,
)
from hilboost.backends.sync import barrier, share
from hilboost.backends.trees.binning import offset_of
from hilboost.backends.trees.category_splits import flag_level_rows
from hilboost.backends.trees.nodes import BEGIN, BIN, BUFFER, COLUMN, END, MISSING_LEFT

ROWS_WORTH_SHARING = 4096
"""The histogram of a node of fewer rows a thread is not shared by rows."""
_ROWS_WORTH_DIVIDING = 768
"""A node of fewer rows a thread is divided by one thread."""


class RowBuffers(NamedTuple):
    """The rows that a tree learns from, ordered by node.

    Attributes
    ----------
    rows : (2, m) uint32
        At first all rows, in ``rows[0]``.
    ordered : (2, m) int64
        Packed gradients in the order of ``rows``; (2, 0) where there are none to move along.
    flags : (m,) uint8
    counts : (8 * n_threads,) int64
        Rows that go left in every thread's share, a cache line apart.
    """

    rows: NDArray[np.uint32]
    ordered: NDArray[np.int64]
    flags: NDArray[np.uint8]
    counts: NDArray[np.int64]


@compiled
def flag_rows(table, column, split_bin, missing_left, rows, begin, end, flags):
    """Mark the rows that go left and count them.

    Parameters
    ----------
    table : BinTable
    rows : (m,) uint32
    flags : (m,) uint8, written in ``[begin, end)``
    """
    keep_apart()
    bins, offset = table.flat, offset_of(table, column)
    threshold = uint8(split_bin)
    missing = uint8(table.n_bins - 1)
    other = uint8(missing_left)
    # Loads that nothing depends on overlap; the rest is vector code.
    for i in range(begin, end):
        j = uint64(i)
        flags[j] = bins[offset + uint64(8) * uint64(rows[j])]
    count = 0
    for i in range(begin, end):
        j = uint64(i)
        b = flags[j]
        left = uint8(b <= threshold) | (other & uint8(b == missing))
        flags[j] = left
        count += int64(left)
    return count


@inner
def _move_eights(buffers, source, begin, n_eights, left, right):
    """Eight rows at a time; returns how many rows have been written on the left."""
    flags, rows, target_rows = buffers.flags, buffers.rows[source], buffers.rows[1 - source]
    ordered, target_ordered = buffers.ordered[source], buffers.ordered[1 - source]
    with_gradients = buffers.ordered.shape[1] > 0
    j, to_left, to_right = uint64(begin), uint64(left), uint64(right)
    for _ in range(n_eights):
        on_left = flag_bits(flags, j)
        on_right = uint8(~on_left)
        if with_gradients:
            compress_eight(ordered, j, on_left, target_ordered, to_left)
            compress_eight(ordered, j, on_right, target_ordered, to_right)
        n_left = compress_eight(rows, j, on_left, target_rows, to_left)
        to_right += compress_eight(rows, j, on_right, target_rows, to_right)
        to_left += n_left
        j += uint64(8)
    return int64(to_left) - left


@compiled
def move_rows(buffers, source, begin, end, left, right):
    """Write rows (and packed gradients, where there are any) from ``left`` or ``right`` on.

    buffers : RowBuffers; source : int, the buffer that is read
    """
    keep_apart()
    flags, rows, target_rows = buffers.flags, buffers.rows[source], buffers.rows[1 - source]
    if HAS_COMPRESS:
        n_eights = (end - begin) // 8
        n_left = _move_eights(buffers, source, begin, n_eights, left, right)
        begin, left, right = begin + 8 * n_eights, left + n_left, right + 8 * n_eights - n_left
    if buffers.ordered.shape[1] == 0:
        for i in range(begin, end):
            j = uint64(i)
            goes_left = int64(flags[j])
            target_rows[uint64(left if goes_left else right)] = rows[j]
            left += goes_left
            right += 1 - goes_left
        return
    ordered, target_ordered = buffers.ordered[source], buffers.ordered[1 - source]
    for i in range(begin, end):
        j = uint64(i)
        goes_left = int64(flags[j])
        position = uint64(left if goes_left else right)
        target_rows[position] = rows[j]
        target_ordered[position] = ordered[j]
        left += goes_left
        right += 1 - goes_left


@inner
def _flag_split(node, table, fields, categories, rows, begin, end, flags):
    column, missing_left = fields[node, COLUMN], fields[node, MISSING_LEFT]
    if (
        categories is not None
        and categories.is_category.shape[0] > 0
        and categories.is_category[column]
    ):
        left_set = categories.left_sets[node]
        return flag_level_rows(table, column, left_set, missing_left, rows, begin, end, flags)
    return flag_rows(table, column, fields[node, BIN], missing_left, rows, begin, end, flags)


@inner
def divide_rows(threads, node, table, nodes, categories, buffers):
    """Divide a node's rows by its split; returns how many go left, in threads that took part.

    Parameters
    ----------
    threads : Threads
        All of them call; they must meet before the rows are read.
    table : BinTable
    nodes : NodeStore
    categories : CategorySplits or None
    buffers : RowBuffers
    """
    fields, counts = nodes.fields, buffers.counts
    begin, end, source = fields[node, BEGIN], fields[node, END], fields[node, BUFFER]
    thread, n_parts = threads.number, np.int64(1)
    if end - begin >= _ROWS_WORTH_DIVIDING * threads.n_threads:
        n_parts = threads.n_threads
    low, high = share(end - begin, thread, n_parts)
    low, high = begin + low, begin + high
    if thread < n_parts:
        counts[8 * thread] = _flag_split(
            node, table, fields, categories, buffers.rows[source], low, high, buffers.flags
        )
    if n_parts > 1:
        barrier(threads)
    n_left, before = 0, 0
    if thread < n_parts:
        for t in range(n_parts):
            n_left += counts[8 * t]
            if t < thread:
                before += counts[8 * t]
        move_rows(
            buffers, source, low, high, begin + before, begin + n_left + (low - begin - before)
        )
    return n_left
