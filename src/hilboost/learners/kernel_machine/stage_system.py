"""The linear system of a sparse stage: a few basis vectors, their weights optimal on all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels.gram import Gram, evaluate, require_memory
from hilboost.learners.kernel_machine.config import Workspace
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.solvers.multipliers import Change
from hilboost.learners.kernel_machine.state import MachineState

BYTES_BESIDE = 2.0**27  # for blocks of kernel values


@dataclass(frozen=True, eq=False)
class StageSystem:
    """The quadratic model of a stage: ``½ a'Ha - g'a`` with ``H = K'WK + λ K_DD``.

    This is the numerator and denominator of SY2006, eq. (21).
    """

    gram: Gram  # gram, (n, D)
    grams: list[Array]  # list of (D, D): ``K'WK``, one for all outputs or one for each
    g: Array  # (D, r)
    K_DD: Array  # (D, D)
    regularization: float

    def _hessians(self) -> list[Array]:
        return [total + self.regularization * self.K_DD for total in self.grams]

    def solve(self) -> Floats:
        """The optimal weights ``H⁻¹ g``, (D, r); cost O(D³)."""
        factors = [array_api.cholesky(H) for H in self._hessians()]
        if len(factors) == 1:
            return array_api.to_numpy(array_api.solve_cholesky(factors[0], self.g + 0.0))
        solved = [
            array_api.solve_cholesky(factor, self.g[:, k] + 0.0) for k, factor in enumerate(factors)
        ]
        return np.column_stack([array_api.to_numpy(weights) for weights in solved])

    def improve(self, start: Floats, iterations: int) -> Floats:
        """Weights (D, r) after some steps of conjugate gradients from ``start`` (D, r)."""
        hessians = [array_api.to_numpy(H) for H in self._hessians()]
        g = array_api.to_numpy(self.g)
        return np.column_stack(
            [
                minimize_quotient(
                    hessians[min(k, len(hessians) - 1)], g[:, k], start[:, k], iterations
                )
                for k in range(g.shape[1])
            ]
        )

    def gain(self) -> float:
        """``½ g'H⁻¹g``, the decrease of the penalized loss."""
        return 0.5 * float((array_api.to_numpy(self.g) * self.solve()).sum())

    def outputs(self, a: Floats) -> Floats:
        """Values on all rows, (n, r)."""
        return array_api.to_numpy(self.gram.times(array_api.like(a, self.gram.A, "float64")))


@dataclass(frozen=True)
class StageSolver:
    """Sets up the systems of stages, and solves them."""

    # whether the norm of the whole function is penalized (SY2006, eq. 12, µ = λ), or that of the
    # stage alone.
    penalizes_ensemble: bool = True
    iterations: int = 50  # steps of conjugate gradients, if they are wanted
    reserved: float = 0.0  # bytes of the memory budget that others use

    def system(
        self,
        state: MachineState,
        problem: StageProblem,
        rows: Ints,  # (D,) int64: basis vectors
        on: Ints | None = None,  # (m,) int64: rows to sum over; by default all
    ) -> StageSystem:
        """``H`` and ``g`` of SY2006, eq. (21)."""
        workspace, kernel, D = state.workspace, problem.kernel, len(rows)
        W = problem.curvature
        n_systems = 1 if W is None else W.shape[1]
        needed = 8.0 * D * D * (3 if n_systems == 1 else 2 + problem.n_outputs)
        needed += self.reserved
        require_memory(needed + BYTES_BESIDE, workspace.memory, f"a stage of {D} basis vectors")
        gram = workspace.gram(kernel, on, rows, workspace.memory - needed)
        right = problem.weighted_gradient
        right = right if on is None else right[on]
        W = W if on is None or W is None else W[on]
        points = array_api.cast(workspace.X[rows], "float64")
        K_DD = evaluate(kernel, points, points, workspace.team)
        grams, g = _sums(gram, W, right, workspace)
        if self.penalizes_ensemble:
            function = state.component(kernel, problem.n_outputs).function[rows]
            g = g - problem.regularization * array_api.like(function, workspace.X, "float64")
        return StageSystem(gram, grams, g, K_DD, problem.regularization)

    def solved(
        self,
        state: MachineState,
        problem: StageProblem,
        rows: Ints,  # (D,) int64
        # (D, r) float64: start of conjugate gradients; by default, the solution is exact
        start: Floats | None = None,
    ) -> tuple[StageSystem, Floats]:
        """A system and its weights (D, r), in double precision if single is inaccurate."""
        system = self.system(state, problem, rows)
        a = self._weights(system, start)
        if state.refine_precision(problem.kernel, rows, a):
            system = self.system(state, problem, rows)
            a = self._weights(system, start)
        return system, a

    def at_corners(self, state: MachineState, problem: StageProblem, rows: Ints) -> Descending:
        """The step to the minimum of a loss with corners over the span of basis vectors."""

        def newton(now: StageProblem, change: Change) -> Change:
            system = self.system(state, now, rows)
            moved = problem.regularization * change.outputs[rows]
            g = system.g - array_api.like(moved, system.g)
            a = replace(system, g=g).solve()
            return Change(a, system.outputs(a))

        function = state.component(problem.kernel, problem.n_outputs).function[rows]
        if not self.penalizes_ensemble:
            function = np.zeros_like(function)
        change = state.at_corners(problem, rows, newton, function)
        of_ensemble = self.penalizes_ensemble
        step = state.step_of(problem, rows, change.weights, change.outputs, of_ensemble=of_ensemble)
        return replace(step, is_minimizer=True)

    def _weights(self, system: StageSystem, start: Floats | None) -> Floats:
        return system.solve() if start is None else system.improve(start, self.iterations)


def _sums(
    gram: Gram, W: Floats | None, right: Floats, workspace: Workspace
) -> tuple[list[Array], Array]:
    """``K'WK`` for every column of ``W``, and ``K'R`` for ``R`` (n, r)."""
    grams = []
    product: Array = None
    for column in range(1 if W is None else W.shape[1]):
        w = None if W is None else array_api.like(W[:, column], workspace.X, "float64")
        first = array_api.like(right, workspace.X, "float64") if column == 0 else None
        total, found = gram.sums(w, first)
        grams.append(total)
        product = found if column == 0 else product
    return grams, product


def minimize_quotient(H: Floats, g: Floats, start: Floats, iterations: int) -> Floats:
    """Nonlinear conjugate gradients on SY2006, eq. (21), then the best length ``c*`` of (20).

    (21) is ``-½ (g'a)² / (a'Ha)``; its gradient (22) is ``c (c Ha - g)`` with ``c = g'a / a'Ha``.
    """
    if not start.any():
        start = g

    def objective(a: Floats) -> tuple[float, Floats]:
        Ha = H @ a
        curvature = max(float(a @ Ha), 1e-300)
        c = float(g @ a) / curvature
        return -0.5 * c * c * curvature, c * (c * Ha - g)

    size = float(np.abs(objective(start)[0])) or 1.0

    def scaled(a: Floats) -> tuple[float, Floats]:
        value, gradient = objective(a)
        return value / size, gradient / size

    options = {"maxiter": iterations, "gtol": 0.0}
    result = minimize(scaled, start, jac=True, method="CG", options=options)
    a = result.x if np.isfinite(result.x).all() else start
    curvature = float(a @ (H @ a))
    return a * (float(g @ a) / curvature) if curvature > 0 else np.zeros_like(a)
