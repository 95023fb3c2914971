"""Sums over the outputs of each row."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats


def row_sums(values: Floats) -> Floats:
    """Add up the columns from the first to the last, with the same bits for a row wherever it is.

    ``values.sum(axis=1)`` adds in another order where the entries of a row follow each other in
    memory, as those of a single row always do.

    Parameters
    ----------
    values : (n, c) float64

    Returns
    -------
    (n,) float64
    """
    if values.flags.c_contiguous and values.shape[1] > 1:
        return np.cumsum(values, axis=1)[:, -1].copy()
    total = values[:, 0].copy()
    for k in range(1, values.shape[1]):
        total += values[:, k]
    return total
