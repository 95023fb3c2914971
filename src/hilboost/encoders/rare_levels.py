"""Level frequencies of a category column, and merging of rare levels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare
from hilboost.reductions.sums import masses_of_groups


def level_weights(
    codes: Floats, n_levels: int, weight: Floats | None, share: RowShare | None = None
) -> Floats:
    """Total weight of the rows in each level, (n_levels,); see :func:`kept_levels`.

    Cost O(n).
    """
    known = codes >= 0
    levels = codes[known].astype(np.int64)
    return masses_of_groups(levels, None if weight is None else weight[known], n_levels, share)


def kept_levels(
    codes: Floats, n_levels: int, most: int, weight: Floats | None, share: RowShare | None = None
) -> NDArray[np.int64]:
    """New codes of the levels: the most frequent levels keep their own, the others share the last.

    ``codes``: (n,) float64: level codes 0, 1, …; NaN (missing) and -1 (unseen) are ignored.
    ``n_levels``: number of levels, and maximum number of new codes. ``most``: number of levels, and
    maximum number of new codes. ``weight``: (n,) float64 or None. ``share``: which rows these are,
    if other workers have the others.

    Returns (n_levels,) int64: ties go to the lower code; kept levels keep their order. Cost O(n +
    n_levels log n_levels).
    """
    if n_levels <= most:
        return np.arange(n_levels)
    mass = level_weights(codes, n_levels, weight, share)
    kept = np.sort(np.argsort(-mass, kind="stable")[: most - 1])
    new = np.full(n_levels, most - 1)
    new[kept] = np.arange(most - 1)
    return new
