"""Walk the trees of a forest on binned rows.

As in prediction, small trees are evaluated for 64 rows at a time.  The bins of these rows take one
byte each, so that one instruction compares many of them with a split.
"""

import numpy as np
from numba import uint8, uint64

from hilboost.backends.compiled import allocating, inner
from hilboost.backends.intrinsics import keep_inside
from hilboost.engine.ops.cpu.category_splits import level_goes_left
from hilboost.engine.ops.cpu.leaf_words import BLOCK, clear_in_bins
from hilboost.engine.ops.cpu.traverse import add_values


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
