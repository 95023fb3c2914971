"""The selection problem: kernel, candidate rows, and the targets of the machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.kernels import gram
from hilboost.kernels.base import Kernel

Rows = NDArray[np.intp]

DEPENDENT = 1e-12  # relative size of a squared norm that is only rounding error
_COARSE = 1e-6  # the same for kernels with large rounding errors
_ROWS_CHECKED = 256


@dataclass(frozen=True)
class Problem:
    """The input of a selection strategy."""

    kernel: Kernel
    X: Floats  # (m, d) float64: candidate rows
    y: Floats  # (m, r) float64: what the machine will be fitted to
    weight: Floats  # (m,) float64: positive sample weights
    regularization: float  # λ, positive
    diagonal: Floats  # (m,) float64: ``k(x, x)``
    # (m,) float64: rounding error of the diagonal.  A smaller Schur complement counts as zero.
    rounding: Floats
    n_candidates: int | None  # κ of the greedy fit; ``None`` means all rows

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Floats,
        y: Floats,
        weight: Floats,
        regularization: float,
        n_candidates: int | None,
    ) -> Problem:
        """Measure the rounding error, and raise λ to that of the trace of ``K``."""
        diagonal = kernel.diag(X)
        # A kernel with a kink, such as Laplace, takes the root of the rounding error of a distance.
        few, size = X[:_ROWS_CHECKED], np.abs(diagonal)
        error = np.abs(gram.evaluate(kernel, few, few).diagonal() - diagonal[: len(few)]).max()
        rounding = np.clip(10 * error, DEPENDENT * size, _COARSE * size)
        level = max(regularization, DEPENDENT * float(weight @ size), np.finfo(float).tiny)
        return cls(kernel, X, y, weight, level, diagonal, rounding, n_candidates)

    def columns(self, rows: Rows) -> Floats:
        """``k(x_i, X)`` of some rows, (c, m)."""
        return gram.evaluate(self.kernel, self.X[rows], self.X)


def squares(values: Floats) -> Floats:
    """Sum of squares over the outputs, (m,)."""
    return np.einsum("ij,ij->i", values, values)
