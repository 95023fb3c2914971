"""Naive twin of :mod:`hilboost.engine.ops.cpu.binned_leaves`: one row, one step at a time."""

import numpy as np
from tests.reference import traverse
from tests.reference.histogram import table_of


def bins_of(table, columns):
    """The bins of some columns, NaN where values are missing."""
    bins = table_of(table.words, 8 * len(table.words))[:, columns].astype(float)
    bins[bins == table.n_bins - 1] = np.nan
    return bins


def add_forest_on_bins(table, columns, forest, begin, end, raw):
    traverse.add_forest(bins_of(table, columns), forest, begin, end, True, raw)
