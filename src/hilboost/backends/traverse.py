"""Walk trees: on binned rows while learning, on raw values when predicting.

A forest is a set of flat arrays, all trees behind one another, and is evaluated for a block of rows
at a time, so that the loads of one row hide the latency of another.
"""

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from hilboost.backends.compiled import compiled
from hilboost.backends.levels import UNSEEN, level_goes_left
from hilboost.backends.nodes import BIN, COLUMN, LEFT, MISSING_LEFT, RIGHT

BLOCK = 64
FEWEST_ROWS_FOR_BITS = 8


@compiled
def binned_leaves(
    bins, n, nodes, leaf_of, levels, left_sets, missing_bin, rows, begin, end, leaf_of_row
):
    """Write the leaf number of ``rows[begin:end]`` of the binned table to ``leaf_of_row``.

    bins : (n_words * n * 8,) uint8; nodes : (n_nodes, N_NODE_FIELDS) int64
    leaf_of : (n_nodes,) int32, the leaf number of a node that is one
    levels, left_sets : see :func:`hilboost.backends.grow.grow`
    """
    for i in range(begin, end):
        row = rows[i]
        node = 0
        while nodes[node, LEFT] >= 0:
            column = nodes[node, COLUMN]
            b = bins[uint64((column // 8) * n * 8 + column % 8) + uint64(8) * uint64(row)]
            if b == missing_bin:
                left = nodes[node, MISSING_LEFT] != 0
            elif levels.shape[0] > 0 and levels[column]:
                left = level_goes_left(left_sets, node, np.float64(b))
            else:
                left = b <= nodes[node, BIN]
            node = nodes[node, LEFT] if left else nodes[node, RIGHT]
        leaf_of_row[row] = leaf_of[node]


@intrinsic
def _lowest_bit(typing_context, value):
    """Number of the lowest set bit of a uint64 that is not zero."""
    signature = types.int64(types.uint64)

    def codegen(context, builder, sig, args):
        int64, int1 = ir.IntType(64), ir.IntType(1)
        function = builder.module.declare_intrinsic(
            "llvm.cttz", [int64], ir.FunctionType(int64, [int64, int1])
        )
        return builder.call(function, [args[0], int1(1)])

    return signature, codegen


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

    Parameters
    ----------
    roots : (n_trees + 1,) int64, the last one past the end
    children : (n_nodes,) int32, behind their parents
    order : (n_nodes,) int64, written: first leaf number of the subtree
    masks : (n_nodes,) uint64, written: all but the leaves of the left subtree
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


@compiled
def _leaves_by_walking(
    nodes, root, depth, columns, thresholds, missing_right, children, X, first, count, has_missing
):
    """Leaf node of every row of a block, all rows one level a step; leaves point to themselves."""
    for i in range(count):
        nodes[i] = root
    for _ in range(depth):
        for i in range(count):
            node = nodes[i]
            value = X[first + i, columns[node]]
            right = value > thresholds[node]
            if has_missing:
                right |= (value != value) & missing_right[node]
            nodes[i] = children[node] + right


@compiled
def _goes_right(value, node, thresholds, missing_right, set_numbers, left_sets):
    if value != value:
        return missing_right[node]
    if left_sets.shape[0] > 0 and set_numbers[node] >= 0:
        return not level_goes_left(left_sets, set_numbers[node], value)
    return value > thresholds[node]


@compiled
def _leaves_by_sets(
    nodes,
    root,
    depth,
    columns,
    thresholds,
    missing_right,
    children,
    set_numbers,
    left_sets,
    X,
    first,
    count,
):
    """The same in a tree that splits on categories."""
    for i in range(count):
        nodes[i] = root
    for _ in range(depth):
        for i in range(count):
            node = nodes[i]
            value = np.float64(X[first + i, columns[node]])
            right = _goes_right(value, node, thresholds, missing_right, set_numbers, left_sets)
            nodes[i] = children[node] + right


@compiled
def _leaves_by_bits(words, inner, begin, end, columns, thresholds, missing_right, masks, block):
    """Words whose lowest bit is the leaf of every row; ``block`` (d, 64) holds the rows."""
    everything = masks[0] | ~masks[0]
    for i in range(BLOCK):
        words[i] = everything
    for i in range(begin, end):
        node = inner[i]
        threshold, mask = thresholds[node], masks[node]
        column = block[columns[node]]
        # Whole blocks, of a length known to the compiler: rows beyond ``count`` are ignored.
        if missing_right[node]:
            for k in range(BLOCK):
                words[k] &= everything if column[k] <= threshold else mask
        else:
            for k in range(BLOCK):
                words[k] &= mask if column[k] > threshold else everything


@compiled
def _leaves_by_bits_and_sets(
    words,
    inner,
    begin,
    end,
    columns,
    thresholds,
    missing_right,
    masks,
    block,
    set_numbers,
    left_sets,
):
    """The same in a tree that splits on categories."""
    everything = masks[0] | ~masks[0]
    for i in range(BLOCK):
        words[i] = everything
    for i in range(begin, end):
        node = inner[i]
        column, mask = block[columns[node]], masks[node]
        of_missing = mask if missing_right[node] else everything
        number = set_numbers[node]
        if number < 0:
            threshold = thresholds[node]
            for k in range(BLOCK):
                value = column[k]
                of_number = mask if value > threshold else everything
                words[k] &= of_number if value == value else of_missing
        else:
            first, second = left_sets[number, 0], left_sets[number, 1]
            third, fourth = left_sets[number, 2], left_sets[number, 3]
            for k in range(BLOCK):
                value = column[k]
                code = np.int32(value) if 0.0 <= value < UNSEEN else np.int32(UNSEEN)
                low, high = first if code < 64 else second, third if code < 192 else fourth
                word = low if code < 128 else high
                left = (word >> uint64(code & 63)) & uint64(1)
                of_level = everything if left else mask
                words[k] &= of_level if value == value else of_missing


@compiled
def add_forest(
    X,
    roots,
    depths,
    columns,
    thresholds,
    missing_right,
    children,
    set_numbers,
    left_sets,
    has_sets,
    inner,
    inner_start,
    masks,
    half_masks,
    value_offset,
    value_start,
    tree_leaves,
    values,
    widths,
    first_output,
    begin,
    end,
    has_missing,
    raw,
):
    """Add the leaf values of all trees to ``raw[begin:end]``.

    Parameters
    ----------
    X : (n, d) float32 or float64
    roots : (n_trees + 1,) int64; depths, tree_leaves : (n_trees,) int32
    columns, children : (n_nodes,) int32; a leaf is its own child
    thresholds : (n_nodes,) float64, ``inf`` at leaves
    missing_right : (n_nodes,) bool
    set_numbers : (n_nodes,) int32, the set of a node that splits on categories, else -1; (0,)
        without any
    left_sets : (n_sets, SET_WORDS) uint64, a bit a level that goes left
    has_sets : (n_trees,) bool, trees with such nodes
    inner : (n_inner,) int32, the nodes that are not leaves; tree ``t`` has those from
        ``inner_start[t]`` to ``inner_start[t + 1]``
    masks, half_masks : (n_nodes,) uint64, uint32, see :func:`mark_left_leaves`
    value_offset : (n_nodes,) int64, where a leaf's values begin in ``values``
    value_start : (n_trees,) int64, where a tree's values begin
    values : flat float64, the leaves of a tree from left to right, coefficients multiplied in
    widths, first_output : (n_trees,) int32, outputs of a tree and its first column of ``raw``
    raw : (n, r) float64

    Notes
    -----
    Cost O(n · nodes / 8) for trees of up to 64 leaves, whose tests run in vector registers, and
    O(n · depth) for larger ones.  For every row the trees are added in their order.
    """
    nodes = np.empty(BLOCK, np.int32)
    words = np.empty(BLOCK, np.uint64)
    half_words = np.empty(BLOCK, np.uint32)
    block = np.zeros((X.shape[1], BLOCK))
    for start in range(begin, end, BLOCK):
        count = min(BLOCK, end - start)
        by_bits = count >= FEWEST_ROWS_FOR_BITS
        if by_bits:
            for i in range(count):
                for k in range(X.shape[1]):
                    block[k, i] = X[start + i, k]
        for tree in range(depths.shape[0]):
            first, width = first_output[tree], widths[tree]
            if by_bits and tree_leaves[tree] <= 64:
                low, high = inner_start[tree], inner_start[tree + 1]
                if has_sets[tree]:
                    _leaves_by_bits_and_sets(
                        words,
                        inner,
                        low,
                        high,
                        columns,
                        thresholds,
                        missing_right,
                        masks,
                        block,
                        set_numbers,
                        left_sets,
                    )
                # Half words do for the usual small trees, and are twice as fast.
                elif tree_leaves[tree] <= 32:
                    _leaves_by_bits(
                        half_words,
                        inner,
                        low,
                        high,
                        columns,
                        thresholds,
                        missing_right,
                        half_masks,
                        block,
                    )
                    for i in range(BLOCK):
                        words[i] = half_words[i]
                else:
                    _leaves_by_bits(
                        words, inner, low, high, columns, thresholds, missing_right, masks, block
                    )
                if width == 1:
                    for i in range(count):
                        raw[start + i, first] += values[value_start[tree] + _lowest_bit(words[i])]
                else:
                    for i in range(count):
                        at = value_start[tree] + _lowest_bit(words[i]) * width
                        for k in range(width):
                            raw[start + i, first + k] += values[at + k]
            else:
                if has_sets[tree]:
                    _leaves_by_sets(
                        nodes,
                        roots[tree],
                        depths[tree],
                        columns,
                        thresholds,
                        missing_right,
                        children,
                        set_numbers,
                        left_sets,
                        X,
                        start,
                        count,
                    )
                else:
                    _leaves_by_walking(
                        nodes,
                        roots[tree],
                        depths[tree],
                        columns,
                        thresholds,
                        missing_right,
                        children,
                        X,
                        start,
                        count,
                        has_missing,
                    )
                for i in range(count):
                    at = value_offset[nodes[i]]
                    for k in range(width):
                        raw[start + i, first + k] += values[at + k]


@compiled
def forest_leaves(
    X,
    roots,
    columns,
    thresholds,
    missing_right,
    children,
    set_numbers,
    left_sets,
    leaf_number,
    begin,
    end,
    leaf_of_row,
):
    """Leaf number of every row in every tree, (n, n_trees) int32."""
    for i in range(begin, end):
        for tree in range(leaf_of_row.shape[1]):
            node = roots[tree]
            while children[node] != node:
                value = np.float64(X[i, columns[node]])
                right = _goes_right(value, node, thresholds, missing_right, set_numbers, left_sets)
                node = children[node] + right
            leaf_of_row[i, tree] = leaf_number[node]
