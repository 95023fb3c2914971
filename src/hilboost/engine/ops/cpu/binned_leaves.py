"""Walk a tree on binned rows: those that it was not grown from."""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import lowest_bit
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import level_goes_left
from hilboost.engine.ops.cpu.grown_tree import GrownTree
from hilboost.engine.ops.cpu.leaf_words import BLOCK
from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, LEFT, MISSING_LEFT, RIGHT
from hilboost.engine.ops.cpu.traverse import mark_left_leaves


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
