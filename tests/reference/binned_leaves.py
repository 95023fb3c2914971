"""Naive twins of :mod:`hilboost.engine.ops.cpu.binned_leaves`: one row, one step at a time."""

import numpy as np
from tests.reference import traverse
from tests.reference.histogram import table_of

from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, LEFT, MISSING_LEFT


def note_tree(n_nodes, is_category, forest):
    """The splits alone, by which :func:`binned_leaves` walks: masks remain as they are."""
    trees, nodes = forest.trees, forest.nodes[:n_nodes]
    inner, leaves = np.flatnonzero(nodes[:, LEFT] >= 0), np.flatnonzero(nodes[:, LEFT] < 0)
    columns = nodes[inner, COLUMN]
    used, numbers = np.unique(columns, return_inverse=True)
    forest.used[: len(used)], forest.leaf_number[leaves] = used, np.arange(len(leaves))
    trees.child[leaves], trees.child[inner] = leaves, nodes[inner, LEFT]
    trees.column[inner], trees.threshold[inner] = numbers, nodes[inner, BIN]
    trees.missing_right[inner] = nodes[inner, MISSING_LEFT] == 0
    on_levels = is_category[columns] != 0 if len(is_category) else np.zeros(len(inner), bool)
    trees.set_numbers[inner] = np.where(on_levels, inner, -1)
    return len(used)


def binned_leaves(table, forest, n_used, scratch, rows, leaf_of_row):
    bins = bins_of(table, forest.used[:n_used])
    for row in range(*rows):
        if leaf_of_row[row] < 0:
            leaf_of_row[row] = forest.leaf_number[traverse.leaf_of(bins[row], 0, forest.trees)]


def bins_of(table, columns):
    """The bins of some columns, NaN where values are missing."""
    bins = table_of(table.words, 8 * len(table.words))[:, columns].astype(float)
    bins[bins == table.n_bins - 1] = np.nan
    return bins


def add_forest_on_bins(table, columns, forest, begin, end, raw):
    traverse.add_forest(bins_of(table, columns), forest, begin, end, True, raw)
