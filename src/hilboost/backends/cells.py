"""Sums, quantiles and additions over the cells (leaves) that a tree divides the rows into.

Cells are numbered ``0 … n_cells - 1``; ``cells`` (n,) int32 holds the cell of each row.
"""

import numpy as np

from hilboost.backends.compiled import compiled
from hilboost.backends.nodes import BEGIN, BUFFER, END


@compiled
def mark_cells(thread, n_threads, nodes, leaves, rows, cells):
    """Write the leaf number of every learnt row; each thread its share of the leaves.

    nodes : (n_nodes, N_NODE_FIELDS) int64; leaves : (n_leaves,) int64, their node numbers
    rows : (2, m) uint32, cells : (n,) int32
    """
    for cell in range(thread, leaves.shape[0], n_threads):
        node = leaves[cell]
        order = rows[nodes[node, BUFFER]]
        for i in range(nodes[node, BEGIN], nodes[node, END]):
            cells[order[i]] = cell


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
    for cell in range(thread, leaves.shape[0], n_threads):
        node = leaves[cell]
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
            sum_g[cell, 0] = total_g
            sum_h[cell, 0] = total_h
        else:
            for k in range(r):
                sum_g[cell, k] = 0.0
                sum_h[cell, k] = 0.0
            for i in range(begin, end):
                row = order[i]
                w = weights[row] if weighted else 1.0
                total_w += w
                for k in range(r):
                    sum_g[cell, k] += w * gradients[row, k]
                    if curved:
                        sum_h[cell, k] += w * hessians[row, k]
        sum_w[cell] = total_w


@compiled
def add_cell_values(values, cells, raw, first, begin, end):
    """``raw[i, first + k] += values[cells[i], k]`` for the rows ``[begin, end)``.

    values : (n_cells, r), raw : (n, R) with ``first + r <= R``; float64
    """
    for i in range(begin, end):
        cell = cells[i]
        for k in range(values.shape[1]):
            raw[i, first + k] += values[cell, k]


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


@compiled
def cell_quantiles(residuals, weights, cells, n_cells, level):
    """Weighted quantile of the residuals in every cell, (n_cells,); rows of cell -1 are left out.

    residuals : (n,) float64; weights : (n,) float64 or (0,); cells : (n,) int32
    Cost O(n log n).
    """
    starts = np.zeros(n_cells + 1, np.int64)
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            starts[cells[i] + 1] += 1
    for c in range(n_cells):
        starts[c + 1] += starts[c]
    order = np.empty(starts[n_cells], np.int64)
    fill = starts[:n_cells].copy()
    for i in range(cells.shape[0]):
        c = cells[i]
        if c >= 0:
            order[fill[c]] = i
            fill[c] += 1
    result = np.zeros(n_cells)
    for c in range(n_cells):
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
