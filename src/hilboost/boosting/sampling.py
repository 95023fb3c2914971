"""Row subsampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core import dtypes
from hilboost.core.records import Sample, Target


@dataclass(frozen=True)
class RowSampling:
    """The part of the rows that each stage learns from (Friedman 2002).

    Parameters
    ----------
    fraction : float in (0, 1]
    bootstrap : bool
        Draw with replacement; a row drawn twice counts twice.
    """

    fraction: float = 1.0
    bootstrap: bool = False

    def draw(self, target: Target, rng: np.random.Generator) -> Sample:
        """Rows and weights of one stage."""
        n = len(target.y)
        size = max(1, round(self.fraction * n))
        if self.bootstrap:
            counts = np.bincount(rng.integers(n, size=size), minlength=n)
            weight = counts if target.weight is None else counts * target.weight
            return Sample(np.flatnonzero(counts).astype(dtypes.ROW), weight.astype(dtypes.RAW))
        if size == n:
            return Sample(None, target.weight)
        drawn = np.zeros(n, dtype=bool)
        drawn[rng.choice(n, size, replace=False, shuffle=False)] = True
        return Sample(np.flatnonzero(drawn).astype(dtypes.ROW), target.weight)
