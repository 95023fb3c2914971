"""Sums, quantiles and additions over the cells (leaves) that a tree divides the rows into.

Cells are numbered ``0 … n_leaves - 1``; ``leaf_of_row`` (n,) int32 holds the leaf of each row.
"""

import numpy as np

from hilboost.backends.compiled import allocating, compiled
from hilboost.backends.trees.nodes import BEGIN, BUFFER, END


@compiled
def mark_leaves(thread, n_threads, nodes, leaves, rows, leaf_of_row):
    """Write the leaf number of every learned row; each thread its share of the leaves.

    nodes : (n_nodes, N_NODE_FIELDS) int64; leaves : (n_leaves,) int64, their node numbers
    rows : (2, m) uint32, leaf_of_row : (n,) int32
    """
    for leaf in range(thread, leaves.shape[0], n_threads):
        node = leaves[leaf]
        order = rows[nodes[node, BUFFER]]
        for i in range(nodes[node, BEGIN], nodes[node, END]):
            leaf_of_row[order[i]] = leaf


@compiled
def leaf_sums(
    thread, n_threads, nodes, leaves, rows, gradients, hessians, weights, sum_g, sum_h, sum_w
):
    """Exact floating-point sums in every leaf, in the rows' order.

    gradients : (n, r); hessians : (n, r) or (n, 0); weights : (n,) or (0,)
    sum_g, sum_h : (n_leaves, r), sum_w : (n_leaves,); all float64
    """
    r = gradients.shape[1]
    weighted = weights.shape[0] > 0
    curved = hessians.shape[1] > 0
    for leaf in range(thread, leaves.shape[0], n_threads):
        node = leaves[leaf]
        order = rows[nodes[node, BUFFER]]
        begin, end = nodes[node, BEGIN], nodes[node, END]
        total_w = 0.0
        if r == 1:
            total_g, total_h = 0.0, 0.0
            for i in range(begin, end):
                row = order[i]
                w = weights[row] if weighted else 1.0
                total_w += w
                total_g += w * gradients[row, 0]
                if curved:
                    total_h += w * hessians[row, 0]
            sum_g[leaf, 0] = total_g
            sum_h[leaf, 0] = total_h
        else:
            for k in range(r):
                sum_g[leaf, k] = 0.0
                sum_h[leaf, k] = 0.0
            for i in range(begin, end):
                row = order[i]
                w = weights[row] if weighted else 1.0
                total_w += w
                for k in range(r):
                    sum_g[leaf, k] += w * gradients[row, k]
                    if curved:
                        sum_h[leaf, k] += w * hessians[row, k]
        sum_w[leaf] = total_w


@compiled
def add_leaf_values(values, leaf_of_row, raw, first, begin, end):
    """``raw[i, first + k] += values[leaf_of_row[i], k]`` for the rows ``[begin, end)``.

    values : (n_leaves, r), raw : (n, R) with ``first + r <= R``; float64
    """
    for i in range(begin, end):
        leaf = leaf_of_row[i]
        for k in range(values.shape[1]):
            raw[i, first + k] += values[leaf, k]


@compiled
def weighted_quantile(values, weights, level):
    """Quantile of ``values`` under ``weights`` (m,), sorted by value; ties of mass take the middle.

    The inverse of the weighted distribution function, averaged where it is flat: with equal
    weights and level 1/2 this is the usual median, and a weight of 2 is the value twice.
    """
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    wanted = level * total
    tolerance = 1e-12 * total
    mass = 0.0
    last = values.shape[0] - 1
    for i in range(values.shape[0]):
        mass += weights[i]
        if mass >= wanted - tolerance:
            if mass <= wanted + tolerance and i < last:
                return 0.5 * (values[i] + values[i + 1])
            return values[i]
    return values[last]


@allocating
def leaf_quantiles(residuals, weights, leaf_of_row, n_leaves, level):
    """Weighted quantile of the residuals in every leaf, (n_leaves,); rows of leaf -1 are left out.

    residuals : (n,) float64; weights : (n,) float64 or (0,); leaf_of_row : (n,) int32
    Cost O(n log n).
    """
    starts = np.zeros(n_leaves + 1, np.int64)
    for i in range(leaf_of_row.shape[0]):
        if leaf_of_row[i] >= 0:
            starts[leaf_of_row[i] + 1] += 1
    for c in range(n_leaves):
        starts[c + 1] += starts[c]
    order = np.empty(starts[n_leaves], np.int64)
    fill = starts[:n_leaves].copy()
    for i in range(leaf_of_row.shape[0]):
        c = leaf_of_row[i]
        if c >= 0:
            order[fill[c]] = i
            fill[c] += 1
    result = np.zeros(n_leaves)
    for c in range(n_leaves):
        rows = order[starts[c] : starts[c + 1]]
        if rows.shape[0] == 0:
            continue
        here = residuals[rows]
        sorting = np.argsort(here)
        w = np.ones(rows.shape[0])
        if weights.shape[0] > 0:
            w = weights[rows][sorting]
        result[c] = weighted_quantile(here[sorting], w, level)
    return result
