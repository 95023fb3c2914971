"""Naive twin of :mod:`hilboost.engine.ops.cpu.grown_tree`."""

import numpy as np

from hilboost.engine.ops.cpu.nodes import COLUMN, DEPTH, LEFT, MISSING_LEFT


def write_tree(nodes, n_nodes, gains, thresholds, is_category, tree):
    nodes, here = nodes[:n_nodes], slice(n_nodes)
    is_leaf = nodes[:, LEFT] < 0
    by_level = is_category[nodes[:, COLUMN]] != 0 if len(is_category) else np.zeros(n_nodes, bool)
    leaves = np.flatnonzero(is_leaf)
    tree.column[here] = np.where(is_leaf, 0, nodes[:, COLUMN])
    tree.threshold[here] = np.where(is_leaf, np.inf, np.where(by_level, 0.0, thresholds[here]))
    tree.missing_right[here] = ~is_leaf & (nodes[:, MISSING_LEFT] == 0)
    tree.child[here] = np.where(is_leaf, np.arange(n_nodes), nodes[:, LEFT])
    tree.gain[here] = np.where(is_leaf, 0.0, gains[here])
    tree.leaf_number[here] = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
    tree.leaves[: len(leaves)] = leaves
    return nodes[:, DEPTH].max()
