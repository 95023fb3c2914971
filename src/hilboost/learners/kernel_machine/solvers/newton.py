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

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import NotPositive
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.solvers.conjugate_gradients import ConjugateGradients
from hilboost.learners.kernel_machine.solvers.nystroem import Features, Nystroem, nystroem_factor
from hilboost.learners.kernel_machine.workspace import Workspace

_LARGEST_RATIO = 1e8  # of D to the mean of k(x, x), for rows that hardly curve the loss
_SMALLEST_CURVATURE = 1e-300
_FEW_DIGITS = 0.1  # of the residual: the next stage has another system
_MOST_ROUNDS = 10


def newton_system(problem: StageProblem, alpha: Floats, size: float) -> tuple[Floats, Floats]:
    """``D`` and ``b``, both (n, r), for a kernel whose mean of k(x, x) is ``size``.

    ``D`` is (n, 1) if all outputs share the curvature.
    """
    hessian, lam = problem.own_hessian, problem.regularization
    w = 1.0 if problem.weight is None else problem.weight[:, None]
    with np.errstate(over="ignore"):
        D = lam / np.maximum(w * hessian, _SMALLEST_CURVATURE)
    return np.minimum(D, _LARGEST_RATIO * size), problem.weighted_gradient / lam - alpha


@dataclass(frozen=True, eq=False)
class DirectNewton:
    """A Cholesky factor for every column of ``D``; cost O(n³) each."""

    K: Array  # (n, n) float64
    basis: NDArray  # (n, d)
    team: ThreadTeam

    @classmethod
    def of(cls, workspace: Workspace, kernel: Kernel) -> DirectNewton:
        """Evaluate the Gram matrix."""
        X = array_api.cast(workspace.X, "float64")
        K = evaluate(kernel, X, X, workspace.team)
        return cls(K, workspace.basis(slice(None)), workspace.team)

    def step(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        """The exact step δ and its values ``K δ``, both (n, r)."""
        step = np.empty_like(b)
        diagonal = array_api.namespace(self.K).linalg.diagonal(self.K)
        for k, columns in enumerate(_columns(D, b)):
            # Scaled to a unit diagonal: rounding is relative to entries of D, which vary widely.
            added = array_api.like(D[:, k], self.K)
            total = diagonal + added
            if not bool((total > 0).all()):
                raise NotPositive(array_api.NOT_POSITIVE)
            scale = 1.0 / array_api.sqrt(total)
            system = self.K * scale
            system *= scale[:, None]
            array_api.add_to_diagonal(system, scale**2 * added)
            factor = array_api.cholesky(system, team=self.team)
            right = (scale * added)[:, None] * array_api.like(b[:, columns], self.K)
            found = scale[:, None] * array_api.solve_cholesky(factor, right)
            step[:, columns] = array_api.to_numpy(found)
        values = array_api.product(self.K, array_api.like(step, self.K), self.team)
        return step, array_api.to_numpy(values)


@dataclass(frozen=True, eq=False)
class IterativeNewton:
    """Conjugate gradients for every column of ``D``, preconditioned by a sparse kernel machine."""

    gram: SymmetricGram
    basis: NDArray  # (n, d)
    Q: Features  # ``Q Q'`` is the Nyström approximation of the Gram matrix

    @classmethod
    def of(cls, gram: SymmetricGram, landmarks: Ints, smallest: float) -> IterativeNewton:
        """Compute the approximation for the smallest entry of the first D; cost O(n m²)."""
        Q, _ = nystroem_factor(gram, landmarks, smallest)
        return cls(gram, array_api.to_numpy(gram.A).astype(gram.precision), Q)

    def step(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        """Steps until a tenth of the residual is left and the sum descends, and its values."""
        parts = [
            self._solved(D[:, k], b[:, columns], iterations)
            for k, columns in enumerate(_columns(D, b))
        ]
        return np.hstack([step for step, _ in parts]), np.hstack([f for _, f in parts])

    def _solved(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        search = ConjugateGradients(self._system(D), Nystroem(self.Q, D))
        right = array_api.like(D[:, None] * b, self.gram.A, "float64")
        tolerance = _FEW_DIGITS * max(float(np.linalg.norm(D * column)) for column in b.T)
        step, taken = np.zeros_like(b), np.zeros_like(b)
        outputs, progress = taken, None
        for _ in range(_MOST_ROUNDS):
            found = search.run(right, iterations, tolerance, progress)
            right, progress = right - found.Sx, found.progress
            step, taken = step + array_api.to_numpy(found.x), taken + array_api.to_numpy(found.Sx)
            outputs = taken - D[:, None] * step
            if found.left <= tolerance and float((b * outputs).sum()) > 0:
                break
            tolerance = min(tolerance, 0.5 * found.left)
        return step, outputs

    def _system(self, D: Floats) -> Callable[[Array], Array]:
        diagonal = array_api.like(D, self.gram.A, "float64")[:, None]
        return lambda V: self.gram.times(V) + diagonal * V


def _columns(D: Floats, b: Floats) -> list[slice]:
    """The columns of ``b`` that each column of ``D`` is for."""
    if D.shape[1] == 1:
        return [slice(0, b.shape[1])]
    return [slice(k, k + 1) for k in range(b.shape[1])]
