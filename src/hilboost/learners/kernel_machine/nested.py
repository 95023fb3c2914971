"""One sparse kernel machine as boosting: every stage a step on nested sets of basis vectors.

The basis is chosen once; its first ``t`` vectors, for a growing ``t``, are a machine each.  For
squared error a stage is the whole way to the next machine, in closed form.  For other losses it is
one step towards the optimum of the present one, and ``t`` grows where no step is worth it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import require_memory
from hilboost.learners.kernel_machine import SparseLearner, Workspace
from hilboost.learners.kernel_machine.basis import COLUMNS_HELD, refuse_many_rows
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.sparse import row_curvature
from hilboost.learners.kernel_machine.steps import ClosedForm, Newton, QuasiNewton, Steps
from hilboost.learners.kernel_machine.tuning import choose

_BYTES_BESIDE = 2.0**27  # as SparseLearner counts them
_KEPT_BY_SEARCH = 2.0**28  # bytes of kernel values that the greedy search may keep


@dataclass(frozen=True)
class NestedLearner(Learner):
    """The machine with as many of ``sparse.n_basis`` basis vectors as the memory budget allows.

    It minimizes ``Σ_i w_i loss_i(F) + ½ λ |f|²`` for ``F = start + f`` (SY2006, eq. 6), where
    ``f`` lies in the span of the basis.

    Parameters
    ----------
    sparse : SparseLearner
        What chooses the basis and sums up the Gram matrices.
    tol : float
        A nested machine is done where a step would lower the mean loss by less than this.
    max_iter : int
        And after this number of steps.
    regularize : callable or None
        ``(workspace, kernel, n_basis)`` to λ; ``None`` is that of the least squares problem.
    """

    sparse: SparseLearner
    tol: float = 1e-5
    max_iter: int = 200
    regularize: Callable[[Workspace, Kernel, int], float] | None = None

    name: ClassVar[str] = "sparse"
    base_model: ClassVar[type[KernelExpansion]] = KernelExpansion
    penalizes: ClassVar[bool] = True
    works_on_folds: ClassVar[bool] = False

    @property
    def takes_categories(self) -> bool:
        """As the machine does."""
        return self.sparse.takes_categories

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows."""
        return self.sparse.prepare(X, weight, seed, n_threads)

    def stage_added(self, data: Workspace, stage: Stage, fitted: tuple[FittedTerm, ...]) -> None:
        """Hear how long the step became."""
        data.stage_added(stage, fitted)
        data.solver.stage_added(stage)
        data.converged = data.solver.is_done

    def converged(self, data: Workspace) -> bool:
        """Whether the last stage left nothing to add."""
        return data.converged

    def close(self, data: Workspace) -> None:
        """End the threads, forget the Gram matrix."""
        self.sparse.close(data)
        data.solver = None

    def fit(
        self, data: Workspace, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """One expansion, in the basis vectors of the present machine."""
        gradients, weight = data.seen(gradients, sample)
        with dense.blas_threads(data.team.n_threads):
            if data.solver is None:
                data.solver = self._begin(data, gradients, weight, rng)
            return data.shown([data.solver.step(gradients, weight)])

    def _begin(
        self,
        data: Workspace,
        gradients: Gradients,
        weight: Floats | None,
        rng: np.random.Generator,
    ) -> Steps:
        """Kernel, basis, and the way to solve that suits the curvature."""
        sparse = self.sparse
        n, r = gradients.negative_gradient.shape
        W = row_curvature(gradients, weight, r)
        subset = sparse._subset(weight, n, rng)
        if sparse.selection == "forward" and sparse.n_candidates is None:
            refuse_many_rows(len(subset))
        n_basis = fitting(sparse, len(subset), data.memory)
        kernel, lam = choose(sparse.setting, data, gradients, weight, n_basis)
        if self.regularize is not None:
            lam = data.regularization = self.regularize(data, kernel, n_basis)
        limited = replace(sparse, n_basis=n_basis)
        rows = subset[limited._select(data, kernel, gradients, W, subset, lam, rng)]
        kind: type[Steps] = Newton if r == 1 else QuasiNewton
        if gradients.hessian is None:
            kind = ClosedForm
        return kind(sparse, data, kernel, rows, lam, gradients, weight, self.tol, self.max_iter)


def fitting(sparse: SparseLearner, m: int, memory: float) -> int:
    """How many basis vectors, chosen among ``m`` rows, fit into ``memory`` bytes.

    Raises
    ------
    InvalidParameter
        Not one does.
    """
    D = np.arange(1, min(sparse.n_basis, m) + 1, dtype=np.float64)
    system = 24 * D**2
    search = 8 * m * D * COLUMNS_HELD.get(sparse.selection, 0)
    if sparse.selection == "forward":
        search += min(8.0 * m * m, _KEPT_BY_SEARCH)
    needed = np.maximum(system, search) + _BYTES_BESIDE
    n_fitting = int(np.count_nonzero(needed <= memory))
    if n_fitting == 0:
        require_memory(float(needed[0]), memory, f"one basis vector, chosen among {m} rows,")
    if n_fitting < len(D):
        warnings.warn(
            f"memory_budget is {memory / 2**20:.0f} MiB, which suffices for {n_fitting} instead of "
            f"{len(D)} basis vectors chosen among {m} rows; the fit stops at {n_fitting}. Increase "
            "memory_budget, or decrease subset_size or n_basis.",
            DataWarning,
            stacklevel=2,
        )
    return n_fitting
