"""Walk trees on raw values, to predict.

A forest is a set of flat arrays, all trees behind one another, and is evaluated for a block of rows
at a time, so that the loads of one row hide the latency of another.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import allocating, compiled, inner
from hilboost.backends.intrinsics import keep_apart, keep_inside, lowest_bit
from hilboost.engine.ops.cpu.category_splits import UNSEEN, level_goes_left
from hilboost.engine.ops.cpu.leaf_words import BLOCK, clear_above, clear_not_below

FEWEST_ROWS_FOR_BITS = 8
SPLIT_COLUMN, CHILD, MISSING_RIGHT, SET_OR_VALUES, N_LINKS = range(5)
"""Columns of the links of :func:`walk_rows`."""
ROOT, FIRST_OUTPUT, WIDTH = range(3)
"""Columns of the trees of :func:`walk_rows`."""


class FlatTrees(NamedTuple):
    """The nodes of all trees behind one another."""

    roots: NDArray[np.int64]  # (n_trees + 1,) int64: the last one past the end
    depths: NDArray[np.int32]  # (n_trees,) int32
    # (n_nodes,) int32: the left child, the right one follows it; a leaf is its own child
    column: NDArray[np.int32]
    # (n_nodes,) float64, or float32 for rows of float32, or uint8 for bins: ``inf`` at leaves
    threshold: NDArray[np.float64]
    missing_right: NDArray[np.bool_]  # (n_nodes,) bool
    # (n_nodes,) int32: the left child, the right one follows it; a leaf is its own child
    child: NDArray[np.int32]
    # (n_nodes,) int32: the set of a node that splits on categories, else -1; (0,) without any
    set_numbers: NDArray[np.int32]
    left_sets: NDArray[np.uint64]  # (n_sets, SET_WORDS) uint64: a bit a level that goes left


class LeafMasks(NamedTuple):
    """How leaves are found without walking; see :func:`mark_left_leaves`."""

    # (n_inner,) int32: the nodes that are not leaves, one tree after the other; in a tree, first
    # the nodes from which missing values go left, then the others, and splits on categories last
    inner: NDArray[np.int32]
    start: NDArray[np.int64]  # (n_trees, 4) int64: where these three parts begin, and the end
    masks: NDArray[np.uint64]  # (n_nodes,) uint64
    half_masks: NDArray[np.uint32]  # (n_nodes,) uint32


class FlatLeaves(NamedTuple):
    """The leaf values of all trees, coefficients multiplied in.

    Attributes
    ----------
    number : (n_nodes,) int32
        -1 at inner nodes.
    offset : (n_nodes,) int64
        Where a leaf's values begin in ``values``.
    values : flat float64
        The leaves of a tree from left to right.
    start : (n_trees,) int64
        Where a tree's values begin.
    per_tree, widths, first_output : (n_trees,) int32
        Leaves and outputs of a tree, and its first column of ``raw``.
    """

    number: NDArray[np.int32]
    offset: NDArray[np.int64]
    values: NDArray[np.float64]
    start: NDArray[np.int64]
    per_tree: NDArray[np.int32]
    widths: NDArray[np.int32]
    first_output: NDArray[np.int32]


class FlatForest(NamedTuple):
    """Trees, and how their leaves are found and added."""

    trees: FlatTrees
    masks: LeafMasks
    leaves: FlatLeaves


class BlockScratch(NamedTuple):
    """Memory for a block of rows."""

    # (d, BLOCK) float64 or float32, like thresholds: the rows, column by column
    block: NDArray[np.float64]
    words: NDArray[np.uint64]  # (BLOCK,) uint64: leaves that are not excluded yet
    half_words: NDArray[np.uint32]  # (BLOCK,) uint32: the same
    nodes: NDArray[np.int32]  # (BLOCK,) int32: where rows that walk have come


@compiled
def mark_left_leaves(roots, children, order, masks):
    r"""Number the leaves of every tree from left to right, and note which a right turn excludes.

    A tree of at most 64 leaves is evaluated without walking: a word starts with all bits set, each
    inner node whose test fails clears the bits of its left subtree, and the lowest bit left is the
    leaf (Lucchese et al., *QuickScorer*, 2015)::

              x0 > 1            leaves  0 1 2
             /      \           x0 = 2: clear leaf 0      -> . 1 1
          leaf 0   x1 > 5       x1 = 3: nothing to clear  -> . 1 1  -> leaf 1
                   /    \
               leaf 1  leaf 2

    ``roots``: (n_trees + 1,) int64, the last one past the end. ``children``: (n_nodes,) int32,
    behind their parents. ``order``: (n_nodes,) int64, written: first leaf number of the subtree.
    ``masks``: (n_nodes,) uint64, written: all but the leaves of the left subtree.
    """
    for tree in range(roots.shape[0] - 1):
        first, last = roots[tree], roots[tree + 1]
        for node in range(last - 1, first - 1, -1):
            child = children[node]
            masks[node] = uint64(1) if child == node else masks[child] + masks[child + 1]
        order[first] = 0
        for node in range(first, last):
            child = children[node]
            if child != node:
                n_left = masks[child]
                order[child] = order[node]
                order[child + 1] = order[node] + np.int64(n_left)
                if n_left < uint64(64):
                    left = (uint64(1) << n_left) - uint64(1)
                    masks[node] = ~(left << uint64(order[node]))


@inner
def goes_right(value, node, trees):
    """Whether a value goes right at a split of a forest."""
    if value != value:
        return trees.missing_right[node]
    if trees.left_sets.shape[0] > 0 and trees.set_numbers[node] >= 0:
        return not level_goes_left(trees.left_sets, trees.set_numbers[node], value)
    return value > trees.threshold[node]


@inner
def _walk_block(tree, trees, with_sets, has_missing, block, count, nodes):
    """Leaf node of every row of a block, all rows one level a step; leaves point to themselves."""
    for i in range(count):
        nodes[i] = trees.roots[tree]
    for _ in range(trees.depths[tree]):
        for i in range(count):
            node = nodes[i]
            value = block[trees.column[node], i]
            if with_sets:
                right = goes_right(np.float64(value), node, trees)
            else:
                right = value > trees.threshold[node]
                if has_missing:
                    right |= (value != value) & trees.missing_right[node]
            nodes[i] = trees.child[node] + right


@inner
def _clear_by_set(words, column, left_set, mask, of_missing):
    """Clear the bits of ``mask`` where a row's level is not in the set."""
    everything = mask | ~mask
    first, second, third, fourth = left_set[0], left_set[1], left_set[2], left_set[3]
    for k in range(BLOCK):
        value = column[k]
        code = np.int32(value) if 0.0 <= value < UNSEEN else np.int32(UNSEEN)
        low, high = first if code < 64 else second, third if code < 192 else fourth
        word = low if code < 128 else high
        left = (word >> uint64(code & 63)) & uint64(1)
        of_level = everything if left else mask
        words[k] &= of_level if value == value else of_missing


@inner
def leaves_by_bits(words, tree, trees, leaf_masks, masks, block):
    """Words whose lowest bit is the leaf of every row; ``block`` (d, 64) holds the rows."""
    keep_inside()
    everything = masks[0] | ~masks[0]
    for k in range(BLOCK):
        words[k] = everything
    parts, inner = leaf_masks.start[tree], leaf_masks.inner
    clear_above(words, block, inner, parts[0], parts[1], trees, masks)
    clear_not_below(words, block, inner, parts[1], parts[2], trees, masks)
    for i in range(parts[2], parts[3]):
        node = inner[i]
        column, left_set = block[trees.column[node]], trees.left_sets[trees.set_numbers[node]]
        of_missing = masks[node] if trees.missing_right[node] else everything
        _clear_by_set(words, column, left_set, masks[node], of_missing)


@inner
def _add_values(words, leaves, tree, raw, begin, count):
    """Add the leaf values that the lowest bits of words (BLOCK,) uint64 or uint32 say."""
    keep_inside()
    first, width, of_tree = leaves.first_output[tree], leaves.widths[tree], leaves.start[tree]
    if width == 1:
        output = raw[:, first]
        values = leaves.values[of_tree : of_tree + leaves.per_tree[tree]]
        for i in range(count):
            output[uint64(begin + i)] += values[uint64(lowest_bit(uint64(words[i])))]
        return
    for i in range(count):
        at = of_tree + lowest_bit(uint64(words[i])) * width
        for k in range(width):
            raw[begin + i, first + k] += leaves.values[at + k]


@inner
def add_block(forest, scratch, has_missing, raw, begin, count):
    """Add the leaf values of all trees for a block of rows, which is in the scratch."""
    keep_apart()
    trees, leaf_masks, leaves = forest
    block, words, half_words, nodes = scratch
    for tree in range(trees.depths.shape[0]):
        # Half words do for the usual small trees, and are twice as fast.
        if leaves.per_tree[tree] <= 32:
            leaves_by_bits(half_words, tree, trees, leaf_masks, leaf_masks.half_masks, block)
            _add_values(half_words, leaves, tree, raw, begin, count)
        elif leaves.per_tree[tree] <= 64:
            leaves_by_bits(words, tree, trees, leaf_masks, leaf_masks.masks, block)
            _add_values(words, leaves, tree, raw, begin, count)
        else:
            parts, first = leaf_masks.start[tree], leaves.first_output[tree]
            _walk_block(tree, trees, parts[2] < parts[3], has_missing, block, count, nodes)
            for i in range(count):
                at = leaves.offset[nodes[i]]
                for k in range(leaves.widths[tree]):
                    raw[begin + i, first + k] += leaves.values[at + k]


@allocating
def add_forest(X, forest, begin, end, has_missing, raw):
    """Add the leaf values of all trees to ``raw[begin:end]``.

    ``X``: (n, d) float32 or float64. ``forest``: FlatForest. ``has_missing``: false where no value
    is missing in rows that walk. ``raw``: (n, r) float64.

    Notes
    -----
    Cost O(n · nodes / 8) for trees of up to 64 leaves, whose tests run in vector registers, and
    O(n · depth) for larger ones.  For every row the trees are added in their order.
    """
    scratch = BlockScratch(
        np.zeros((X.shape[1], BLOCK), forest.trees.threshold.dtype),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.int32),
    )
    for start in range(begin, end, BLOCK):
        count = min(BLOCK, end - start)
        for i in range(count):
            for k in range(X.shape[1]):
                scratch.block[k, i] = X[uint64(start + i), k]
        add_block(forest, scratch, has_missing, raw, start, count)


@compiled
def walk_rows(X, trees, thresholds, links, left_sets, values, raw):
    """Add the leaf values of all trees to a few rows, which walk from the roots.

    Without records of arrays, which cost more to pass than one row takes to walk.

    ``X``: (n, d) float32 or float64. ``trees``: (n_trees, 3) int32: root, first output, number of
    outputs. ``thresholds``: (n_nodes,) float64, ``inf`` at leaves. ``links``: (n_nodes, 4) int32:
    column; left child (a leaf is its own child); 1 where missing values go right; set of levels, -1
    for none, or at a leaf where its values begin. ``left_sets``: (n_sets, SET_WORDS) uint64.
    ``raw``: (n, r) float64.
    """
    for i in range(X.shape[0]):
        for tree in range(trees.shape[0]):
            node = trees[tree, ROOT]
            child = links[node, CHILD]
            while child != node:
                value = np.float64(X[i, links[node, SPLIT_COLUMN]])
                if value != value:
                    right = links[node, MISSING_RIGHT] != 0
                elif left_sets.shape[0] > 0 and links[node, SET_OR_VALUES] >= 0:
                    right = not level_goes_left(left_sets, links[node, SET_OR_VALUES], value)
                else:
                    right = value > thresholds[node]
                node = child + np.int32(right)
                child = links[node, CHILD]
            at, first = links[node, SET_OR_VALUES], trees[tree, FIRST_OUTPUT]
            for k in range(trees[tree, WIDTH]):
                raw[i, first + k] += values[at + k]


@compiled
def forest_leaves(X, trees, leaf_number, begin, end, leaf_of_row):
    """Leaf number of every row in every tree, (n, n_trees) int32.

    X : (n, d); trees : FlatTrees; leaf_number : (n_nodes,) int32
    """
    for i in range(begin, end):
        for tree in range(leaf_of_row.shape[1]):
            node = trees.roots[tree]
            while trees.child[node] != node:
                value = np.float64(X[i, trees.column[node]])
                node = trees.child[node] + goes_right(value, node, trees)
            leaf_of_row[i, tree] = leaf_number[node]
