"""Row sampling for stages, and folds for held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core import dtypes
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target


@dataclass(frozen=True)
class RowSampling:
    """Random sampling of the rows to which each stage is fitted (Friedman 2002).

    Parameters
    ----------
    fraction : float in (0, 1]
        Number of drawn rows divided by the number of rows.
    bootstrap : bool
        Whether to draw with replacement; a row drawn twice has twice the weight.
    """

    fraction: float = 1.0
    bootstrap: bool = False

    def draw(
        self, target: Target, rows: NDArray[np.uint32] | None, rng: np.random.Generator
    ) -> RowSample:
        """Draw the rows and weights of one stage from ``rows`` (``None``: all)."""
        n = len(target.y)
        size_of_pool = n if rows is None else len(rows)
        size = max(1, round(self.fraction * size_of_pool))
        if self.bootstrap:
            drawn = rng.integers(size_of_pool, size=size)
            counts = np.bincount(drawn if rows is None else rows[drawn], minlength=n)
            weight = counts if target.weight is None else counts * target.weight
            return RowSample(np.flatnonzero(counts).astype(dtypes.ROW), weight.astype(dtypes.RAW))
        if size == size_of_pool:
            return RowSample(rows, target.weight)
        marks = np.zeros(size_of_pool, dtype=bool)
        marks[rng.choice(size_of_pool, size, replace=False, shuffle=False)] = True
        chosen = np.flatnonzero(marks).astype(dtypes.ROW) if rows is None else rows[marks]
        return RowSample(chosen, target.weight)


def assign_folds(strata: NDArray, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Assign each row to a fold, (n,): folds of equal size, stratified.

    strata : (n,) integers
    """
    n = len(strata)
    order = rng.permutation(n)
    order = order[np.argsort(strata[order], kind="stable")]
    folds = np.empty(n, dtype=np.int64)
    folds[order] = np.arange(n) % n_folds
    return folds
