"""Naive twins of :mod:`hilboost.engine.ops.cpu.binned_forest`: one row, one tree at a time."""

import numpy as np
from tests.reference import traverse
from tests.reference.histogram import table_of


def add_forest_on_bins(words, last_bin, forest, begin, end, raw):
    bins = table_of(words, 8 * len(words)).astype(float)
    bins[bins == last_bin] = np.nan
    traverse.add_forest(bins, forest, begin, end, True, raw)
