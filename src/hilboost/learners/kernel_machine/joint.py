"""A correction of the weights of all basis vectors so far."""

from __future__ import annotations

from dataclasses import dataclass

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.kernels.gram import Gram, evaluate, require_memory
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.solvers.conjugate_gradients import (
    ConjugateGradients,
    largest_norm,
)
from hilboost.learners.kernel_machine.state import MachineState

_JITTER = 1e-9
_TOLERANCE = 1e-6  # of the residual, relative to the first one


@dataclass(frozen=True, eq=False)
class FalkonPreconditioner:
    """``((w / m) K_SS² + λ K_SS)⁻¹``, with ``(w / m) K_SS²`` for ``K'WK`` (Rudi et al. 2017)."""

    T: Array  # (m, m): cholesky factor of ``K_SS``
    inner: Array  # (m, m): cholesky factor of ``(w / m) T'T + λ I``

    @classmethod
    def of(cls, K_SS: Array, mass: float, regularization: float) -> FalkonPreconditioner:
        """Factor twice; cost O(m³).

        ``K_SS``: (m, m). ``mass``: ``w``, the sum of the weights of all rows. ``regularization``:
        λ.
        """
        T = array_api.cholesky(K_SS + 0.0, _JITTER)
        product = T.T @ T * (mass / K_SS.shape[0])
        return cls(T, array_api.cholesky(array_api.add_to_diagonal(product, regularization)))

    def __call__(self, R: Array) -> Array:
        """Apply it to ``R`` (m, r)."""
        middle = array_api.solve_cholesky(self.inner, array_api.solve_lower(self.T, R + 0.0))
        return array_api.solve_lower(self.T, middle, transposed=True)


@dataclass(frozen=True, eq=False)
class NormalOperator:
    """``K'WK + λ K_SS`` for a Gram matrix ``K`` (n, m) that need not be in memory."""

    gram: Gram  # gram, (n, m)
    weight: Array | None  # (n,) or None: diagonal of ``W``
    K_SS: Array  # (m, m)
    regularization: float

    def __call__(self, V: Array) -> Array:
        """Apply it to ``V`` (m, r)."""
        normal = self.gram.normal_times(V, self.weight)
        return normal + self.regularization * (self.K_SS @ V)


def refit(state: MachineState, problem: StageProblem, iterations: int) -> Descending:
    """A stage with all basis vectors so far, which makes their weights nearly optimal.

    It solves ``(K'WK + λ K_SS) δ = K'g - λ f(S)`` for the weighted negative gradient ``g`` and the
    function so far ``f``, by preconditioned conjugate gradients.

    ``problem``: all outputs share the largest curvature of a row. ``iterations``: maximum number of
    steps.

    Cost O(m³) once and O(n m) kernel values a step, for m basis vectors so far.
    """
    workspace, lam = state.workspace, problem.regularization
    component = state.component(problem.kernel, problem.n_outputs)
    rows = component.basis
    m = len(rows)
    needed = 32.0 * m * m
    require_memory(needed + 2.0**27, workspace.memory, f"refitting {m} weights")
    points = array_api.cast(workspace.X[rows], "float64")
    K_SS = evaluate(problem.kernel, points, points, workspace.team)
    W = problem.curvature
    mass, weight = float(problem.n_rows), None
    if W is not None:
        shared = W.max(axis=1)
        mass, weight = float(shared.sum()), array_api.like(shared, workspace.X, "float64")
    precondition = FalkonPreconditioner.of(K_SS, mass, lam)
    gram = workspace.gram(problem.kernel, None, rows, workspace.memory - needed)
    b = gram.transposed_times(
        array_api.like(problem.weighted_gradient, workspace.X, "float64")
    ) - lam * array_api.like(component.function[rows], workspace.X, "float64")
    search = ConjugateGradients(NormalOperator(gram, weight, K_SS, lam), precondition)
    found = search.run(b, iterations, _TOLERANCE * largest_norm(b))
    outputs = array_api.to_numpy(gram.times(found.x))
    model = workspace.expansion(problem.kernel, rows, array_api.to_numpy(found.x))
    return Descending.along(problem, model, outputs, component.function[rows], outputs[rows])
