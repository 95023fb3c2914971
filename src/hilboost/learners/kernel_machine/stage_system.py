"""The linear systems of sparse stages, and the recursion that reweights all of them (SY2006).

A stage has a few basis vectors, whose weights are optimal on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import scipy.linalg
from scipy.optimize import minimize

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import IncompatibleParts
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels.gram import Gram, evaluate, require_memory
from hilboost.learners.kernel_machine.config import Workspace
from hilboost.learners.kernel_machine.descending import Descending, unspoilt
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import Change, StageProblem, minimizer
from hilboost.learners.kernel_machine.state import MachineState

BYTES_BESIDE = 2.0**27  # for blocks of kernel values
_SMALLEST_NEW_PART = 1e-12


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

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        problem: StageProblem,
        rows: Ints,  # (D,) int64: basis vectors
        on: Ints | None = None,  # (m,) int64: rows to sum over; by default all
        reserved: float = 0.0,  # bytes of the memory budget that others use
    ) -> StageSystem:
        """``H`` and ``g`` of SY2006, eq. (21)."""
        kernel, lam, D, W = problem.kernel, problem.regularization, len(rows), problem.curvature
        n_systems = 1 if W is None else W.shape[1]
        needed = 8.0 * D * D * (3 if n_systems == 1 else 2 + problem.n_outputs) + reserved
        require_memory(needed + BYTES_BESIDE, workspace.memory, f"a stage of {D} basis vectors")
        gram = workspace.gram(kernel, on, rows, workspace.memory - needed)
        right = problem.weighted_gradient
        if on is not None:
            right, W = right[on], None if W is None else W[on]
        columns = [None] if W is None else [array_api.like(w, workspace.X, "float64") for w in W.T]
        right = array_api.like(right, workspace.X, "float64")
        sums = [gram.sums(w, None if k else right) for k, w in enumerate(columns)]
        points = array_api.cast(workspace.X[rows], "float64")
        K_DD = evaluate(kernel, points, points, workspace.team)
        so_far = array_api.like(problem.so_far.function[rows], workspace.X, "float64")
        return cls(gram, [total for total, _ in sums], sums[0][1] - lam * so_far, K_DD, lam)

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
        if len(hessians) == 1:
            hessians *= start.shape[1]
        columns = zip(hessians, array_api.to_numpy(self.g).T, start.T, strict=True)
        steps = [minimize_quotient(H, g, a, iterations) for H, g, a in columns]
        return np.column_stack(steps)

    def gain(self) -> float:
        """``½ g'H⁻¹g``, the decrease of the penalized loss."""
        return 0.5 * float((array_api.to_numpy(self.g) * self.solve()).sum())

    def change(self, a: Floats) -> Change:
        """The change by weights (D, r)."""
        outputs = self.gram.times(array_api.like(a, self.gram.A, "float64"))
        return Change(a, array_api.to_numpy(outputs))


def optimal_step(
    state: MachineState,
    problem: StageProblem,
    rows: Ints,  # (D,) int64: basis vectors
    patience: int,  # with Newton's steps on a part of the rows
    solve: Callable[[StageSystem], Floats] = StageSystem.solve,
    reserved: float = 0.0,  # bytes of the memory budget that others use
) -> Descending:
    """The step whose weights are optimal on all rows, in double precision if single is coarse."""
    system = StageSystem.of(state.workspace, problem, rows, reserved=reserved)
    a = solve(system)
    if state.refine_precision(problem, rows, a):
        system = StageSystem.of(state.workspace, problem, rows, reserved=reserved)
        a = solve(system)
    is_whole = len(rows) == problem.n_rows
    if problem.is_newton:
        state.expect_descent(1 if is_whole else patience)
    # Between the first stage and those of all rows, one step of Newton's method suffices at
    # corners: the bases limit the decrease.
    if problem.corners is not None and (is_whole or not state.record.n_stages):
        return step_to_corners(state, problem, rows)
    step = Descending.along(problem, state.workspace, rows, system.change(a))
    return unspoilt(step, problem)


def step_to_corners(state: MachineState, problem: StageProblem, rows: Ints) -> Descending:
    """The step to the minimum of a loss with corners over the span of basis vectors."""

    def newton(now: StageProblem, change: Change) -> Change:
        system = StageSystem.of(state.workspace, now, rows)
        moved = problem.regularization * change.outputs[rows]
        g = system.g - array_api.like(moved, system.g)
        return system.change(replace(system, g=g).solve())

    change = minimizer(problem, rows, newton)
    return replace(Descending.along(problem, state.workspace, rows, change), is_minimizer=True)


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


@dataclass(frozen=True, eq=False)
class Reweighting:
    """Recursion for the weights ``c`` that minimize ``½ |y - F c|² + ½ λ c'Qc``.

    ``F`` (n, j) holds the outputs of the stages on the training rows and ``Q`` (j, j) their inner
    products in the space of the kernel.  With ``L L' = Q``, ``G = F L⁻ᵀ`` and ``M M' = G'G + λ I``,
    a new stage adds one row to each factor.

    Cost O(n j) for the j-th stage, compared to O(n j²) without the recursion; it keeps 8 n bytes a
    stage.
    """

    in_files: ClassVar[bool] = True

    regularization: float  # λ
    G: tuple[Floats, ...] = ()  # (n,) float64 for each stage
    L: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (j, j) float64
    M: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (j, j) float64

    def after(
        self, f: Floats, q: Floats, q_own: float, residual: Floats
    ) -> tuple[Reweighting, float, Floats]:
        """Add a stage; also return its weight, and the changes of the earlier weights.

        ``f`` (n,) are its outputs and ``residual`` (n,) is ``y - F c`` before it, both multiplied
        by the roots of the sample weights, if any.  ``q`` (j - 1,) are inner products of the stage
        with the earlier stages, and ``q_own`` is its squared norm.
        """
        lam = self.regularization
        low = _solve(self.L, q)
        # Late in boosting, a stage is nearly a linear combination of the earlier ones.
        new_part = max(q_own - float(low @ low), _SMALLEST_NEW_PART * q_own, 1e-300)
        l_own = float(np.sqrt(new_part))
        g = f.copy()
        for column, factor in zip(self.G, low, strict=True):
            g -= factor * column
        g /= l_own
        overlap = np.array([column @ g for column in self.G])
        m = _solve(self.M, overlap)
        eta = _solve(self.M, m, transposed=True)
        d = g.copy()
        for column, factor in zip(self.G, eta, strict=True):
            d -= factor * column
        size = lam + max(float(d @ g), 0.0)
        b = float(g @ residual)  # equal to d'y, but accurate late in boosting
        own = b / (l_own * size) if size > 0 else 0.0
        change = -own * _solve(self.L, low + l_own * eta, transposed=True)
        grown = Reweighting(
            lam, (*self.G, g), _grown(self.L, low, l_own), _grown(self.M, m, np.sqrt(size))
        )
        return grown, own, change


@dataclass(frozen=True, eq=False)
class ReweightedStages:
    """The stages so far, whose weights are set anew after each stage."""

    in_files: ClassVar[bool] = True

    recursions: tuple[Reweighting, ...]  # one for each output
    rows: tuple[Ints, ...] = ()  # (m,) int64 for each stage: basis vectors
    weights: tuple[Floats, ...] = ()  # (m, r) float64
    outputs: tuple[Floats, ...] = ()  # (n, r) float64
    models: tuple[KernelExpansion, ...] = ()  # not in snapshots

    @classmethod
    def of(cls, problem: StageProblem) -> ReweightedStages:
        """No stages."""
        return cls((Reweighting(problem.regularization),) * problem.n_outputs)

    @property
    def kept(self) -> ReweightedStages:
        """The part that snapshots keep: terms have the models."""
        return replace(self, models=())

    def restored(self, terms: Sequence[Term]) -> ReweightedStages:
        """The stages with the objects of the terms: each adds a term, and one for each before."""
        n = len(self.rows)
        if 2 * len(terms) != n * (n + 1):
            raise ValueError("the number of reweighted stages is inconsistent")
        firsts: list[KernelExpansion] = [terms[k * (k + 1) // 2].model for k in range(n)]
        parts = zip(firsts, self.rows, self.weights, strict=True)
        models = (replace(model, rows=rows, weights=weights) for model, rows, weights in parts)
        return replace(self, models=tuple(models))

    def after(
        self, step: Descending, problem: StageProblem
    ) -> tuple[ReweightedStages, list[Descending]]:
        """Add a stage; return it with its weight by (27), and the others with their changes."""
        model, outputs = step.term.model, step.outputs
        assert model.rows is not None
        weight, before = problem.weight, list(zip(self.models, self.outputs, strict=True))
        root = np.ones(problem.n_rows) if weight is None else np.sqrt(weight)
        own = np.empty(problem.n_outputs)
        changes = np.empty((len(before), problem.n_outputs))
        grown = []
        for k, recursion in enumerate(self.recursions):
            q = np.array([_inner_product(model, k, old, values) for old, values in before])
            q_own = _inner_product(model, k, model, outputs)
            f, residual = root * outputs[:, k], root * problem.gradients.negative_gradient[:, k]
            added, own[k], changes[:, k] = recursion.after(f, q, q_own, residual)
            grown.append(added)
        made = ReweightedStages(
            tuple(grown),
            (*self.rows, model.rows),
            (*self.weights, model.weights),
            (*self.outputs, outputs),
            (*self.models, model),
        )
        weighted = replace(step, term=replace(step.term, coefficient=own), slope=0.0, curvature=0.0)
        changed = [
            Descending(Term(one, slice(0, problem.n_outputs), by), outputs=values)
            for (one, values), by in zip(before, changes, strict=True)
        ]
        return made, [weighted, *changed]


def _inner_product(
    new: KernelExpansion, column: int, old: KernelExpansion, outputs: Floats
) -> float:
    """Of the functions of two stages; functions of different kernels are penalized separately."""
    if old.kernel is not new.kernel:
        return 0.0
    return float(new.weights[:, column] @ outputs[new.rows, column])


def require_squared_error(gradients: Gradients, sample: RowSample) -> None:
    """Refuse to reweight stages under other losses, or of different rows."""
    if gradients.hessian is not None:
        raise IncompatibleParts(
            "reweight=True requires squared error; set loss='squared_error', or reweight=False."
        )
    if sample.rows is not None:
        raise IncompatibleParts(
            "reweight=True requires the same rows in all stages; set subsample=1, or "
            "reweight=False. To limit the rows from which basis vectors are chosen, use "
            "subset_size."
        )


def _solve(factor: Floats, right: Floats, transposed: bool = False) -> Floats:
    if not len(right):
        return right
    return scipy.linalg.solve_triangular(
        factor, right, lower=True, trans=int(transposed), check_finite=False
    )


def _grown(factor: Floats, row: Floats, corner: float) -> Floats:
    j = len(factor)
    grown = np.zeros((j + 1, j + 1))
    grown[:j, :j] = factor
    grown[j, :j] = row
    grown[j, j] = max(corner, 1e-150)
    return grown
