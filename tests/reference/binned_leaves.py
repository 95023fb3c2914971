"""Naive twins of :mod:`hilboost.engine.ops.cpu.binned_leaves`: one row, one step at a time."""

import numpy as np
from tests.reference import traverse
from tests.reference.category_splits import level_goes_left
from tests.reference.histogram import table_of

from hilboost.engine.ops.cpu.nodes import BIN, COLUMN, LEFT, MISSING_LEFT, RIGHT

SPLIT = [COLUMN, BIN, MISSING_LEFT, LEFT, RIGHT]


def find_leaves(table, nodes, categories, leaf_numbers, others, part, leaf_of_row):
    bins = table_of(table.words, 8 * len(table.words))
    for row in range(*part):
        node = 0
        while leaf_of_row[row] < 0:
            column, cut, missing_left, left, right = nodes.fields[node, SPLIT]
            b = bins[row, column]
            goes_left = b <= cut
            if b == table.n_bins - 1:
                goes_left = missing_left != 0
            elif categories is not None and categories.is_category[column]:
                goes_left = level_goes_left(categories.left_sets, node, b)
            node = left if goes_left else right
            leaf_of_row[row] = leaf_numbers[node]


def bins_of(table, columns):
    """The bins of some columns, NaN where values are missing."""
    bins = table_of(table.words, 8 * len(table.words))[:, columns].astype(float)
    bins[bins == table.n_bins - 1] = np.nan
    return bins


def add_forest_on_bins(table, columns, forest, begin, end, raw):
    traverse.add_forest(bins_of(table, columns), forest, begin, end, True, raw)
