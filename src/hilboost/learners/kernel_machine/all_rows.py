"""Systems ``K + D`` of all rows: one diagonal for all stages and outputs, or Newton's systems.

A bounded step has one diagonal ``D`` that all outputs share, and mostly all stages.  Newton steps
are for losses whose curvature changes from stage to stage: with weights α, sample weights w,
negative gradients g and curvatures h, a stage solves ``(K + D) δ = D b`` for ``D = λ / (w h)`` and
the dual residual ``b = w g / λ - α``, zero at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import NotPositive
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.config import Workspace
from hilboost.learners.kernel_machine.conjugate_gradients import (
    ConjugateGradients,
    Features,
    Nystroem,
    Progress,
    largest_norm,
    nystroem_factor,
)
from hilboost.learners.kernel_machine.problem import Change, Component, StageProblem

_LARGEST_RATIO = 1e8  # of D to the mean of k(x, x), for rows that hardly curve the loss
_SMALLEST_CURVATURE = 1e-300
_FEW_DIGITS = 0.1  # of the residual: the next stage has another system
_MOST_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The system of a kernel without its matrix, which is computed again, and how far it is solved.

    Newton's steps have a diagonal of their own in every stage, and no search.
    """

    in_files: ClassVar[bool] = True

    is_ill_conditioned: bool = False  # whether single precision is too coarse for λ
    smallest: float | None = None  # entry of the first diagonal
    # (n,) float64: the diagonal is that of ``K`` and this one; empty before the first bounded step
    D: Floats = field(default_factory=lambda: np.empty(0))
    tolerance: float = 0.0  # largest column norm of the residual at which the system is solved
    left: float = np.inf  # that of the present residual; infinite before the first step
    progress: Progress | None = None  # state of the search; ``None`` before the first step
    ahead: Change | None = None  # from the function so far to the search, if that is not a descent
    is_solved: bool = False

    def restarted(self, **changes: Any) -> LinearSystem:
        """The system with another residual, and other fields."""
        return replace(self, left=np.inf, progress=None, ahead=None, **changes)


@dataclass(eq=False)
class DirectSolver:
    """``(K + D)⁻¹`` from Cholesky factors, float64; O(n³) once for each ``D``, O(n² r) a step."""

    K: Array  # (n, n) float64
    team: ThreadTeam
    factored: tuple[Floats, Array] | None = None  # the last ``D`` (n,), and the factor

    @classmethod
    def of(cls, workspace: Workspace, kernel: Kernel) -> DirectSolver:
        """Evaluate the Gram matrix."""
        X = array_api.cast(workspace.X, "float64")
        return cls(evaluate(kernel, X, X, workspace.team), workspace.team)

    def advanced(
        self, system: LinearSystem, residual: Floats, so_far: Component, iterations: int
    ) -> tuple[Change, LinearSystem]:
        """The exact step for a residual (n, r), and the system after it."""
        D = system.D
        if self.factored is None or not np.array_equal(D, self.factored[0]):
            shifted = array_api.add_to_diagonal(array_api.copied(self.K), array_api.like(D, self.K))
            self.factored = D, array_api.cholesky(shifted, team=self.team)
        right = array_api.like(residual.copy(), self.K)
        weights = array_api.solve_cholesky(self.factored[1], right)
        return self._change(array_api.to_numpy(weights)), replace(system, left=0.0)

    def newton(self, D: Floats, b: Floats, iterations: int) -> Change:
        """The exact step ``(K + D)⁻¹ D b``; O(n³) for every column of ``D``."""
        return self._change(solve_shifted(self.K, D, D * b, self.team))

    def _change(self, weights: Floats) -> Change:
        values = array_api.product(self.K, array_api.like(weights, self.K), self.team)
        return Change(weights, array_api.to_numpy(values))


def solve_shifted(K: Array, D: Floats, right: Floats, team: ThreadTeam) -> Floats:
    """``(K + D)⁻¹ right`` (n, r) for a diagonal ``D`` (n, r), or (n, 1) that all columns share."""
    found = np.empty_like(right)
    diagonal = array_api.namespace(K).linalg.diagonal(K)
    for k, columns in enumerate(_columns(D, right)):
        # Scaled to a unit diagonal: rounding is relative to entries of D, which vary widely.
        added = array_api.like(D[:, k], K)
        total = diagonal + added
        if not bool((total > 0).all()):
            raise NotPositive(array_api.NOT_POSITIVE)
        scale = 1.0 / array_api.sqrt(total)
        system = K * scale
        system *= scale[:, None]
        array_api.add_to_diagonal(system, scale**2 * added)
        factor = array_api.cholesky(system, team=team)
        scaled = scale[:, None] * array_api.like(right[:, columns], K)
        solved = scale[:, None] * array_api.solve_cholesky(factor, scaled)
        found[:, columns] = array_api.to_numpy(solved)
    return found


@dataclass(eq=False)
class IterativeSolver:
    """Conjugate gradients on ``K + D``, preconditioned by a sparse kernel machine."""

    gram: SymmetricGram
    Q: Features  # ``Q Q'`` is the Nyström approximation of the Gram matrix
    landmarks: Ints  # (m,) int64: basis vectors of the sparse machine
    factor: Array  # (m, m): cholesky factor of their Gram matrix
    preconditioner: Nystroem | None = None  # of the last ``D``

    @classmethod
    def of(cls, gram: SymmetricGram, landmarks: Ints, smallest: float) -> IterativeSolver:
        """Compute the approximation for the smallest entry of the first ``D``; cost O(n m²)."""
        Q, factor = nystroem_factor(gram, landmarks, smallest)
        return cls(gram, Q, landmarks, factor)

    def advanced(
        self, system: LinearSystem, residual: Floats, so_far: Component, iterations: int
    ) -> tuple[Change, LinearSystem]:
        """A few steps for a residual (n, r), the first from a sparse machine; the system after.

        ``so_far`` has the weights and values before them.  The steps continue the search, which may
        be ahead of the function.
        If the residual seems small enough, it is recomputed from all weights.  If it is not, the
        outputs lead to the values of ``K (α + step)``, and the fit continues.
        """
        D, tolerance = system.D, system.tolerance
        b = array_api.like(np.ascontiguousarray(residual), self.gram.A, "float64")
        search, sparse_machine = self._search(D)
        start, taken_first = b * 0.0, b * 0.0
        if system.ahead is not None:
            start = array_api.like(system.ahead.weights, b)
            taken_first = array_api.like(system.ahead.outputs, b)
            taken_first = taken_first + array_api.like(D, b)[:, None] * start
        elif system.progress is None:
            coefficients = sparse_machine.coefficients(b)
            start[self.landmarks] = array_api.solve_lower(
                self.factor, coefficients, transposed=True
            )
            taken_first = search.system(start)
            left = largest_norm(array_api.to_numpy(b - taken_first))
            if not left <= largest_norm(residual):  # the landmarks are nearly dependent
                start, taken_first = b * 0.0, b * 0.0
        found = search.run(b - taken_first, iterations, tolerance, system.progress)
        change, taken, left = start + found.x, taken_first + found.Sx, found.left
        outputs = taken - array_api.like(D, b)[:, None] * change
        if left <= tolerance:
            before, function = (array_api.like(v, b) for v in (so_far.alpha, so_far.function))
            true = self.gram.times(before + change) - function
            error = largest_norm(array_api.to_numpy(true - outputs))
            if not error <= tolerance:
                outputs, left = true, error
        step = Change(array_api.to_numpy(change), array_api.to_numpy(outputs))
        return step, replace(system, left=left, progress=found.progress, ahead=None)

    def newton(self, D: Floats, b: Floats, iterations: int) -> Change:
        """Steps until a tenth of the residual is left and the sum descends, and its values."""
        parts = [
            self._solved(D[:, k], b[:, columns], iterations)
            for k, columns in enumerate(_columns(D, b))
        ]
        return Change(*(np.hstack(arrays) for arrays in zip(*parts, strict=True)))

    def _solved(self, D: Floats, b: Floats, iterations: int) -> tuple[Floats, Floats]:
        search, _ = self._search(D)
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

    def _search(self, D: Floats) -> tuple[ConjugateGradients, Nystroem]:
        """The search for solutions of ``K + D``, and its preconditioner."""
        if self.preconditioner is None or not np.array_equal(D, self.preconditioner.D):
            self.preconditioner = Nystroem(self.Q, D)
        diagonal = array_api.like(D, self.gram.A, "float64")[:, None]

        def system(V: Array) -> Array:
            return self.gram.times(V) + diagonal * V

        return ConjugateGradients(system, self.preconditioner), self.preconditioner


def diagonal_of(problem: StageProblem, size: float) -> Floats:
    """``D`` (n, r), or (n, 1) if all outputs share it; ``size`` is the mean of k(x, x)."""
    w = np.ones((problem.n_rows, 1)) if problem.weight is None else problem.weight[:, None]
    if not problem.is_newton:
        return problem.regularization / problem.curvature_bound / w
    with np.errstate(over="ignore"):
        D = problem.regularization / np.maximum(w * problem.own_hessian, _SMALLEST_CURVATURE)
    return np.minimum(D, _LARGEST_RATIO * size)


def _columns(D: Floats, b: Floats) -> list[slice]:
    """The columns of ``b`` that each column of ``D`` is for."""
    if D.shape[1] == 1:
        return [slice(0, b.shape[1])]
    return [slice(k, k + 1) for k in range(b.shape[1])]
