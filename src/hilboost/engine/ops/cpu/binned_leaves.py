"""Walk a tree, or all trees of a forest, on binned rows that it was not grown from.

A block of 64 rows is evaluated as in prediction: bins take the place of values, NaN that of the
last bin, which holds missing values.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, compiled, inner
from hilboost.backends.intrinsics import lowest_bit
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import level_goes_left
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, DEPTH, LEFT, MISSING_LEFT, RIGHT
from hilboost.engine.ops.cpu.traverse import (
    BlockScratch,
    FlatTrees,
    LeafMasks,
    add_block,
    leaves_by_bits,
    mark_left_leaves,
)


class GrownForest(NamedTuple):
    """One grown tree as a forest over bins; :func:`note_tree` writes it."""

    nodes: NDArray[np.int64]  # (n_nodes, N_NODE_FIELDS) int64: the given ones
    trees: FlatTrees  # with a float32 array of bins as thresholds, and columns numbered anew
    masks: LeafMasks
    order: NDArray[np.int64]  # (n_nodes,) int64: number of each leaf from left to right
    in_order: NDArray[np.int32]  # (n_leaves,) int32: the leaf numbers from left to right
    leaf_number: NDArray[np.int32]  # (n_nodes,) int32
    used: NDArray[np.int64]  # (k,) int64: columns of the splits, in the order of their numbers
    numbers: NDArray[np.int64]  # (d,) int64: working memory, -1 between trees


def empty_forest(nodes: NDArray[np.int64], d: int, left_sets: NDArray[np.uint64]) -> GrownForest:
    """Memory for a tree of these nodes or fewer in the same memory, and of these level sets."""
    n_nodes = len(nodes)
    trees = FlatTrees(
        roots=np.zeros(2, dtype=np.int64),
        depths=np.zeros(1, dtype=np.int32),
        column=np.empty(n_nodes, dtype=np.int32),
        threshold=np.empty(n_nodes, dtype=np.float32),
        missing_right=np.empty(n_nodes, dtype=np.bool_),
        child=np.empty(n_nodes, dtype=np.int32),
        set_numbers=np.empty(n_nodes, dtype=np.int32),
        left_sets=left_sets,
    )
    return GrownForest(
        nodes,
        trees,
        LeafMasks(
            np.empty(n_nodes // 2, dtype=np.int32),
            np.zeros((1, 4), dtype=np.int64),
            np.empty(n_nodes, dtype=np.uint64),
            np.empty(n_nodes, dtype=np.uint32),
        ),
        order=np.empty(n_nodes, dtype=np.int64),
        in_order=np.empty((n_nodes + 1) // 2, dtype=np.int32),
        leaf_number=np.empty(n_nodes, dtype=np.int32),
        used=np.empty(min(d, n_nodes // 2), dtype=np.int64),
        numbers=np.full(d, -1),
    )


def block_scratch(n_columns: int) -> BlockScratch:
    """Memory for a block of rows, column by column."""
    return BlockScratch(
        np.zeros((n_columns, BLOCK), dtype=np.float32),
        np.empty(BLOCK, dtype=np.uint64),
        np.empty(BLOCK, dtype=np.uint32),
        np.empty(BLOCK, dtype=np.int32),
    )


@inner
def _number_of(column, n_used, forest):
    """Number a column if it is new; returns its number and how many columns have one."""
    if forest.numbers[column] < 0:
        forest.numbers[column], forest.used[n_used] = n_used, column
        n_used += 1
    return forest.numbers[column], n_used


@compiled
def note_tree(n_nodes, is_category, forest):
    """Write a tree of the first nodes; returns the number of columns of its splits.

    is_category : (d,) uint8, or (0,) without categories
    """
    nodes = forest.nodes
    trees, masks, n_used, n_leaves = forest.trees, forest.masks, np.int64(0), np.int64(0)
    trees.roots[1], trees.depths[0] = n_nodes, 0
    for node in range(n_nodes):
        column, left = nodes[node, COLUMN], nodes[node, LEFT]
        trees.depths[0] = max(trees.depths[0], nodes[node, DEPTH])
        trees.child[node], trees.column[node], trees.threshold[node] = node, 0, np.inf
        trees.set_numbers[node], trees.missing_right[node] = -1, False
        forest.leaf_number[node] = n_leaves
        n_leaves += np.int64(left < 0)
        if left >= 0:
            trees.column[node], n_used = _number_of(column, n_used, forest)
            trees.child[node], trees.threshold[node] = left, nodes[node, BIN]
            trees.missing_right[node] = nodes[node, MISSING_LEFT] == 0
            if is_category.shape[0] > 0 and is_category[column] != 0:
                trees.set_numbers[node] = node
    mark_left_leaves(trees.roots, trees.child, forest.order, masks.masks)
    n_inner = np.int64(0)
    for part in range(3):
        masks.start[0, part] = n_inner
        for node in range(n_nodes):
            own = 2 if trees.set_numbers[node] >= 0 else np.int64(trees.missing_right[node])
            if trees.child[node] != node and own == part:
                masks.inner[n_inner] = node
                n_inner += 1
    masks.start[0, 3] = n_inner
    for node in range(n_nodes):
        masks.half_masks[node] = np.uint32(masks.masks[node])
        if trees.child[node] == node:
            forest.in_order[forest.order[node]] = forest.leaf_number[node]
    for k in range(n_used):
        forest.numbers[forest.used[k]] = -1
    return n_used


@inner
def _unpack(words, columns, last_bin, first, count, block):
    """Write the bins of ``count`` rows to ``block`` (n_columns, 64) float32, column by column."""
    for c in range(columns.shape[0]):
        column, shift = block[c], uint64(8 * (columns[c] % 8))
        column_words = words[columns[c] // 8, first : first + count]
        for i in range(count):
            b = np.int32((column_words[i] >> shift) & uint64(255))
            column[i] = np.nan if b == last_bin else b


@inner
def _leaf_by_walking(table, forest, row):
    """The leaf number of a row of the table."""
    nodes, trees, node = forest.nodes, forest.trees, np.int64(0)
    while nodes[node, LEFT] >= 0:
        place = offset_of(table, nodes[node, COLUMN]) + uint64(8) * uint64(row)
        b = np.int64(table.flat[place])
        if b == table.n_bins - 1:
            left = nodes[node, MISSING_LEFT] != 0
        elif trees.left_sets.shape[0] > 0 and trees.set_numbers[node] >= 0:
            left = level_goes_left(trees.left_sets, node, np.float64(b))
        else:
            left = b <= nodes[node, BIN]
        node = nodes[node, LEFT] if left else nodes[node, RIGHT]
    return forest.leaf_number[node]


@compiled
def binned_leaves(table, forest, n_used, scratch, rows, leaf_of_row):
    """Find the leaves of those rows of the binned table that are marked with -1.

    ``forest``: GrownForest with splits of ``n_used`` columns. ``scratch``: BlockScratch of as many
    columns or more. ``rows``: begin and end. ``leaf_of_row``: (n,) int32, written there.

    Notes
    -----
    Trees of up to 64 leaves are evaluated by bits, as in prediction, cost O(n · nodes / 16) in
    vector registers, and larger ones row by row, O(n · depth).
    """
    (begin, end), trees, masks, last_bin = rows, forest.trees, forest.masks, table.n_bins - 1
    block, words, half_words, _ = scratch
    n_leaves = (trees.roots[1] + 1) // 2
    if n_leaves > 64:
        for row in range(begin, end):
            if leaf_of_row[row] < 0:
                leaf_of_row[row] = _leaf_by_walking(table, forest, row)
        return
    for start in range(begin, end, BLOCK):
        count, least = min(BLOCK, end - start), np.int32(0)
        for i in range(start, start + count):
            least = min(least, leaf_of_row[i])
        if least == 0:
            continue
        _unpack(table.words, forest.used[:n_used], last_bin, start, count, block)
        if n_leaves <= 32:
            leaves_by_bits(half_words, 0, trees, masks, masks.half_masks, block)
        else:
            leaves_by_bits(words, 0, trees, masks, masks.masks, block)
        for i in range(count):
            if leaf_of_row[start + i] < 0:
                word = uint64(half_words[i]) if n_leaves <= 32 else words[i]
                leaf_of_row[start + i] = forest.in_order[lowest_bit(word)]


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
