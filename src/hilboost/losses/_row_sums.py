"""Sums over the outputs of each row."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats

_FEW_ROWS = 200  # below, one call is faster than one for each column


def row_sums(values: Floats) -> Floats:  # (n,) float64
    """Add up the columns from the first to the last, with the same bits for a row wherever it is.

    ``values.sum(axis=1)`` adds in another order where the entries of a row follow each other in
    memory, as the sums of a single row always do.

    ``values``: (n, c) float64.
    """
    if values.flags.c_contiguous and values.shape[1] > 1 and len(values) < _FEW_ROWS:
        return np.cumsum(values, axis=1)[:, -1].copy()
    total = values[:, 0].copy()
    for k in range(1, values.shape[1]):
        total += values[:, k]
    return total
