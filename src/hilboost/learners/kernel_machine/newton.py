"""Newton steps on all rows, for losses whose curvature changes from stage to stage.

With weights α, sample weights w, negative gradients g and curvatures h, a stage solves
``(K + D) δ = D b`` for ``D = λ / (w h)`` and the dual residual ``b = w g / λ - α``, zero at
the optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import NotPositive
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.solvers import (
    ConjugateGradients,
    Nystroem,
    nystroem_factor,
)
from hilboost.learners.kernel_machine.workspace import Workspace

_LARGEST_RATIO = 1e8  # of D to the mean of k(x, x): rows that hardly curve the loss
_SMALLEST_CURVATURE = 1e-300
_FEW_DIGITS = 0.1  # of the residual: what is left of it is the next stage's
_MOST_ROUNDS = 10


def is_newton(gradients: Gradients) -> bool:
    """Whether the curvature is that at ``raw`` alone, so that every stage has its own system."""
    return gradients.hessian is not None and gradients.bound is None


def newton_system(
    gradients: Gradients, weight: Floats | None, alpha: Floats, lam: float, size: float
) -> tuple[Floats, Floats]:
    """``D`` and ``b``, both (n, r), for a kernel whose mean of k(x, x) is ``size``."""
    assert gradients.hessian is not None
    w = 1.0 if weight is None else weight[:, None]
    D = lam / np.maximum(w * gradients.hessian, _SMALLEST_CURVATURE)
    return np.minimum(D, _LARGEST_RATIO * size), w * gradients.negative_gradient / lam - alpha


@dataclass
class DirectNewton:
    """Every column's system from a Cholesky factor of its own; cost O(n³) each.

    Attributes
    ----------
    K : (n, n) float64
    basis : (n, d)
    size : float
        Mean of k(x, x).
    """

    K: Floats
    basis: NDArray
    size: float

    @classmethod
    def of(cls, data: Workspace, kernel: Kernel) -> DirectNewton:
        """Evaluate the Gram matrix."""
        X = dense.to_numpy(data.X)
        K = Gram(kernel, X, X, np.inf, data.team).whole()
        return cls(K, X.astype(data.precision), mean_diagonal(np.diag(K)))

    def step(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        """The exact step, and its values ``K step``."""
        step = np.empty_like(b)
        diagonal = np.diag(self.K)
        for k in range(b.shape[1]):
            # A unit diagonal: entries of D may be far apart, and rounding is relative to them.
            total = diagonal + D[:, k]
            if not (total > 0).all():
                raise NotPositive(dense.NOT_POSITIVE)
            scale = 1.0 / np.sqrt(total)
            system = self.K * scale
            system *= scale[:, None]
            factor = dense.cholesky(dense.add_to_diagonal(system, scale**2 * D[:, k]))
            step[:, k] = scale * dense.solve_cholesky(factor, scale * D[:, k] * b[:, k])
        return step, self.K @ step


class IterativeNewton:
    """Every column's system by conjugate gradients, preconditioned by a sparse machine.

    Parameters
    ----------
    gram : SymmetricGram
    landmarks : (m,) int
    smallest : float
        Smallest entry of the first D.
    """

    def __init__(self, gram: SymmetricGram, landmarks: NDArray[np.int64], smallest: float) -> None:
        self.gram = gram
        self.size = mean_diagonal(dense.to_numpy(gram.kernel.diag(gram.A)))
        self.basis = dense.to_numpy(gram.A).astype(gram.precision)
        self._Q, _ = nystroem_factor(gram, landmarks, smallest)

    def step(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        """Conjugate steps until a tenth of the residual is left and the step descends."""
        columns = [self._column(D[:, k], b[:, k : k + 1], iterations) for k in range(b.shape[1])]
        return np.hstack([step for step, _ in columns]), np.hstack([f for _, f in columns])

    def _column(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        search = ConjugateGradients(self._system(D), Nystroem(self._Q, D))
        right = dense.like(D[:, None] * b, self.gram.A, "float64")
        tolerance = _FEW_DIGITS * float(np.linalg.norm(D * b[:, 0]))
        step, taken = np.zeros_like(b), np.zeros_like(b)
        outputs = taken
        for _ in range(_MOST_ROUNDS):
            more, more_taken, left = search.run(right, iterations, tolerance)
            right = right - more_taken
            step, taken = step + dense.to_numpy(more), taken + dense.to_numpy(more_taken)
            outputs = taken - D[:, None] * step
            if left <= tolerance and float((b * outputs).sum()) > 0:
                break
            tolerance = min(tolerance, 0.5 * left)
        return step, outputs

    def _system(self, D: Floats) -> Callable[[Array], Array]:
        diagonal = dense.like(D, self.gram.A, "float64")[:, None]
        return lambda V: self.gram.times(V) + diagonal * V


def mean_diagonal(diagonal: Floats) -> float:
    """Mean size of k(x, x), above zero."""
    return max(float(np.abs(diagonal).mean()), 1e-300)
