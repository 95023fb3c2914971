"""Walk a tree, or all trees of a forest, on binned rows that it was not grown from.

As in prediction, small trees of a forest are evaluated for 64 rows at a time.  The bins of these
rows take one byte each, so that one instruction compares many of them with a split.
"""

from typing import NamedTuple

import numpy as np
from numba import uint8, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, compiled, inner
from hilboost.backends.intrinsics import keep_inside, lowest_bit
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import level_goes_left
from hilboost.engine.ops.cpu.leaf_words import BLOCK, clear_in_bins
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, LEFT, MISSING_LEFT, RIGHT, GrownTree
from hilboost.engine.ops.cpu.traverse import add_values, mark_left_leaves


class BinnedTree(NamedTuple):
    """A grown tree over bins.

    Attributes
    ----------
    nodes : (n_nodes, N_NODE_FIELDS) int64
    leaf_number : (n_nodes,) int32
        -1 at inner nodes.
    masks : (n_nodes,) uint64
        See :func:`~hilboost.engine.ops.cpu.traverse.mark_left_leaves`.
    in_order : (n_leaves,) int32
        The leaf numbers from left to right.
    """

    nodes: NDArray[np.int64]
    leaf_number: NDArray[np.int32]
    masks: NDArray[np.uint64]
    in_order: NDArray[np.int32]


class WalkScratch(NamedTuple):
    """Working memory for one tree of up to so many nodes."""

    roots: NDArray[np.int64]  # (2,) int64
    order: NDArray[np.int64]  # (n_nodes,) int64: number of each leaf from left to right
    masks: NDArray[np.uint64]  # (n_nodes,) uint64
    in_order: NDArray[np.int32]  # (n_leaves,) int32
    words: NDArray[np.uint64]  # (64,) uint64


def walk_scratch(n_nodes: int) -> WalkScratch:
    """Memory for trees of so many nodes."""
    return WalkScratch(
        np.empty(2, dtype=np.int64),
        np.empty(n_nodes, dtype=np.int64),
        np.empty(n_nodes, dtype=np.uint64),
        np.empty((n_nodes + 1) // 2, dtype=np.int32),
        np.empty(BLOCK, dtype=np.uint64),
    )


@compiled
def order_leaves(child, leaf_number, scratch):
    """Write the masks of a tree, and its leaf numbers from left to right.

    child, leaf_number : (n_nodes,) int32; scratch : WalkScratch
    """
    n_nodes = child.shape[0]
    scratch.roots[0], scratch.roots[1] = 0, n_nodes
    mark_left_leaves(scratch.roots, child, scratch.order, scratch.masks)
    for node in range(n_nodes):
        if leaf_number[node] >= 0:
            scratch.in_order[scratch.order[node]] = leaf_number[node]


def binned_tree(nodes: NDArray[np.int64], tree: GrownTree) -> BinnedTree:
    """Arrange the nodes of a tree for :func:`binned_leaves`."""
    scratch = walk_scratch(len(nodes))
    order_leaves(tree.child, tree.leaf_number, scratch)
    return BinnedTree(nodes, tree.leaf_number, scratch.masks, scratch.in_order)


@inner
def _level_goes_left(table, nodes, categories, node, b):
    """Whether a bin of a node that splits on categories goes left."""
    if b == table.n_bins - 1:
        return nodes[node, MISSING_LEFT] != 0
    return level_goes_left(categories.left_sets, node, np.float64(b))


@inner
def _binned_leaf_by_walking(table, tree, categories, row):
    nodes, is_category = tree.nodes, categories.is_category
    node = 0
    while nodes[node, LEFT] >= 0:
        column = nodes[node, COLUMN]
        b = np.int64(table.flat[offset_of(table, column) + uint64(8) * uint64(row)])
        if is_category.shape[0] > 0 and is_category[column]:
            left = _level_goes_left(table, nodes, categories, node, b)
        elif b == table.n_bins - 1:
            left = nodes[node, MISSING_LEFT] != 0
        else:
            left = b <= nodes[node, BIN]
        node = nodes[node, LEFT] if left else nodes[node, RIGHT]
    return tree.leaf_number[node]


@inner
def _clear_by_bins(words, column_words, shift, low, width, mask):
    """Clear the left subtree where the bin is one of the ``width`` from ``low`` on."""
    everything = mask | ~mask
    for k in range(BLOCK):
        b = (column_words[k] >> shift) & uint64(255)
        words[k] &= mask if b - low < width else everything


@inner
def _binned_leaves_by_bits(table, tree, categories, first, words):
    """Words whose lowest bit is the leaf of each of the 64 rows from ``first`` on."""
    nodes, is_category, n_bins = tree.nodes, categories.is_category, table.n_bins
    everything = tree.masks[0] | ~tree.masks[0]
    for k in range(BLOCK):
        words[k] = everything
    for node in range(nodes.shape[0]):
        if nodes[node, LEFT] < 0:
            continue
        column, mask = nodes[node, COLUMN], tree.masks[node]
        column_words = table.words[column // 8, first : first + BLOCK]
        shift = uint64(8 * (column % 8))
        if is_category.shape[0] > 0 and is_category[column]:
            for k in range(BLOCK):
                b = np.int64((column_words[k] >> shift) & uint64(255))
                if not _level_goes_left(table, nodes, categories, node, b):
                    words[k] &= mask
        else:
            # The bin of missing values is the last one.
            low = nodes[node, BIN] + 1
            width = n_bins - low - nodes[node, MISSING_LEFT]
            _clear_by_bins(words, column_words, shift, uint64(low), uint64(width), mask)


@compiled
def binned_leaves(table, tree, categories, words, begin, end, leaf_of_row):
    """Find the leaves of those rows of the binned table that are marked with -1.

    ``words``: (64,) uint64, working memory. ``leaf_of_row``: (n,) int32, written between ``begin``
    and ``end``.

    Notes
    -----
    Trees of up to 64 leaves are evaluated for 64 rows at a time by bits, as in prediction,
    cost O(n · nodes / 8) in vector registers, and larger ones row by row, O(n · depth).
    """
    if tree.in_order.shape[0] > 64 or end - begin < BLOCK:
        for row in range(begin, end):
            if leaf_of_row[row] < 0:
                leaf_of_row[row] = _binned_leaf_by_walking(table, tree, categories, row)
        return
    for start in range(begin, end, BLOCK):
        first = min(start, end - BLOCK)
        least = leaf_of_row[first]
        for k in range(BLOCK):
            least = min(least, leaf_of_row[first + k])
        if least < 0:
            _binned_leaves_by_bits(table, tree, categories, first, words)
            for k in range(BLOCK):
                if leaf_of_row[first + k] < 0:
                    leaf_of_row[first + k] = tree.in_order[lowest_bit(words[k])]


@inner
def _unpack(words, first, count, block):
    """Write the bins of ``count`` rows to ``block`` (8 * n_words, 64) uint8, column by column."""
    for w in range(words.shape[0]):
        column_words = words[w, first : first + count]
        for k in range(8):
            column, shift = block[8 * w + k], uint64(8 * k)
            for i in range(count):
                column[i] = uint8(column_words[i] >> shift)


@inner
def _exclude_by_set(words, column, sets, number, last_bin, missing_right, mask):
    """The same for the levels that are not in a set; the last bin is that of missing values."""
    everything = mask | ~mask
    for k in range(BLOCK):
        right = not level_goes_left(sets, number, np.float64(column[k]))
        if column[k] == last_bin:
            right = missing_right
        words[k] &= mask if right else everything


@inner
def _leaves_by_bits(words, tree, trees, leaf_masks, masks, last_bin, block):
    """Words whose lowest bit is the leaf of every row of a block."""
    keep_inside()
    everything = masks[0] | ~masks[0]
    for k in range(BLOCK):
        words[k] = everything
    first, last, inner = leaf_masks.start[tree], leaf_masks.start[tree + 1], leaf_masks.inner
    if not trees.has_sets[tree]:
        clear_in_bins(words, block, inner, first, last, trees, masks, last_bin)
        return
    for i in range(first, last):
        node = inner[uint64(i)]
        number = trees.set_numbers[node]
        if number < 0:
            clear_in_bins(words, block, inner, i, i + 1, trees, masks, last_bin)
        else:
            column, right = block[trees.column[node]], trees.missing_right[node]
            _exclude_by_set(words, column, trees.left_sets, number, last_bin, right, masks[node])


@inner
def _leaf_by_walking(tree, trees, last_bin, block, i):
    """The leaf node of row ``i`` of a block."""
    node = trees.roots[tree]
    while trees.child[node] != node:
        b = np.int64(block[trees.column[node], i])
        if b == last_bin:
            right = np.int64(trees.missing_right[node])
        elif trees.set_numbers.shape[0] > 0 and trees.set_numbers[node] >= 0:
            number = trees.set_numbers[node]
            right = np.int64(not level_goes_left(trees.left_sets, number, np.float64(b)))
        else:
            right = np.int64(b > np.int64(trees.threshold[node]))
        node = trees.child[node] + right
    return node


@inner
def _add_tree(tree, forest, last_bin, scratch, raw, begin, count):
    """Add the leaf values of a tree for a block of rows."""
    keep_inside()
    trees, leaf_masks, leaves = forest
    block, words, half_words = scratch
    if leaves.per_tree[tree] <= 32:
        masks = leaf_masks.half_masks
        _leaves_by_bits(half_words, tree, trees, leaf_masks, masks, last_bin, block)
        add_values(half_words, leaves, tree, raw, begin, count)
    elif leaves.per_tree[tree] <= 64:
        _leaves_by_bits(words, tree, trees, leaf_masks, leaf_masks.masks, last_bin, block)
        add_values(words, leaves, tree, raw, begin, count)
    else:
        first = leaves.first_output[tree]
        for i in range(count):
            at = leaves.offset[_leaf_by_walking(tree, trees, last_bin, block, i)]
            for k in range(leaves.widths[tree]):
                raw[begin + i, first + k] += leaves.values[at + k]


@allocating
def add_forest_on_bins(words, last_bin, forest, begin, end, raw):
    """Add the leaf values of all trees to ``raw[begin:end]``.

    ``words``: (n_words, n) uint64: the bins, as in
    :class:`~hilboost.engine.ops.cpu.binning.BinTable`. ``last_bin``: the bin of missing values.
    ``forest``: FlatForest with a uint8 array of thresholds: a row goes right if its bin is larger.
    ``raw``: (n, r) float64.

    Notes
    -----
    Cost O(n · nodes / 16) for trees of up to 64 leaves, in vector registers, and O(n · depth) for
    larger ones.  For every row the trees are added in their order.
    """
    scratch = (
        np.zeros((8 * words.shape[0], BLOCK), np.uint8),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint32),
    )
    for start in range(begin, end, BLOCK):
        count = min(BLOCK, end - start)
        _unpack(words, start, count, scratch[0])
        for tree in range(forest.trees.depths.shape[0]):
            _add_tree(tree, forest, last_bin, scratch, raw, start, count)
