"""One sparse kernel machine as boosting: each stage is a step on nested sets of basis vectors.

The basis is chosen once.  Its first ``t`` vectors form a machine for every ``t`` of an increasing
sequence.  For squared error, a stage leads to the next machine in closed form.  For other losses,
it is one step towards the optimum of the present machine, and ``t`` increases when further steps
are not worthwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.core.base_model import Stage
from hilboost.core.capabilities import Capabilities
from hilboost.core.errors import DataWarning, warn_caller
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.kernels.gram import require_memory
from hilboost.learners.kernel_machine.basis import COLUMNS_HELD, KEPT_BYTES, refuse_many_rows
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.kernel_learner import KernelLearner
from hilboost.learners.kernel_machine.problem import StageProblem
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.kernel_machine.stage_system import BYTES_BESIDE
from hilboost.learners.kernel_machine.state import MachineState
from hilboost.learners.kernel_machine.steps import ClosedForm, Newton, QuasiNewton, Steps


@dataclass(frozen=True)
class NestedLearner(KernelLearner):
    """The machine with as many of ``sparse.n_basis`` basis vectors as the memory budget allows.

    It minimizes ``Σ_i w_i loss_i(F) + ½ λ |f|²`` for ``F = start + f`` (SY2006, eq. 6) over
    functions ``f`` in the span of the basis.
    """

    sparse: SparseLearner  # chooses the basis, and sets up the linear systems
    # decrease of the mean loss by a step below which a nested machine is finished
    tol: float = 1e-5
    max_iter: int = 200  # maximum number of steps on one machine

    name: ClassVar[str] = "sparse"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the sparse learner, without samples of rows and snapshots."""
        return replace(
            self.sparse.capabilities, takes_samples=False, has_state=False, in_checkpoints=False
        )

    @property
    def setting(self) -> KernelMachineConfig:  # type: ignore[override]
        """Same as for the sparse learner."""
        return self.sparse.setting

    def with_setting(self, **changes: Any) -> Self:
        """Same as for the sparse learner."""
        return replace(self, sparse=self.sparse.with_setting(**changes))

    def state(self, workspace: Workspace) -> NestedState:
        """The state before the first stage."""
        return NestedState(workspace)

    def fit(
        self, data: NestedState, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit one expansion, in the basis vectors of the present machine."""
        if data.steps is None:
            data.n_effective = self._n_basis(data.workspace)
        return super().fit(data, gradients, sample, rng)

    def step(
        self, data: NestedState, problem: StageProblem, rng: np.random.Generator
    ) -> Descending:
        """The next step on the present machine."""
        if data.steps is None:
            data.steps = self._first_steps(data, problem, rng)
        return data.steps.step(data, replace(problem, regularization=data.steps.regularization))

    def _first_steps(
        self, data: NestedState, problem: StageProblem, rng: np.random.Generator
    ) -> Steps:
        """Choose the basis, and the steps that suit the curvature."""
        subset = self.sparse.subset(problem.weight, problem.n_rows, rng)
        limited = replace(self.sparse, n_basis=int(data.n_effective))
        rows = limited.choose_basis(data.workspace, problem, subset, rng)
        kind: type[Steps] = Newton if problem.n_outputs == 1 else QuasiNewton
        if problem.gradients.hessian is None:
            kind = ClosedForm
        return kind(data, problem, rows, self.tol, self.max_iter)

    def _n_basis(self, workspace: Workspace) -> int:
        """Number of basis vectors that fit into the memory budget."""
        sparse, weight = self.sparse, workspace.weight
        m = workspace.n_rows if weight is None else int(np.count_nonzero(weight > 0))
        m = m if sparse.subset_size is None else min(m, sparse.subset_size)
        if sparse.selection == "forward" and sparse.n_candidates is None:
            refuse_many_rows(m)
        return fitting(sparse, m, workspace.memory)


def fitting(sparse: SparseLearner, m: int, memory: float) -> int:
    """Number of basis vectors, chosen among ``m`` rows, that fit into ``memory`` bytes."""
    D = np.arange(1, min(sparse.n_basis, m) + 1, dtype=np.float64)
    system = 24 * D**2
    search = 8 * m * D * COLUMNS_HELD.get(sparse.selection, 0)
    if sparse.selection == "forward":
        search += min(8.0 * m * m, float(KEPT_BYTES))
    needed = np.maximum(system, search) + BYTES_BESIDE
    n_fitting = int(np.count_nonzero(needed <= memory))
    if n_fitting == 0:
        require_memory(float(needed[0]), memory, f"one basis vector, chosen among {m} rows,")
    if n_fitting < len(D):
        warn_caller(
            f"memory_budget is {memory / 2**20:.0f} MiB, which suffices for {n_fitting} instead of "
            f"{len(D)} basis vectors chosen among {m} rows; the fit stops at {n_fitting}. Increase "
            "memory_budget, or decrease subset_size or n_basis.",
            DataWarning,
        )
    return n_fitting


class NestedState(MachineState):
    """The function so far, and the steps through the nested machines."""

    steps: Steps | None = None  # ``None`` before the first stage

    @property
    def converged(self) -> bool:
        """Whether the last machine is finished."""
        return self.steps is not None and self.steps.is_done

    def stage_added(self, stage: Stage) -> None:
        """Add the step, and go on to the next machine if this one is finished."""
        super().stage_added(stage)
        assert self.steps is not None
        self.steps.stage_added(stage)

    def close(self) -> None:
        """End the threads and release the Gram matrix."""
        super().close()
        self.steps = None
