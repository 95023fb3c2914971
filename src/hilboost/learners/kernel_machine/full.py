"""Kernel ridge regression on all rows: exact, or a few conjugate gradient steps a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import IncompatibleParts
from hilboost.kernels.gram import mean_diagonal, require_memory
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.all_rows import (
    DirectSolver,
    IterativeSolver,
    LinearSystem,
    diagonal_of,
)
from hilboost.learners.kernel_machine.config import (
    DIRECT_UP_TO,
    KernelMachineConfig,
    Workspace,
    free_memory,
    require_free,
)
from hilboost.learners.kernel_machine.conjugate_gradients import largest_norm
from hilboost.learners.kernel_machine.descending import (
    LARGEST_SHARE,
    Descending,
    share_of_rounding,
    unspoilt,
)
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.problem import Change, StageProblem, minimizer
from hilboost.learners.kernel_machine.state import MachineRecord, MachineState
from hilboost.learners.kernel_machine.tuning.choose import Choice

_ILL_CONDITIONED_DIRECT_UP_TO = 12_000  # rows; conjugate gradients would take many steps
# Later stages take up to 16 times as many steps, if their kernel values are this many at most.
_USUAL_STAGES, _MOST_DOUBLINGS, _MOST_VALUES = 10, 4, 1e11


@dataclass(frozen=True)
class FullLearner(KernelLearner):
    """Kernel ridge regression with all training rows as basis vectors.

    A stage solves ``(K + D) δ = g / h - D α`` for ``D = λ / (h w)``, with the negative gradient
    ``g``, a bound ``h`` on the hessian, and the weights α so far.  It minimizes a quadratic bound
    on the penalized loss: the loss itself for squared error, the bound of Böhning (1992) for log
    loss.  Up to 5,000 rows, one Cholesky factor serves all stages.  For more rows, a stage is
    ``iterations`` steps of conjugate gradients, preconditioned by a sparse kernel machine of
    ``n_landmarks`` basis vectors: a direction is that machine fitted to the residual, made
    conjugate to the last direction.

    Losses whose curvature has no bound take Newton steps, with one system per stage and output.

    The Gram matrix is kept if it fits into the memory budget, at 2 n² bytes; otherwise it is
    evaluated in every step.

    Kernel values are float32 only if λ is well above their rounding error, and the sums of the
    first stage keep their digits.  If λ is not, up to 12,000 rows are solved by a Cholesky factor
    as well; otherwise, conjugate gradients use float64.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    iterations: int = 10
    n_landmarks: int | str = "auto"
    # the fit ends when the residual has fallen to this fraction of the first one
    tolerance: float = 1e-3

    name: ClassVar[str] = "full"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of kernel stages, without samples of rows."""
        return replace(super().capabilities, takes_samples=False)

    def state(self, workspace: Workspace) -> FullState:
        """The state before the first stage."""
        return FullState(workspace)

    def step(self, data: FullState, problem: StageProblem, rng: np.random.Generator) -> Descending:
        """Fit one expansion in all rows."""
        if problem.weight is not None and not (problem.weight > 0).all():
            raise IncompatibleParts(
                "full stages do not support row sampling; set subsample=1 and bootstrap=False, or "
                "stages='sparse'."
            )
        size = mean_diagonal(problem.kernel, data.workspace.X)
        if len(data.systems) == problem.place:
            problem = data.settled(problem, diagonal_of(problem, size).min(axis=1))
        take = self._newton_step if problem.is_newton else self._bounded_step
        change = take(data, problem, size)
        is_first = not data.record.n_stages
        every = np.arange(problem.n_rows)
        if is_first and data.refine_precision(problem, every, change.weights):
            data.restart_solvers()
            change = take(data, problem, size)
        step, rest = data.descending(problem, change)
        if rest is not None and is_first and data.restart_search(problem.place):
            # The sparse machine alone minimizes the penalized error over its span.
            change = self._bounded_step(data, problem, size, iterations=0)
            step, rest = data.descending(problem, change)
        if rest is not None:
            data.fall_behind(problem.place, rest)
        return replace(step, is_minimizer=problem.is_newton and problem.corners is not None)

    def _bounded_step(
        self, data: FullState, problem: StageProblem, size: float, iterations: int | None = None
    ) -> Change:
        """A step with a bound on the hessian, which is exact for squared error."""
        D = diagonal_of(problem, size)
        negative = problem.gradients.negative_gradient
        residual = negative / problem.curvature_bound - D * problem.so_far.alpha
        solver = self._solver(data, problem, D)
        system, norm = data.systems[problem.place], largest_norm(residual)
        if not np.array_equal(D[:, 0], system.D):
            system = system.restarted(D=D[:, 0], tolerance=self.tolerance * norm)
        if iterations is None:
            iterations = self._iterations(data)
        data.note_residual(residual)
        change, system = solver.advanced(system, residual, problem.so_far, iterations)
        data.note_system(problem.place, replace(system, is_solved=norm <= system.tolerance))
        return change

    def _iterations(self, data: FullState) -> int:
        """Steps of conjugate gradients: more in late stages, since the search is a long one."""
        doublings = min(max(0, data.record.n_stages + 1 - _USUAL_STAGES), _MOST_DOUBLINGS)
        most = max(1.0, _MOST_VALUES / (self.iterations * float(data.workspace.n_rows) ** 2))
        return int(self.iterations * min(2**doublings, most))

    def _newton_step(self, data: FullState, problem: StageProblem, size: float) -> Change:
        """A step with the hessian at the ensemble so far."""
        solver = self._solver(data, problem, diagonal_of(problem, size))
        data.expect_descent(patience=1)

        def newton(now: StageProblem, change: Change) -> Change:
            alpha = now.so_far.alpha + change.weights
            dual_residual = now.weighted_gradient / now.regularization - alpha
            return solver.newton(diagonal_of(now, size), dual_residual, self.iterations)

        if problem.corners is None:
            return newton(problem, Change.none(problem, problem.n_rows))
        return minimizer(problem, np.arange(problem.n_rows), newton)

    def _solver(
        self, data: FullState, problem: StageProblem, D: Floats
    ) -> DirectSolver | IterativeSolver:
        """The solver of all stages, set up for the smallest entry of the first diagonal."""
        place = problem.place
        if place not in data.equations:
            system, workspace = data.systems[place], data.workspace
            if problem.corners is None:  # the Gram matrices of all kernels are kept
                n_kernels = max(1, len(self.setting.kernels))
                workspace = replace(workspace, memory=workspace.memory / n_kernels)
            smallest = float(D.min()) if system.smallest is None else system.smallest
            data.note_system(place, replace(system, smallest=smallest))
            if self._is_direct(workspace, system.is_ill_conditioned):
                data.equations[place] = DirectSolver.of(workspace, problem.kernel)
            else:
                gram, landmarks = self._gram(workspace, problem)
                data.equations[place] = IterativeSolver.of(gram, landmarks, smallest)
        return data.equations[place]

    def _is_direct(self, workspace: Workspace, is_ill_conditioned: bool) -> bool:
        """Whether a Cholesky factor of all rows fits the budget; refused if memory is not free."""
        n = workspace.n_rows
        up_to = _ILL_CONDITIONED_DIRECT_UP_TO if is_ill_conditioned else DIRECT_UP_TO
        if n > up_to or 32.0 * n * n > workspace.memory:
            return False
        if array_api.is_on_host(workspace.X):
            require_free(24.0 * n * n, f"a Cholesky factor of {n} rows")
        return True

    def _gram(self, workspace: Workspace, problem: StageProblem) -> tuple[SymmetricGram, Ints]:
        """The Gram matrix, and the rows of its preconditioner."""
        n, weight = workspace.n_rows, problem.weight
        # As many as let the preconditioner, O(n m²), cost about as much as a stage.
        usual = np.clip(9 * np.sqrt(n), 500, 4000)
        m = int(min(n, usual if self.n_landmarks == "auto" else int(self.n_landmarks)))
        n_here = float(n) / (1 if workspace.exchange is None else workspace.exchange.n_workers)
        for_landmarks = n_here * m * workspace.X.itemsize + 24.0 * m * m
        require_memory(for_landmarks + 2.0**27, workspace.memory, f"preconditioning with {m} rows")
        require_free(for_landmarks, f"preconditioning with {m} rows")
        # Whether tiles are kept affects the time only.
        kept = min(workspace.memory, free_memory()) - for_landmarks
        gram = SymmetricGram(problem.kernel, workspace.X, kept, workspace.team, workspace.exchange)
        rng = np.random.default_rng(workspace.seed)
        # Heavy rows contribute most to the system, so they are drawn with a higher probability.
        p = None if weight is None or np.ptp(weight) == 0 else weight / weight.sum()
        return gram, np.sort(rng.choice(n, m, replace=False, p=p))


class FullState(MachineState):
    """The record of a fit, and the solvers of the systems of all rows."""

    iterates, patience = True, 1

    def __init__(self, workspace: Workspace, choice: Choice | None = None) -> None:
        super().__init__(workspace, choice)
        self.equations: dict[int, DirectSolver | IterativeSolver] = {}  # by place of the kernel
        self._basis: NDArray | None = None  # that all stages share

    @property
    def systems(self) -> tuple[LinearSystem, ...]:
        """The systems, by place of the kernel."""
        return self.record.own or ()

    def note_system(self, place: int, system: LinearSystem) -> None:
        """Replace a system in the record, or add one."""
        self.note(own=(*self.systems[:place], system, *self.systems[place + 1 :]))

    @property
    def noise(self) -> Floats | None:
        """Diagonal (n,) of the linear systems of bounded steps."""
        known = [one.D for one in self.systems if len(one.D)]
        return np.max(known, axis=0) if known else None

    @property
    def converged(self) -> bool:
        """Whether the linear system is solved, or the penalized loss no longer decreases."""
        if self.record.descent is not None:
            return super().converged
        return any(one.is_solved for one in self.systems)

    def settled(self, problem: StageProblem, D: Floats) -> StageProblem:
        """Turn to double precision if single is too coarse for λ, for a diagonal ``D`` (n,).

        If double is, too, λ is raised for all stages.
        """
        workspace = self.workspace
        share = share_of_rounding(problem.kernel, workspace.X, D, workspace.seed)
        is_ill_conditioned = share > LARGEST_SHARE
        self.note_system(problem.place, LinearSystem(is_ill_conditioned))
        if is_ill_conditioned and workspace.can_refine:
            self.workspace = workspace.in_float64()
            self.restart_solvers()
        if self.workspace.precision == "float64":
            share *= float(np.finfo(np.float64).eps / np.finfo(np.float32).eps)
        if share <= LARGEST_SHARE:
            return problem
        raised = problem.regularization * (share / LARGEST_SHARE)
        assert self.choice is not None
        self.penalize(max(raised, self.choice.regularization))  # that of another kernel
        return replace(problem, regularization=raised)

    def restart_solvers(self) -> None:
        """Forget the solvers of another precision."""
        self.equations = {}
        for place, system in enumerate(self.systems):
            self.note_system(place, system.restarted(D=np.empty(0), smallest=None))

    def restart_search(self, place: int) -> bool:
        """Begin a search anew, because its residual changes; whether there was one."""
        system = self.systems[place]
        self.note_system(place, system.restarted())
        return system.progress is not None

    def descending(self, problem: StageProblem, change: Change) -> tuple[Descending, Change | None]:
        """The step of a change, and what was cut off because it increases the penalized error."""
        rows = np.arange(problem.n_rows)
        whole = Descending.along(problem, self.workspace, rows, change, self.basis)
        step = unspoilt(whole, problem, problem.gained)
        if step is whole:
            return step, None
        weights = change.weights - step.term.model.weights
        return step, Change(weights, change.outputs - step.outputs)

    def fall_behind(self, place: int, rest: Change) -> None:
        """Leave the search ahead of the function, whose penalized error it does not lower yet."""
        system = self.systems[place]
        if system.progress is not None:
            self.note_system(place, replace(system, left=np.inf, ahead=rest))

    def restore(self, record: MachineRecord, terms: Sequence[Term]) -> list[Term]:
        """Continue from a snapshot; the next stage computes the matrices again."""
        restored = super().restore(record, terms)
        self._basis = restored[-1].model.basis if restored else None
        if not record.own:
            raise ValueError("the solver of a kernel machine is missing")
        return restored

    @property
    def basis(self) -> NDArray:
        """The basis vectors, an array that all stages share."""
        if self._basis is None or self._basis.dtype != self.workspace.precision:
            self._basis = self.workspace.basis(slice(None))
        return self._basis

    def withdraw(self) -> None:
        """Discard the step and restart conjugate gradients, because the residual changes."""
        super().withdraw()
        for place in range(len(self.systems)):
            self.restart_search(place)

    def stage_added(self, stage: Stage) -> None:
        """Add the step; if all of it was added, the residual may be within the tolerance."""
        best = None if self.best is None else self.best.place
        super().stage_added(stage)
        is_whole = all((term.coefficient == 1).all() for term in stage.terms)
        for place, system in enumerate(self.systems):
            if place != best:
                self.restart_search(place)
            elif is_whole and self.record.is_least_squares:
                is_solved = system.is_solved or system.left <= system.tolerance
                self.note_system(place, replace(system, is_solved=is_solved))
            elif system.ahead is not None:
                self.restart_search(place)

    def close(self) -> None:
        """End the threads and release the Gram matrix."""
        super().close()
        self.equations = {}
