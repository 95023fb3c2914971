"""Friedman 2001, Algorithm 3 (LAD_TreeBoost), transcribed line by line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hilboost.engine.ops.cpu.criterion import LeafSums, criterion_of
from hilboost.engine.ops.reference.criterion import leaf_score, score_of_sides, split_gain

_PLAIN = criterion_of(0.0)


def _sums_of(direction):
    return LeafSums(direction.sum(), len(direction), len(direction))


class Region:
    """Rows of a node; ``split`` (column, bin) is the best one, taken where ``is_split``."""

    def __init__(self, rows, bins, direction, min_samples_leaf):
        self.rows, self.gain, self.split, self.is_split = rows, 0.0, None, False
        parent = leaf_score(_sums_of(direction[rows]), _PLAIN)
        for column in range(bins.shape[1]):
            here = bins[rows, column]
            for below, above in pairwise(np.unique(here)):
                sides = [rows[here <= below], rows[here > below]]
                sums = [_sums_of(direction[side]) for side in sides]
                gain = split_gain(score_of_sides(*sums, _PLAIN), parent, *map(len, sides), _PLAIN)
                if min(map(len, sides)) >= min_samples_leaf and gain > self.gain:
                    self.gain, self.sides = gain, sides
                    self.split = column, (below + above - 1) // 2


def tree(bins, direction, n_leaves, min_samples_leaf):
    """The nodes of a tree that is grown best first, by exhaustive search; the first wins a tie."""
    given = bins, direction, min_samples_leaf
    nodes = [Region(np.arange(len(bins)), *given)]
    for _ in range(n_leaves - 1):
        candidates = [node for node in nodes if node.split is not None and not node.is_split]
        if not candidates:
            break
        best = max(candidates, key=lambda node: node.gain)
        best.is_split = True
        nodes += [Region(side, *given) for side in best.sides]
    return nodes


def lad_tree_boost(X, y, n_stages, n_leaves, min_samples_leaf, learning_rate=1.0):
    """Yields, for every stage, its splits, its leaf values by leaf, and F on the training rows.

    A split is (column, threshold); thresholds lie halfway between neighboring distinct values.
    """
    n, d = X.shape
    values = [np.unique(X[:, k]) for k in range(d)]
    bins = np.column_stack([np.searchsorted(values[k], X[:, k]) for k in range(d)])
    F = np.full(n, np.median(y))  # line 1
    for _ in range(n_stages):
        nodes = tree(bins, np.sign(y - F), n_leaves, min_samples_leaf)  # lines 3 and 4
        splits, gammas = [], []
        for node in nodes:
            if node.is_split:
                column, cut = node.split
                below, above = values[column][cut], values[column][cut + 1]
                splits.append((column, below + (above - below) / 2))
        F = F.copy()
        for region in (node for node in nodes if not node.is_split):
            gamma = np.median((y - F)[region.rows])  # line 5
            F[region.rows] += learning_rate * gamma  # line 6
            gammas.append(gamma)
        yield splits, np.array(gammas), F
