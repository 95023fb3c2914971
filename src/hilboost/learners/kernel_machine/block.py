"""Block dual boosting: full kernel ridge regression, one block of rows a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate, require_memory
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.newton import is_newton
from hilboost.learners.kernel_machine.rounding import unspoilt
from hilboost.learners.kernel_machine.sparse import SparseLearner, row_curvature
from hilboost.learners.kernel_machine.tuning import choose
from hilboost.learners.kernel_machine.workspace import (
    KernelMachineConfig,
    Workspace,
)

_SMALLEST_CURVATURE = 1e-6
_PATIENCE = 5


@dataclass(frozen=True)
class BlockLearner(Learner):
    """A stage solves full kernel ridge regression on the residual of one block of rows.

    With weights α on the training rows, a block B of b rows takes the step
    ``(K_BB + λ/w_B) δ = negative_B / w_B - λ/w_B α_B``, where ``w`` is sample weight times hessian.
    For squared error this is block coordinate descent on the dual of kernel ridge regression and
    converges to it.  The dual objective falls in every stage, not always the penalized loss itself.

    Losses whose curvature has no bound (:class:`~hilboost.core.loss.Gradients`) would need
    short steps then.  For these the block's weights are optimal on all rows, as in a sparse stage.

    Parameters
    ----------
    setting : KernelMachineConfig
    block_size : int
    selection : {"residual", "random"}
        ``"residual"`` draws rows half uniformly and half in proportion to their squared residual.

    Notes
    -----
    Cost of a stage: O(n b) kernel values and O(b³); O(n b²) where weights are optimal on all rows.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    block_size: int = 2000
    selection: str = "residual"

    name: ClassVar[str] = "block"
    base_model: ClassVar[type[KernelExpansion]] = KernelExpansion
    penalizes: ClassVar[bool] = True
    works_on_folds: ClassVar[bool] = False

    @property
    def takes_categories(self) -> bool:
        """Where it was told of columns that are compared by equality."""
        return bool(self.setting.categorical)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows."""
        return self.setting.prepare(X, weight, seed, n_threads)

    def stage_added(self, data: Workspace, stage: Stage, fitted: tuple[FittedTerm, ...]) -> None:
        """Note the stage."""
        data.stage_added(stage, fitted)

    def converged(self, data: Workspace) -> bool:
        """Whether the last stage left nothing to add."""
        return data.converged

    def close(self, data: Workspace) -> None:
        """End the threads."""
        data.team.__exit__()

    def fit(
        self, data: Workspace, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """One expansion in the block's rows."""
        gradients, weight = data.seen(gradients, sample)
        n, r = gradients.negative_gradient.shape
        kernel, lam = choose(self.setting, data, gradients, weight)
        alpha = data.component(kernel, r).alpha
        s = np.ones((n, 1)) if weight is None else weight[:, None]
        dual_residual = s * gradients.negative_gradient - lam * alpha
        rows = self._rows(dual_residual, weight, rng)
        b = len(rows)
        require_memory(32.0 * b * b, data.memory, f"a block of {b} rows")
        if is_newton(gradients):
            return data.shown([self._newton(data, kernel, rows, gradients, weight, lam)])
        with dense.blas_threads(data.team.n_threads):
            points = dense.to_numpy(data.X[rows])
            K = evaluate(kernel, points, points, data.team)
            curvature = _curvature(gradients, s, rows)
            delta = _solve_block(K, lam, curvature, dual_residual[rows])
            data.needs_float64(kernel, rows, delta)
            delta = dense.like(delta, data.X, "float64")
            outputs = dense.to_numpy(data.gram(kernel, None, rows).times(delta))
        delta = dense.to_numpy(delta)
        fitted = data.fitted(kernel, rows, delta, outputs)
        before = data.component(kernel, r).function[rows]
        step = Descending.of(fitted, gradients, weight, lam, delta, before, outputs[rows])
        allowed = data.gained(kernel, gradients, weight, lam)
        return data.shown([unspoilt(step, gradients, weight, allowed)])

    def _newton(
        self,
        data: Workspace,
        kernel: Kernel,
        rows: NDArray[np.int64],
        gradients: Gradients,
        weight: Floats | None,
        lam: float,
    ) -> Descending:
        """The block's weights that are optimal on all rows."""
        n, r = gradients.negative_gradient.shape
        if data.descent is None:
            data.descent = Descent(1 if len(rows) == n else _PATIENCE)
        with dense.blas_threads(data.team.n_threads):
            W = row_curvature(gradients, weight, r)
            machine = SparseLearner(self.setting)
            a, outputs = machine._solved(data, kernel, rows, gradients, weight, W, lam)
        fitted = data.fitted(kernel, rows, a, outputs)
        before = data.component(kernel, r).function[rows]
        return Descending.of(fitted, gradients, weight, lam, a, before, outputs[rows])

    def _rows(
        self, residual: Floats, weight: Floats | None, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        inside = np.arange(len(residual)) if weight is None else np.flatnonzero(weight)
        b = min(self.block_size, len(inside))
        largest = np.abs(residual[inside]).max()
        if self.selection == "residual" and largest > 0:
            size = ((residual[inside] / largest) ** 2).sum(axis=1)
            # A block just solved has no residual: without the other half, two blocks would take
            # turns and hardly move each other.
            probability = 0.5 * size / size.sum() + 0.5 / len(inside)
            return np.sort(rng.choice(inside, b, replace=False, p=probability))
        return np.sort(rng.choice(inside, b, replace=False))


def _curvature(gradients: Gradients, s: Floats, rows: np.ndarray) -> Floats:
    """Sample weight times hessian in the block, (b, 1 or r)."""
    if gradients.hessian is None:
        return s[rows]
    hessian = gradients.hessian[rows]
    if gradients.bound is not None and hessian.shape[1] > 1:
        return s[rows] * gradients.bound  # one factor for all outputs
    return s[rows] * np.maximum(hessian, _SMALLEST_CURVATURE)


def _solve_block(K: Floats, lam: float, curvature: Floats, residual: Floats) -> Floats:
    """``(K + λ/w) δ = residual / w``, by one factor where all outputs share the weights."""
    delta = np.empty_like(residual)
    shared = curvature.shape[1] == 1
    for column in range(1 if shared else residual.shape[1]):
        columns = slice(None) if shared else slice(column, column + 1)
        w = curvature[:, column]
        factor = dense.cholesky(dense.add_to_diagonal(K.copy(), lam / w))
        delta[:, columns] = dense.solve_cholesky(factor, residual[:, columns] / w[:, None])
    return delta
