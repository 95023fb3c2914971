"""Naive twins of :mod:`hilboost.backends.cells`."""

import numpy as np


def mark_cells(thread, n_threads, nodes, leaves, rows, cells):
    for cell in range(thread, len(leaves), n_threads):
        begin, end, buffer = nodes[leaves[cell], :3]
        cells[rows[buffer, begin:end]] = cell


def leaf_sums(
    thread, n_threads, nodes, leaves, rows, gradients, hessians, weights, sum_g, sum_h, sum_w
):
    for cell in range(thread, len(leaves), n_threads):
        begin, end, buffer = nodes[leaves[cell], :3]
        chosen = rows[buffer, begin:end]
        w = weights[chosen] if len(weights) else np.ones(len(chosen))
        sum_g[cell] = w @ gradients[chosen]
        sum_h[cell] = w @ hessians[chosen] if hessians.shape[1] else 0.0
        sum_w[cell] = w.sum()


def add_cell_values(values, cells, raw, first, begin, end):
    raw[begin:end, first : first + values.shape[1]] += values[cells[begin:end]]


def weighted_quantile(values, weights, level):
    """By the weighted distribution function; the middle of the piece where it is flat."""
    mass, total = np.cumsum(weights), float(np.sum(weights))
    reached = np.flatnonzero(mass >= level * total - 1e-12 * total)
    if not len(reached):
        return values[-1]
    i = reached[0]
    flat = mass[i] <= level * total + 1e-12 * total
    return (values[i] + values[i + 1]) / 2 if flat and i + 1 < len(values) else values[i]


def cell_quantiles(residuals, weights, cells, n_cells, level):
    result = np.zeros(n_cells)
    for cell in range(n_cells):
        here = np.flatnonzero(cells == cell)
        if len(here):
            order = here[np.argsort(residuals[here])]
            w = weights[order] if len(weights) else np.ones(len(order))
            result[cell] = weighted_quantile(residuals[order], w, level)
    return result
