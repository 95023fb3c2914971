"""Kernels that the rows of a fold did not help to choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.core.dtypes import Ints
from hilboost.kernels import Kernel


@dataclass(frozen=True, eq=False)
class FoldKernels:
    """Folds of the rows, and for each fold a kernel whose length scales do not depend on it."""

    folds: tuple[Ints, ...]  # tuple of (m,) int64: row numbers
    kernels: tuple[Kernel, ...]  # one for each fold

    @classmethod
    def of_unseen(cls, kernel: Kernel, rows: Ints, n_folds: int) -> FoldKernels:
        """Divide rows that no length scale was fitted to; the kernel is the same for all folds."""
        return cls(tuple(np.array_split(rows, n_folds)), (kernel,) * n_folds)

    def of_rows(self, rows: Ints) -> Ints:
        """The fold of each of some rows (m,), -1 for rows in no fold."""
        n = 1 + max(int(fold.max(initial=-1)) for fold in (*self.folds, rows))
        fold_of = np.full(n, -1)
        for k, fold in enumerate(self.folds):
            fold_of[fold] = k
        return fold_of[rows]
