"""Leaves of binned rows that a tree was not grown from, and outputs of a forest on bins."""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.nodes import LEFT, N_NODES, RIGHT
from hilboost.engine.ops.cpu.partition import RowBuffers, flag_split, move_rows
from hilboost.engine.ops.cpu.traverse import BlockScratch, add_block

_ROWS_AT_A_TIME = 2**15


class OtherRows(NamedTuple):
    """Memory for rows that a tree was not grown from."""

    rows: NDArray[np.uint32]  # (2, k) uint32
    flags: NDArray[np.uint8]  # (k,) uint8
    ranges: NDArray[np.int64]  # (n_nodes, 3) int64: where the rows of a node are: array, begin, end
    nothing: NDArray[np.int64]  # (2, 0) int64: in place of gradients


def other_rows(n_threads: int, n_rows: int, n_nodes: int) -> OtherRows:
    """Memory for each thread, for nodes and rows of a table."""
    k = min(n_rows, _ROWS_AT_A_TIME)
    return OtherRows(
        np.empty((n_threads, 2, k), dtype=np.uint32),
        np.empty((n_threads, k), dtype=np.uint8),
        np.empty((n_threads, n_nodes, 3), dtype=np.int64),
        np.empty((2, 0), dtype=np.int64),
    )


@inner
def _divide(node, table, fields, categories, others):
    """Divide the rows of a node among its children by its split."""
    ranges = others.ranges
    side, begin, end = ranges[node, 0], ranges[node, 1], ranges[node, 2]
    rows, flags = others.rows[side, begin:end], others.flags[begin:end]
    n_left = flag_split(node, table, fields, categories, rows, flags)
    buffers, middle = RowBuffers(others.rows, others.nothing, others.flags, None), begin + n_left
    move_rows(buffers, side, side, begin, end, begin, middle)
    left, right = fields[node, LEFT], fields[node, RIGHT]
    ranges[left, 0], ranges[left, 1], ranges[left, 2] = side, begin, middle
    ranges[right, 0], ranges[right, 1], ranges[right, 2] = 1 - side, middle, end


@compiled
def find_leaves(table, nodes, categories, leaf_numbers, others, part, leaf_of_row):
    """Find the leaves of the rows of a part of the table that are marked with -1.

    They are divided as the rows that the tree was grown from, some of them at a time.

    ``nodes``: NodeStore. ``categories``: CategorySplits or None. ``leaf_numbers``: (n_nodes,)
    int32, -1 at inner nodes. ``others``: OtherRows of one thread. ``part``: the first row and the
    end. ``leaf_of_row``: (n,) int32, written.

    Notes
    -----
    Cost O(n · depth).
    """
    keep_apart()
    (begin, end), fields, rows, ranges = part, nodes.fields, others.rows, others.ranges
    for first in range(begin, end, _ROWS_AT_A_TIME):
        n_rows = np.int64(0)
        for row in range(first, min(first + _ROWS_AT_A_TIME, end)):
            if leaf_of_row[row] < 0:
                rows[0, n_rows] = row
                n_rows += 1
        ranges[0, 0], ranges[0, 1], ranges[0, 2] = 0, 0, n_rows
        for node in range(nodes.control[N_NODES]):  # parents before their children
            if fields[node, LEFT] >= 0:
                _divide(node, table, fields, categories, others)
                continue
            for i in range(ranges[node, 1], ranges[node, 2]):
                leaf_of_row[rows[ranges[node, 0], uint64(i)]] = leaf_numbers[node]


@inner
def _unpack(words, columns, last_bin, first, count, block):
    """Write the bins of ``count`` rows to ``block`` (n_columns, 64) float32, column by column."""
    for c in range(columns.shape[0]):
        column, shift = block[c], uint64(8 * (columns[c] % 8))
        column_words = words[columns[c] // 8, first : first + count]
        for i in range(count):
            b = np.int32((column_words[i] >> shift) & uint64(255))
            column[i] = np.nan if b == last_bin else b


@allocating
def add_forest_on_bins(table, columns, forest, begin, end, raw):
    """Add the leaf values of all trees to ``raw[begin:end]``.

    ``columns``: (k,) int64: the column of the table for each column of the forest.
    ``forest``: FlatForest with a float32 array of bins as thresholds. ``raw``: (n, r) float64.

    Notes
    -----
    Cost as in :func:`~hilboost.engine.ops.cpu.traverse.add_forest`.
    """
    scratch = BlockScratch(
        np.zeros((columns.shape[0], BLOCK), np.float32),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.int32),
    )
    for start in range(begin, end, BLOCK):
        count = min(BLOCK, end - start)
        _unpack(table.words, columns, table.n_bins - 1, start, count, scratch.block)
        add_block(forest, scratch, True, raw, start, count)
