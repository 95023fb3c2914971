"""The shared base of the learners of kernel stages, and the learner of blocks of rows."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import Capabilities, SplitSettings
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.exchange import RowShare
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.row_sample import RowSample
from hilboost.kernels.description import is_described
from hilboost.kernels.gram import evaluate, require_memory
from hilboost.learners.kernel_machine.all_rows import solve_shifted
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.descending import Descending, unspoilt
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.problem import Change, StageProblem
from hilboost.learners.kernel_machine.stage_system import optimal_step
from hilboost.learners.kernel_machine.state import MachineRecord, MachineState
from hilboost.learners.kernel_machine.tuning.choose import PenaltyChoice, SharedChoice

_PATIENCE = 5


class KernelLearner(Learner):
    """Base class of learners of kernel stages; their ``data`` is a :class:`MachineState`."""

    setting: KernelMachineConfig

    @property
    def capabilities(self) -> Capabilities:
        """Category columns are supported if the configuration names them."""
        kernel = self.setting.given_kernel
        return Capabilities(
            base_model=KernelExpansion,
            penalizes=True,
            works_on_folds=False,
            takes_missing_values=kernel is None,
            takes_categories=bool(self.setting.categorical),
            has_state=True,
            in_checkpoints=kernel is None or is_described(kernel),
            prepare_among_workers=prepare_divided,
        )

    def state(self, workspace: Workspace) -> MachineState:
        """Create the state before the first stage."""
        return MachineState(workspace)

    def with_setting(self, **changes: Any) -> Self:
        """Return the learner with changed parameters of all kernel learners."""
        setting = replace(self.setting, **changes)
        # Every subclass is a dataclass with this field, or has a learner with it.
        changed: Any = replace(self, setting=setting)  # type: ignore[type-var]
        return changed

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner that compares codes in the category columns by equality."""
        return self.with_setting(categorical=tuple(column for column, _ in splits.categorical))

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> MachineState:
        """Scale the rows and start the threads."""
        return self.state(self.setting.prepare(X, weight, seed, n_threads))

    def fit(
        self, data: Any, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one expansion: that of the kernel whose stage decreases the penalized loss most.

        With several kernels, the function is a sum of one function for each, ``F = start + Σ_k
        f_k``, and the fit minimizes ``Σ_i w_i loss_i(F) + ½ λ Σ_k |f_k|²``.  In each stage, every
        kernel proposes the stage that it would make alone, given the function so far; the proposal
        with the largest ``½ g'H⁻¹g`` of SY2006, eq. (21), is added.  This is block coordinate
        descent with the Gauss-Southwell rule, and converges to the machine with the sum of the
        kernels (multiple kernel learning, which section 5 names as future work).
        """
        problems = data.problems(self.setting, gradients, sample)
        # All draw the same random numbers, so that the order of the kernels has no effect.
        rngs = [*(copy.deepcopy(rng) for _ in problems[1:]), rng]
        steps = [self.step(data, one, own) for one, own in zip(problems, rngs, strict=True)]
        return data.propose(problems, steps)

    @abstractmethod
    def step(self, data: Any, problem: StageProblem, rng: np.random.Generator) -> Descending:
        """The stage of one kernel."""

    def for_members(
        self, data: MachineState, n_members: int, choose_penalty: PenaltyChoice | None
    ) -> list[MachineState]:
        """Return states with the same rows and choice of kernel, and functions of their own.

        The first one keeps the threads.
        """
        shared, team = SharedChoice() if n_members > 1 else None, data.workspace.team
        teams = [team, *(ThreadTeam(team.n_threads) for _ in range(n_members - 1))]
        states = [self.state(replace(data.workspace, team=own)) for own in teams]
        for state in states:
            state.choose_penalty, state.shared = choose_penalty, shared
        return states

    def stage_added(self, data: MachineState, stage: Stage | None) -> None:
        """Add the stage to the function so far, or discard the proposed step.

        After a stage of another learner, iterative solvers start again.
        """
        if stage is None:
            data.withdraw()
        else:
            data.stage_added(stage)

    def snapshot(self, data: MachineState) -> MachineRecord | None:
        """Return the function so far, the kernel and λ; ``None`` before the first stage."""
        return data.snapshot()

    def restore(
        self, data: MachineState, snapshot: MachineRecord | None, terms: Sequence[Term]
    ) -> Sequence[Term]:
        """Continue from a snapshot."""
        return terms if snapshot is None else data.restore(snapshot, terms)

    def converged(self, data: MachineState) -> bool:
        """Whether further stages would change nothing."""
        return data.converged

    def close(self, data: MachineState) -> None:
        """End the threads and release Gram matrices."""
        data.close()


def prepare_divided(
    learner: Learner, X: Floats, weight: Floats | None, seed: int, n_threads: int, share: RowShare
) -> Any:
    """Prepare all rows, which each worker has, and divide their kernel values among the workers."""
    data = learner.prepare(X, weight, seed, n_threads)
    data.workspace = replace(data.workspace, exchange=share.exchange)
    return data


def tuned_briefly(learner: Learner) -> Learner:
    """Return a kernel learner that considers fewer families of kernels; others are unchanged."""
    return (
        learner.with_setting(tunes_briefly=True) if isinstance(learner, KernelLearner) else learner
    )


@dataclass(frozen=True)
class BlockLearner(KernelLearner):
    """A stage solves kernel ridge regression on the residual of one block of rows.

    With weights α on the training rows, a block B takes the step
    ``(K_BB + λ/w_B) δ = negative_B / w_B - λ/w_B α_B``, where ``w`` is sample weight times hessian.
    For squared error, this is block coordinate descent on the dual of kernel ridge regression, and
    converges to its solution.  The dual objective decreases in every stage, but not always the
    penalized loss.

    Losses whose curvature has no bound (:class:`~hilboost.core.gradients.Gradients`) would need
    short steps.  For these, and for several kernels, the weights of the block are optimal on all
    rows, as in a sparse stage.

    Cost of a stage with a block of b rows: O(n b) kernel values and O(b³); O(n b²) if weights are
    optimal on all rows.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    block_size: int = 2000

    name: ClassVar[str] = "block"

    def step(
        self, data: MachineState, problem: StageProblem, rng: np.random.Generator
    ) -> Descending:
        """Fit one expansion in the rows of a block."""
        dual_residual = problem.weighted_gradient - problem.regularization * problem.so_far.alpha
        rows = self._rows(dual_residual, problem.weight, rng)
        b = len(rows)
        require_memory(32.0 * b * b, data.workspace.memory, f"a block of {b} rows")
        # The dual problem of a block takes the function for that of one kernel.
        if problem.is_newton or self.setting.kernels:
            return optimal_step(data, problem, rows, _PATIENCE)
        if problem.gradients.hessian is None:
            seen = slice(None) if problem.weight is None else problem.weight > 0
            data.note_residual(dual_residual[seen])  # rows outside the sample have no target
        step = self._dual_step(data, problem, rows, dual_residual[rows])
        return unspoilt(step, problem, problem.gained)

    def _dual_step(
        self, data: MachineState, problem: StageProblem, rows: Ints, dual_residual: Floats
    ) -> Descending:
        """The weights of a block that solve kernel ridge regression on its rows."""
        kernel, curvature = problem.kernel, problem.curvature
        w = np.ones((len(rows), 1)) if curvature is None else curvature[rows]
        points = array_api.to_numpy(data.workspace.X[rows])
        K = evaluate(kernel, points, points, data.workspace.team)
        D = problem.regularization / w
        weights = solve_shifted(K, D, dual_residual / w, data.workspace.team)
        data.refine_precision(problem, rows, weights)
        gram = data.workspace.gram(kernel, None, rows)
        weights = array_api.like(weights, data.workspace.X, "float64")
        change = Change(array_api.to_numpy(weights), array_api.to_numpy(gram.times(weights)))
        return Descending.along(problem, data.workspace, rows, change)

    def _rows(self, residual: Floats, weight: Floats | None, rng: np.random.Generator) -> Ints:
        """The rows of a block, ascending; half uniform, half by the squares of the residual."""
        inside = np.arange(len(residual)) if weight is None else np.flatnonzero(weight)
        b = min(self.block_size, len(inside))
        largest = np.abs(residual[inside]).max()
        probability = None
        if largest > 0:
            size = ((residual[inside] / largest) ** 2).sum(axis=1)
            # The residual of a block that was just solved is zero.  Without the uniform half, two
            # blocks could alternate.
            probability = 0.5 * size / size.sum() + 0.5 / len(inside)
        return np.sort(rng.choice(inside, b, replace=False, p=probability))
