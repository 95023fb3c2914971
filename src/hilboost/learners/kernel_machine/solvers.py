"""Linear systems of kernel machines: direct, and by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.kernels.gram import Gram
from hilboost.kernels.symmetric import SymmetricGram

_BLOCK = 512
_JITTER = 1e-6
# Above this ratio of largest eigenvalue to λ, single precision cannot tell λ from rounding.
_SINGLE_PRECISION_RATIO = 1e6


def solve_rows(factor: Array, rows: Array) -> Array:
    """``rows L⁻ᵀ`` in place for a lower factor (m, m) and rows (n, m); by matrix products."""
    m = factor.shape[0]
    xp = dense.namespace(factor)
    for j in range(0, m, _BLOCK):
        k = min(j + _BLOCK, m)
        part = rows[:, j:k]
        if j:
            part = part - rows[:, :j] @ factor[j:k, :j].T
        identity = dense.like(np.eye(k - j), factor)
        inverse = dense.solve_lower(factor[j:k, j:k], identity)
        rows[:, j:k] = part @ xp.asarray(inverse.T)
    return rows


@dataclass
class Nystroem:
    """``(Q Q' + D)⁻¹`` for a low-rank ``Q Q' ≈ K`` and a positive diagonal ``D``.

    Parameters
    ----------
    Q : (n, m) array
    D : (n,) or number
        Diagonal.
    """

    Q: Array
    D: Floats
    _factor: Array = field(init=False, repr=False)
    _inverse: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n, _ = self.Q.shape
        inverse = np.broadcast_to(1 / np.asarray(self.D, dtype=np.float64), (n,))
        self._inverse = dense.like(inverse, self.Q, "float64")[:, None]
        if (inverse == inverse[0]).all():  # a symmetric product costs half
            M = dense.cast(self.Q.T @ self.Q, "float64") * float(inverse[0])
        else:
            scaled = self.Q * dense.cast(self._inverse, dense.precision(self.Q))
            M = dense.cast(self.Q.T @ scaled, "float64")
            M = (M + M.T) / 2
        self._factor = dense.cholesky(dense.add_to_diagonal(M, 1.0))

    def coefficients(self, R: Array) -> Array:
        """``(Q'D⁻¹Q + I)⁻¹ Q'D⁻¹R``, (m, r): ridge regression on the columns of ``Q``."""
        scaled = dense.cast(R * self._inverse, dense.precision(self.Q))
        inner = dense.cast(self.Q.T @ scaled, "float64")
        return dense.solve_cholesky(self._factor, inner)

    def __call__(self, R: Array) -> Array:
        """``(Q Q' + D)⁻¹ R`` for ``R`` (n, r), by Woodbury's identity."""
        inner = dense.cast(self.coefficients(R), dense.precision(self.Q))
        back = dense.cast(self.Q @ inner, "float64")
        return (R - back) * self._inverse


def nystroem_factor(
    gram: SymmetricGram, landmarks: np.ndarray, smallest: float
) -> tuple[Array, Array]:
    """``Q = K_nm L⁻ᵀ`` (n, m) and a factor ``L L' = K_mm``: ``Q Q' = K_nm K_mm⁻¹ K_mn``.

    Parameters
    ----------
    gram : SymmetricGram, (n, n)
    landmarks : (m,) int
    smallest : float
        Smallest entry of the diagonal that will be added; where it is tiny beside the largest
        eigenvalue, ``Q`` is float64.
    """
    points = gram.A[landmarks]
    square = Gram(gram.kernel, dense.cast(points, "float64"), dense.cast(points, "float64"), np.inf)
    K_mm = square.whole()
    n, m = gram.A.shape[0], len(landmarks)
    largest = float(dense.namespace(K_mm).max(dense.namespace(K_mm).sum(K_mm, axis=1))) * n / m
    double = largest > _SINGLE_PRECISION_RATIO * smallest
    name = "float64" if double else gram.precision
    factor = dense.cholesky(K_mm, min(_JITTER, smallest))
    A = dense.cast(gram.A, name)
    Q = Gram(gram.kernel, A, dense.cast(points, name), np.inf, gram.team).whole()
    return solve_rows(dense.cast(factor, name), Q), factor


@dataclass
class ConjugateGradients:
    """Conjugate gradients for ``S x = b``, several right-hand sides side by side.

    Parameters
    ----------
    system : (n, r) -> (n, r)
        ``S``, symmetric positive definite.
    precondition : (n, r) -> (n, r)
        About ``S⁻¹``.

    Notes
    -----
    Fletcher & Reeves.  Directions are kept between calls of :meth:`run`: going on where the last
    call ended equals one longer call.
    """

    system: Callable[[Array], Array]
    precondition: Callable[[Array], Array]
    _direction: Array | None = field(default=None, init=False, repr=False)
    _size: Array | None = field(default=None, init=False, repr=False)
    _expected: Array | None = field(default=None, init=False, repr=False)

    def run(self, b: Array, iterations: int, tolerance: float) -> tuple[Array, Array, float]:
        """Go on from zero.

        Parameters
        ----------
        b : (n, r)
            The residual now.
        iterations : int
        tolerance : float
            Stop when every column's residual is below this.

        Returns
        -------
        x : (n, r)
            The step.
        Sx : (n, r)
            What it takes from the residual.
        residual : float
            Largest column norm that is left.
        """
        xp = dense.namespace(b)
        x, taken = b * 0.0, b * 0.0
        r = b + 0.0
        p, size = self._continued(b)
        for _ in range(iterations):
            if _largest_norm(r) <= tolerance:
                break
            z = self.precondition(r)
            new = xp.sum(r * z, axis=0)
            beta = xp.zeros_like(new) if size is None else new / _nonzero(size)
            p = z if p is None else z + beta * p
            Sp = self.system(p)
            curvature = xp.sum(p * Sp, axis=0)
            # Rounding may leave a direction without curvature: such a column is done.
            step = xp.where((curvature > 0) & (new > 0), new / _nonzero(curvature), 0.0)
            if not float(xp.max(step)) > 0:
                break
            x += step * p
            taken += step * Sp
            r = b - taken
            size = new
        self._direction, self._size, self._expected = p, size, r
        return x, taken, _largest_norm(r)

    def _continued(self, b: Array) -> tuple[Array | None, Array | None]:
        """The last direction, unless the residual is not what that call left."""
        if self._expected is None:
            return None, None
        if _largest_norm(b - self._expected) > 1e-3 * _largest_norm(b):
            return None, None
        return self._direction, self._size


def _largest_norm(array: Array) -> float:
    xp = dense.namespace(array)
    return float(xp.max(xp.sqrt(xp.sum(array * array, axis=0))))


def _nonzero(array: Array) -> Array:
    xp = dense.namespace(array)
    return xp.where(array == 0, 1.0, array)
