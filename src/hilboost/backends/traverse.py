"""Walk trees: on binned rows while learning, on raw values when predicting.

A forest is a set of flat arrays, all trees behind one another.  The walk keeps several rows of a
block in flight, so that the loads of one hide the latency of another.
"""

import numpy as np
from numba import uint64

from hilboost.backends.compiled import compiled

_BLOCK = 64


@compiled
def binned_cells(bins, n, nodes, leaf_of, missing_bin, rows, begin, end, cells):
    """Leaf number of ``rows[begin:end]`` of the learnt table, written to ``cells`` at the rows.

    bins : (n_words * n * 8,) uint8; nodes : (n_nodes, N_NODE_FIELDS) int64
    leaf_of : (n_nodes,) int32, the leaf number of a node that is one
    """
    for i in range(begin, end):
        row = rows[i]
        node = 0
        while nodes[node, 8] >= 0:
            column = nodes[node, 5]
            b = bins[uint64((column // 8) * n * 8 + column % 8) + uint64(8) * uint64(row)]
            left = nodes[node, 7] != 0 if b == missing_bin else b <= nodes[node, 6]
            node = nodes[node, 8] if left else nodes[node, 9]
        cells[row] = leaf_of[node]


@compiled
def _step(nodes, thresholds, columns, missing_right, children, X, first, count, has_missing):
    """Move every row of a block one level down; leaves point to themselves."""
    for i in range(count):
        node = nodes[i]
        value = X[first + i, columns[node]]
        right = value > thresholds[node]
        if has_missing:
            right |= (value != value) & missing_right[node]
        nodes[i] = children[node] + right


@compiled
def add_forest(
    X,
    roots,
    depths,
    columns,
    thresholds,
    missing_right,
    children,
    value_offset,
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
    roots, depths : (n_trees,) int32
    columns, children : (n_nodes,) int32; a leaf is its own child
    thresholds : (n_nodes,) float64, ``inf`` at leaves
    missing_right : (n_nodes,) bool
    value_offset : (n_nodes,) int64, where a leaf's values begin in ``values``
    values : flat float64, coefficients multiplied in
    widths, first_output : (n_trees,) int32, outputs of a tree and its first column of ``raw``
    raw : (n, r) float64

    Notes
    -----
    Cost O(n · sum of depths).  The sum over trees is taken in the order of the trees for every row.
    """
    nodes = np.empty(_BLOCK, np.int32)
    for block in range(begin, end, _BLOCK):
        count = min(_BLOCK, end - block)
        for tree in range(roots.shape[0]):
            for i in range(count):
                nodes[i] = roots[tree]
            for _ in range(depths[tree]):
                _step(
                    nodes,
                    thresholds,
                    columns,
                    missing_right,
                    children,
                    X,
                    block,
                    count,
                    has_missing,
                )
            first = first_output[tree]
            for i in range(count):
                at = value_offset[nodes[i]]
                for k in range(widths[tree]):
                    raw[block + i, first + k] += values[at + k]


@compiled
def forest_cells(
    X, roots, columns, thresholds, missing_right, children, leaf_number, begin, end, cells
):
    """Leaf number of every row in every tree, (n, n_trees) int32."""
    for i in range(begin, end):
        for tree in range(roots.shape[0]):
            node = roots[tree]
            while children[node] != node:
                value = X[i, columns[node]]
                right = value > thresholds[node] or (value != value and missing_right[node])
                node = children[node] + right
            cells[i, tree] = leaf_number[node]
