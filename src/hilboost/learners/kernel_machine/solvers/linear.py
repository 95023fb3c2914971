"""Solvers of ``K + D`` for one diagonal ``D`` that all stages and outputs share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.problem import Component
from hilboost.learners.kernel_machine.solvers.conjugate_gradients import (
    ConjugateGradients,
    Progress,
    largest_norm,
)
from hilboost.learners.kernel_machine.solvers.nystroem import Nystroem, nystroem_factor
from hilboost.learners.kernel_machine.workspace import Workspace


@dataclass(frozen=True, eq=False)
class LinearStep:
    """A step towards the solution."""

    change: Floats  # (n, r) float64: what to add to the weights
    outputs: Floats  # (n, r) float64: ``K change``
    left: float  # largest column norm of the residual after the step
    progress: Progress | None  # state of the search; ``None`` after an exact step


@dataclass(frozen=True, eq=False)
class LinearState:
    """A linear system, and how far it is solved."""

    solver: DirectSolver | IterativeSolver
    tolerance: float  # largest column norm of the residual at which the system counts as solved
    left: float = np.inf  # that of the present residual; infinite before the first step
    progress: Progress | None = None  # state of the search; ``None`` before the first step

    @property
    def is_solved(self) -> bool:
        """Whether the residual is within the tolerance."""
        return self.left <= self.tolerance

    def fits(self, D: Floats) -> bool:
        """Whether ``D`` is the diagonal of the system."""
        return np.array_equal(D, self.solver.D)

    def advance(
        self, residual: Floats, so_far: Component, iterations: int
    ) -> tuple[LinearStep, LinearState]:
        """The next step, and the state after it."""
        step = self.solver.step(residual, so_far, iterations, self.tolerance, self.progress)
        return step, replace(self, left=step.left, progress=step.progress)


@dataclass(frozen=True, eq=False)
class SystemSnapshot:
    """A linear system without its matrix, and how far it is solved.

    Sums depend on the order of arrays in memory, which files do not store.
    """

    in_files: ClassVar[bool] = True

    D: Floats  # (n,) float64
    tolerance: float
    left: float
    # direction, size and residual of the search, and whether they are in Fortran order; empty
    # before the first step
    search: tuple[tuple[Floats | None, bool], ...]

    @classmethod
    def of(cls, state: LinearState) -> Self:
        """Take the arrays, which no step changes."""
        found, search = state.progress, []
        for value in () if found is None else (found.direction, found.size, found.residual):
            array = None if value is None else array_api.to_numpy(value)
            search.append((array, array is not None and not array.flags.c_contiguous))
        return cls(state.solver.D, state.tolerance, state.left, tuple(search))

    def progress(self, like: Array) -> Progress | None:
        """Return the state of the search, on the device of an array."""
        if not self.search:
            return None

        direction, size, residual = (
            None
            if array is None
            else array_api.like(
                np.asarray(array, order="F" if is_fortran else "C"), like, "float64"
            )
            for array, is_fortran in self.search
        )
        return Progress(direction, size, residual)


@dataclass(frozen=True, eq=False)
class DirectSolver:
    """``(K + D)⁻¹`` from a Cholesky factor, float64; O(n³) once, O(n² r) a step."""

    K: Array
    factor: Array
    D: Floats
    basis: NDArray
    team: ThreadTeam

    @classmethod
    def of(cls, workspace: Workspace, kernel: Kernel, D: Floats) -> DirectSolver:
        """Evaluate and factor the matrix."""
        X = array_api.cast(workspace.X, "float64")
        K = evaluate(kernel, X, X, workspace.team)
        shifted = array_api.add_to_diagonal(array_api.copied(K), array_api.like(D, K))
        factor = array_api.cholesky(shifted, team=workspace.team)
        return cls(K, factor, D, workspace.basis(slice(None)), workspace.team)

    def step(
        self,
        residual: Floats,  # (n, r) float64
        so_far: Component,  # weights and values before the step
        iterations: int,  # maximum number of conjugate gradient steps
        # largest column norm of the residual at which the system counts as solved
        tolerance: float,
        progress: Progress | None,  # of the last step; ``None`` for the first one
    ) -> LinearStep:
        """The exact step, for which the residual suffices."""
        right = array_api.like(residual.copy(), self.K)
        change = array_api.solve_cholesky(self.factor, right)
        outputs = array_api.to_numpy(array_api.product(self.K, change, self.team))
        return LinearStep(array_api.to_numpy(change), outputs, 0.0, None)


@dataclass(frozen=True, eq=False)
class IterativeSolver:
    """Preconditioned conjugate gradients on ``K + D``, started from a sparse kernel machine."""

    gram: SymmetricGram
    D: Floats  # (n,) float64
    basis: NDArray  # (n, d)
    nystroem: Nystroem  # the preconditioner
    landmarks: Ints  # (m,) int64: basis vectors of the sparse machine
    factor: Array  # (m, m): cholesky factor of their Gram matrix

    @classmethod
    def of(cls, gram: SymmetricGram, landmarks: Ints, D: Floats) -> IterativeSolver:
        """Compute the preconditioner; cost O(n m²)."""
        Q, factor = nystroem_factor(gram, landmarks, float(D.min()))
        basis = array_api.to_numpy(gram.A).astype(gram.precision)
        return cls(gram, D, basis, Nystroem(Q, D), landmarks, factor)

    def step(
        self,
        residual: Floats,
        so_far: Component,
        iterations: int,
        tolerance: float,
        progress: Progress | None,
    ) -> LinearStep:
        """A few conjugate gradient steps.

        If the residual seems small enough, it is recomputed from all weights.  If it is not, the
        outputs lead to the values of ``K (α + step)``, and the fit continues.
        """
        b = array_api.like(residual, self.gram.A, "float64")
        diagonal = array_api.like(self.D, self.gram.A, "float64")[:, None]

        def system(V: Array) -> Array:
            return self.gram.times(V) + diagonal * V

        start, taken_first = b * 0.0, b * 0.0
        if progress is None:
            start = self._sparse_machine(b)
            taken_first = system(start)
            left = largest_norm(array_api.to_numpy(b - taken_first))
            if not left <= largest_norm(residual):  # the landmarks are nearly dependent
                start, taken_first = b * 0.0, b * 0.0
        search = ConjugateGradients(system, self.nystroem)
        found = search.run(b - taken_first, iterations, tolerance, progress)
        change, taken, left = start + found.x, taken_first + found.Sx, found.left
        outputs = taken - diagonal * change
        if left <= tolerance:
            before, function = (array_api.like(v, b) for v in (so_far.alpha, so_far.function))
            true = self.gram.times(before + change) - function
            error = largest_norm(array_api.to_numpy(true - outputs))
            if not error <= tolerance:
                outputs, left = true, error
        return LinearStep(
            array_api.to_numpy(change), array_api.to_numpy(outputs), left, found.progress
        )

    def _sparse_machine(self, b: Array) -> Array:
        """Kernel ridge regression with the landmarks as basis vectors."""
        coefficients = self.nystroem.coefficients(b)
        start = b * 0.0
        start[self.landmarks] = array_api.solve_lower(self.factor, coefficients, transposed=True)
        return start
