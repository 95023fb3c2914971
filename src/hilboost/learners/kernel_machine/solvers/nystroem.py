"""The Nyström approximation of a Gram matrix, and a preconditioner made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.kernels.gram import Gram
from hilboost.kernels.symmetric import SymmetricGram

_BLOCK = 512
_JITTER = 1e-6
# Above this ratio of the largest eigenvalue to λ, single precision rounds λ away.
_SINGLE_PRECISION_RATIO = 1e6


def solve_rows(factor: Array, rows: Array) -> Array:
    """``rows L⁻ᵀ`` in place, by matrix products, for a lower factor (m, m) and rows (n, m)."""
    m = factor.shape[0]
    xp = array_api.namespace(factor)
    for j in range(0, m, _BLOCK):
        k = min(j + _BLOCK, m)
        right = rows[:, j:k]
        if j:
            right = right - rows[:, :j] @ factor[j:k, :j].T
        identity = array_api.like(np.eye(k - j), factor)
        inverse = array_api.solve_lower(factor[j:k, j:k], identity)
        rows[:, j:k] = right @ xp.asarray(inverse.T)
    return rows


@dataclass
class Nystroem:
    """``(Q Q' + D)⁻¹`` for a low-rank ``Q Q' ≈ K`` and a positive diagonal ``D``.

    Parameters
    ----------
    Q : (n, m) array
    D : (n,) float64
        Diagonal.
    """

    Q: Array
    D: Floats
    _factor: Array = field(init=False, repr=False)
    _inverse: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n, _ = self.Q.shape
        inverse = np.broadcast_to(1 / np.asarray(self.D, dtype=np.float64), (n,))
        self._inverse = array_api.like(inverse, self.Q, "float64")[:, None]
        if (inverse == inverse[0]).all():  # a symmetric product takes half the time
            M = array_api.cast(self.Q.T @ self.Q, "float64") * float(inverse[0])
        else:
            scaled = self.Q * array_api.cast(self._inverse, array_api.precision(self.Q))
            M = array_api.cast(self.Q.T @ scaled, "float64")
            M = (M + M.T) / 2
        self._factor = array_api.cholesky(array_api.add_to_diagonal(M, 1.0))

    def coefficients(self, R: Array) -> Array:
        """``(Q'D⁻¹Q + I)⁻¹ Q'D⁻¹R``, (m, r): ridge regression on the columns of ``Q``."""
        scaled = array_api.cast(R * self._inverse, array_api.precision(self.Q))
        inner = array_api.cast(self.Q.T @ scaled, "float64")
        return array_api.solve_cholesky(self._factor, inner)

    def __call__(self, R: Array) -> Array:
        """``(Q Q' + D)⁻¹ R`` for ``R`` (n, r), by the Woodbury identity."""
        inner = array_api.cast(self.coefficients(R), array_api.precision(self.Q))
        back = array_api.cast(self.Q @ inner, "float64")
        return (R - back) * self._inverse


def nystroem_factor(
    gram: SymmetricGram, landmarks: NDArray[np.int64], smallest: float
) -> tuple[Array, Array]:
    """``Q = K_nm L⁻ᵀ`` (n, m) and a factor ``L L' = K_mm``, so that ``Q Q' = K_nm K_mm⁻¹ K_mn``.

    Parameters
    ----------
    gram : SymmetricGram, (n, n)
    landmarks : (m,) int64
    smallest : float
        Smallest entry of the diagonal that will be added.  ``Q`` is float64 if it is tiny relative
        to the largest eigenvalue.
    """
    points = gram.A[landmarks]
    square = Gram(
        gram.kernel, array_api.cast(points, "float64"), array_api.cast(points, "float64"), np.inf
    )
    K_mm = square.whole()
    n, m = gram.A.shape[0], len(landmarks)
    largest = (
        float(array_api.namespace(K_mm).max(array_api.namespace(K_mm).sum(K_mm, axis=1))) * n / m
    )
    double = largest > _SINGLE_PRECISION_RATIO * smallest
    name = "float64" if double else gram.precision
    factor = array_api.cholesky(K_mm, min(_JITTER, smallest))
    A = array_api.cast(gram.A, name)
    Q = Gram(gram.kernel, A, array_api.cast(points, name), np.inf, gram.team).whole()
    return solve_rows(array_api.cast(factor, name), Q), factor
