"""How frequent the levels of a category are; the rare ones of very many merged into one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats


def level_weights(codes: Floats, n_levels: int, weight: Floats | None) -> Floats:
    """Weight of the rows of every level, (n_levels,); the arguments are as in :func:`kept_levels`.

    Cost O(n).
    """
    known = codes >= 0
    mass = np.bincount(
        codes[known].astype(np.int64), None if weight is None else weight[known], n_levels
    )
    return mass.astype(np.float64)


def kept_levels(
    codes: Floats, n_levels: int, most: int, weight: Floats | None
) -> NDArray[np.int64]:
    """New codes of the levels: the most frequent keep one of their own, the rest share the last.

    Parameters
    ----------
    codes : (n,) float64
        0, 1, … of the rows; NaN for missing and -1 for unseen levels count for nothing.
    n_levels, most : int
        How many levels there are, and how many new codes there may be.
    weight : (n,) float64 or None

    Returns
    -------
    (n_levels,) int64
        Ties go to the lower code; levels kept stay in their order.  Cost O(n + n_levels log).
    """
    if n_levels <= most:
        return np.arange(n_levels)
    mass = level_weights(codes, n_levels, weight)
    kept = np.sort(np.argsort(-mass, kind="stable")[: most - 1])
    new = np.full(n_levels, most - 1)
    new[kept] = np.arange(most - 1)
    return new
