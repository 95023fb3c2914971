"""Naive twins of :mod:`hilboost.engine.ops.cpu.vector_candidates`."""

from __future__ import annotations

import numpy as np
from tests.reference.histogram import bins_of


def value_ranges(table, X, ranges):
    for column in range(X.shape[1]):
        b = bins_of(table.words, column)
        for number in range(table.n_bins - 1):
            values = X[b == number, column]
            ranges.low[column, number] = values.min(initial=np.inf)
            ranges.high[column, number] = values.max(initial=-np.inf)
