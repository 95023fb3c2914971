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
    rows: Rows  # (m,) intp: their numbers in the table

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Floats,  # (n, d) float64
        y: Floats,  # (n, r) float64; scores are summed over the outputs
        weight: Floats | None,  # (n,) float64 or None: sample weights
        regularization: float,
        # Steps of the greedy fit that score all rows cost O(m²), and evaluate m² kernel values if m
        # is above about 5,800.
        n_candidates: int | None,
    ) -> Problem:
        """Measure the rounding error, and raise λ to that of the trace of ``K``.

        Rows with zero weight are left out, unless all weights are zero.
        """
        rows = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
        if len(rows) == 0:
            rows, weight = np.arange(len(X)), None
        X, y, weight = X[rows], y[rows], np.ones(len(rows)) if weight is None else weight[rows]
        diagonal = kernel.diag(X)
        # A kernel with a kink, such as Laplace, takes the root of the rounding error of a distance.
        few, size = X[:_ROWS_CHECKED], np.abs(diagonal)
        error = np.abs(gram.evaluate(kernel, few, few).diagonal() - diagonal[: len(few)]).max()
        rounding = np.clip(10 * error, DEPENDENT * size, _COARSE * size)
        level = max(regularization, DEPENDENT * float(weight @ size), np.finfo(float).tiny)
        return cls(kernel, X, y, weight, level, diagonal, rounding, n_candidates, rows)

    def columns(self, rows: Rows) -> Floats:
        """``k(x_i, X)`` of some rows, (c, m)."""
        return gram.evaluate(self.kernel, self.X[rows], self.X)


def squares(values: Floats) -> Floats:
    """Sum of squares over the outputs, (m,)."""
    return np.einsum("ij,ij->i", values, values)
