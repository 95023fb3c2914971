"""Naive twins of :mod:`hilboost.backends.geometric_medians`."""

import numpy as np

_STEPS = 1_000


def total_distance(center, points, outside, weights):
    return float(weights @ np.sqrt(((points - center) ** 2).sum(axis=1) + outside))


def median(points, outside, weights):
    candidates = [*points]
    center = np.average(points, axis=0, weights=weights)
    for _ in range(_STEPS):
        distance = np.sqrt(((points - center) ** 2).sum(axis=1) + outside)
        if (distance == 0).any():
            break
        center = np.average(points, axis=0, weights=weights / distance)
    candidates.append(center)
    return min(candidates, key=lambda v: total_distance(v, points, outside, weights))


def geometric_medians(points, outside, weights, leaf_of_row, n_leaves, tolerance, most):
    result = np.zeros((n_leaves, points.shape[1]))
    for leaf in range(n_leaves):
        rows = leaf_of_row == leaf
        if rows.any():
            result[leaf] = median(points[rows], outside[rows], weights[rows])
    return result
