"""Stages with a few basis vectors each, fitted to all rows: kernel boosting (SY2006)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels.gram import evaluate, require_memory
from hilboost.learners.kernel_machine.basis import COLUMNS_HELD, Problem, refuse_many_rows, select
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.conjugate_gradients import ConjugateGradients, largest_norm
from hilboost.learners.kernel_machine.descending import Descending, unspoilt
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.problem import Change, StageProblem
from hilboost.learners.kernel_machine.stage_system import (
    BYTES_BESIDE,
    ReweightedStages,
    StageSystem,
    optimal_step,
    require_squared_error,
    step_to_corners,
)
from hilboost.learners.kernel_machine.state import MachineRecord, MachineState

_JITTER = 1e-9
_TOLERANCE = 1e-6  # of the residual, relative to the first one
_ROWS_OF_GAINS = 4000
_BASIS_OF_GAINS = 1000
_PATIENCE = 5
_MOST_AT_CORNERS = 1e10  # products in each of the thirty or so systems of a joint minimum


@dataclass(frozen=True, eq=False)
class FalkonPreconditioner:
    """``((w / m) K_SS² + λ K_SS)⁻¹``, with ``(w / m) K_SS²`` for ``K'WK`` (Rudi et al. 2017)."""

    T: Array  # (m, m): cholesky factor of ``K_SS``
    inner: Array  # (m, m): cholesky factor of ``(w / m) T'T + λ I``

    @classmethod
    def of(cls, K_SS: Array, mass: float, regularization: float) -> FalkonPreconditioner:
        """Factor ``K_SS`` (m, m) twice, for rows of total weight ``mass``; cost O(m³)."""
        T = array_api.cholesky(K_SS + 0.0, _JITTER)
        product = T.T @ T * (mass / K_SS.shape[0])
        return cls(T, array_api.cholesky(array_api.add_to_diagonal(product, regularization)))

    def __call__(self, R: Array) -> Array:
        """Apply it to ``R`` (m, r)."""
        middle = array_api.solve_cholesky(self.inner, array_api.solve_lower(self.T, R + 0.0))
        return array_api.solve_lower(self.T, middle, transposed=True)


def refit(state: MachineState, problem: StageProblem, iterations: int) -> Descending:
    """A stage with all basis vectors so far, which makes their weights nearly optimal.

    It solves ``(K'WK + λ K_SS) δ = K'g - λ f(S)`` for the weighted negative gradient ``g`` and the
    function so far ``f``, by preconditioned conjugate gradients.  All outputs share the largest
    curvature of a row.  Cost O(m³) once and O(n m) kernel values a step, for m basis vectors so
    far.
    """
    workspace, lam = state.workspace, problem.regularization
    component = problem.so_far
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

    def system(V: Array) -> Array:
        return gram.normal_times(V, weight) + lam * (K_SS @ V)

    search = ConjugateGradients(system, precondition)
    found = search.run(b, iterations, _TOLERANCE * largest_norm(b))
    change = Change(array_api.to_numpy(found.x), array_api.to_numpy(gram.times(found.x)))
    return Descending.along(problem, workspace, rows, change)


@dataclass(frozen=True)
class SparseLearner(KernelLearner):
    """A stage is a sparse kernel machine whose weights are optimal on all rows.

    A selection strategy chooses the basis vectors for the current residual from a random subset
    ``D_j``.  The weights minimize the penalized loss of the whole ensemble, SY2006, eq. (21), a
    rank-one generalized Rayleigh quotient.  With ``H = K'WK + λ K_DD``,
    ``g = K' negative - λ f(basis)`` and the ensemble so far ``f``, the solution is ``a = H⁻¹ g``,
    and the objective decreases by ``½ g'H⁻¹g``.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    n_basis: int = 1000  # number of basis vectors of a stage
    subset_size: int | None = None  # number of rows that they are chosen from; ``None`` means all
    # A name of :data:`~hilboost.learners.kernel_machine.basis.SELECTIONS`
    selection: str = "residual"
    # κ, for ``selection="forward"``: number of rows scored in each step; ``None`` means all
    n_candidates: int | None = 59
    # the latter follows SY2006: it starts from the weights fitted to ``D_j``, and takes conjugate
    # gradient steps with the gradient (22)–(26)
    solver: str = "closed_form"
    cg_iterations: int = 50
    # whether the norm of the whole function is penalized (SY2006, eq. 12, µ = λ), or that of the
    # stage alone.
    penalty: str = "ensemble"
    # whether to set the weights of all stages anew after each one, by the recursion (27)
    reweight: bool = False
    # number of stages after which another one corrects the weights of all basis vectors together,
    # by at most ``cg_iterations`` steps of preconditioned conjugate gradients
    refit_every: int | None = None
    # multiples of the length scales to choose from in every stage, by the gain ``½ g'H⁻¹g`` on the
    # subset
    length_scale_factors: tuple[float, ...] = ()

    name: ClassVar[str] = "sparse"

    def state(self, workspace: Workspace) -> SparseState:
        """The state before the first stage."""
        return SparseState(workspace)

    def fit(
        self, data: SparseState, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one expansion; with ``reweight`` also the changes of the earlier ones."""
        if not self.reweight:
            return super().fit(data, gradients, sample, rng)
        require_squared_error(gradients, sample)
        super().fit(data, gradients, sample, rng)
        return data.shown(*data.reweighted())

    def step(
        self, data: MachineState, problem: StageProblem, rng: np.random.Generator
    ) -> Descending:
        """Fit one expansion in chosen basis vectors."""
        joint = self._joint_stage(data, problem, rng)
        if joint is not None:
            return joint
        subset = self.subset(problem.weight, problem.n_rows, rng)
        reserved = self._reserved(data, problem)
        problem = self._with_best_scale(data, problem, subset, reserved)
        rows = self.choose_basis(data.workspace, problem, subset, rng, reserved)
        solve = StageSystem.solve
        if self.solver == "conjugate_gradient":
            # Step 2(a): the machine that is fitted to the subset alone.
            of_subset = StageSystem.of(data.workspace, problem.alone, rows, subset, reserved)
            solve = partial(
                StageSystem.improve, start=of_subset.solve(), iterations=self.cg_iterations
            )
        patience = max(_PATIENCE, 1 + (self.refit_every or 0))
        return optimal_step(data, problem, rows, patience, solve, reserved)

    def _joint_stage(
        self, data: MachineState, problem: StageProblem, rng: np.random.Generator
    ) -> Descending | None:
        """A stage with all basis vectors so far, if it is its turn; at corners, with new ones."""
        if self.refit_every is None or (data.record.n_stages + 1) % (self.refit_every + 1) != 0:
            return None
        used = problem.so_far.basis
        products = problem.n_rows * float(len(used) + self.n_basis) ** 2
        if problem.corners is not None and products <= _MOST_AT_CORNERS:
            others = np.setdiff1d(self.subset(problem.weight, problem.n_rows, rng), used)
            if len(others):
                added = self.choose_basis(data.workspace, problem, others, rng)
                used = np.union1d(used, added)
            return step_to_corners(data, problem, used)
        if not len(used):
            return None
        return unspoilt(refit(data, problem, self.cg_iterations), problem)

    def subset(self, weight: Floats | None, n: int, rng: np.random.Generator) -> Ints:
        """Random rows of ``n`` to choose the basis vectors from, in ascending order."""
        rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
        if self.subset_size is None or self.subset_size >= len(rows):
            return rows
        return np.sort(rng.choice(rows, self.subset_size, replace=False))

    def choose_basis(
        self,
        workspace: Workspace,
        problem: StageProblem,
        subset: Ints,  # (m,) int64: rows to choose from
        rng: np.random.Generator,
        reserved: float = 0.0,  # bytes of the memory budget that others use
    ) -> Ints:  # (D,) int64: row numbers
        """Choose the basis vectors of a stage."""
        weight = None if problem.curvature is None else problem.curvature[subset].mean(axis=1)
        residual, hessian = problem.gradients.negative_gradient[subset], problem.hessian
        if hessian is not None:
            residual = residual / hessian[subset].mean(axis=1, keepdims=True)
        if self.selection == "forward" and self.n_candidates is None:
            refuse_many_rows(len(subset))
        D = min(self.n_basis, len(subset))
        held = COLUMNS_HELD.get(self.selection, 0) * 8.0 * len(subset) * D + reserved
        require_memory(held, workspace.memory, f"choosing {D} of {len(subset)} rows")
        candidates = Problem.of(
            problem.kernel,
            array_api.to_numpy(workspace.X[subset]),
            residual,
            weight,
            problem.regularization,
            self.n_candidates,
        )
        return subset[select(self.selection, candidates, self.n_basis, rng)]

    def _reserved(self, data: MachineState, problem: StageProblem) -> float:
        """Bytes of outputs and columns of G that reweighting keeps of all stages with this one."""
        if not self.reweight:
            return 0.0
        n_stages = 1 + len((data.record.own or ReweightedStages.of(problem)).rows)
        kept = 16.0 * problem.n_rows * problem.n_outputs * n_stages
        what = f"reweighting {n_stages} stages on {problem.n_rows} rows"
        require_memory(kept + BYTES_BESIDE, data.workspace.memory, what, "stages (n_estimators)")
        return kept

    def _with_best_scale(
        self, data: MachineState, problem: StageProblem, subset: Ints, reserved: float
    ) -> StageProblem:
        """The problem with the multiple of the length scales that has the highest gain."""
        candidates = [problem]
        if self.length_scale_factors:
            kernels = data.stretched(problem.kernel, self.length_scale_factors)
            parts = [data.component(kernel, problem.n_outputs) for kernel in kernels]
            candidates = [replace(problem, so_far=part) for part in parts]
        if self.penalty == "stage":
            candidates = [one.alone for one in candidates]
        if not self.length_scale_factors:
            return candidates[0]
        scored = subset[:: max(1, len(subset) // _ROWS_OF_GAINS)]
        basis = scored[:: max(1, len(scored) // min(self.n_basis, _BASIS_OF_GAINS))]
        systems = (
            StageSystem.of(data.workspace, one, basis, scored, reserved) for one in candidates
        )
        return candidates[int(np.argmax([system.gain() for system in systems]))]


class SparseState(MachineState):
    """The record of a fit; its own part are the stages that are reweighted."""

    def snapshot(self) -> MachineRecord | None:
        """The record that later stages need, without the models."""
        record = super().snapshot()
        return record and replace(record, own=record.own and record.own.kept)

    def restore(self, record: MachineRecord, terms: Sequence[Term]) -> list[Term]:
        """Continue from a snapshot, with the models of the terms."""
        restored = super().restore(record, terms)
        if record.own is not None:
            self.note(own=record.own.restored(restored))
        return restored

    def reweighted(self) -> list[Descending]:
        """The proposed stage with its weight, and the earlier ones with the change of theirs."""
        assert self.best is not None
        before = self.record.own or ReweightedStages.of(self.best)
        own, steps = before.after(self.proposed[0], self.best)
        self.note(own=own)
        return steps
