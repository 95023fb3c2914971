"""Friedman 2001, Algorithm 3 (LAD_TreeBoost), transcribed line by line."""

from __future__ import annotations

import numpy as np
from tests.reference.grow import Limits, Numbers, grow, leaves


def lad_tree_boost(X, y, n_stages, n_leaves, min_samples_leaf, learning_rate=1.0):
    """Yields, for every stage, its splits, its leaf values by leaf, and F on the training rows.

    A split is (column, threshold); thresholds lie halfway between neighboring distinct values.
    """
    n, d = X.shape
    values = [np.unique(X[:, k]) for k in range(d)]
    bins = np.column_stack([np.searchsorted(values[k], X[:, k]) for k in range(d)])
    n_values = np.array([len(v) for v in values])
    limits = Limits(max_leaves=n_leaves, min_count=min_samples_leaf)
    F = np.full(n, np.median(y))  # line 1
    for _ in range(n_stages):
        direction = np.sign(y - F).astype(np.int64)[:, None]  # line 3
        numbers = Numbers(direction, None, np.ones(n, dtype=np.int64))
        nodes = grow(bins, n_values, int(n_values.max()), np.arange(n), numbers, limits)  # line 4
        splits, gammas = [], []
        for node in nodes:
            if node.left is not None:
                column, cut, _ = node.split
                below, above = values[column][cut], values[column][cut + 1]
                splits.append((column, below + (above - below) / 2))
        F = F.copy()
        for region in leaves(nodes):
            gamma = np.median((y - F)[region.rows])  # line 5
            F[region.rows] += learning_rate * gamma  # line 6
            gammas.append(gamma)
        yield splits, np.array(gammas), F
