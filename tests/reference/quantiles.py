"""Naive twins of :mod:`hilboost.backends.quantiles`."""

import numpy as np


def weighted_quantile(values, weights, level):
    """By the weighted distribution function; the middle of the piece where it is flat."""
    mass, total = np.cumsum(weights), float(np.sum(weights))
    reached = np.flatnonzero(mass >= level * total - 1e-12 * total)
    if not len(reached):
        return values[-1]
    i = reached[0]
    flat = mass[i] <= level * total + 1e-12 * total
    return (values[i] + values[i + 1]) / 2 if flat and i + 1 < len(values) else values[i]


def leaf_quantiles(residuals, weights, leaf_of_row, n_leaves, level):
    result = np.zeros(n_leaves)
    for leaf in range(n_leaves):
        here = np.flatnonzero(leaf_of_row == leaf)
        if len(here):
            order = here[np.argsort(residuals[here])]
            w = weights[order] if len(weights) else np.ones(len(order))
            result[leaf] = weighted_quantile(residuals[order], w, level)
    return result
