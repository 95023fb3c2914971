"""Kernel ridge regression on all rows, a few steps of conjugate gradients a stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram, require_memory
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.newton import (
    DirectNewton,
    IterativeNewton,
    is_newton,
    mean_diagonal,
    newton_system,
)
from hilboost.learners.kernel_machine.rounding import (
    LARGEST_SHARE,
    share_of_rounding,
    unspoilt,
)
from hilboost.learners.kernel_machine.solvers import (
    ConjugateGradients,
    Nystroem,
    nystroem_factor,
)
from hilboost.learners.kernel_machine.tuning import choose
from hilboost.learners.kernel_machine.workspace import (
    DIRECT_UP_TO,
    Component,
    KernelMachineConfig,
    Workspace,
    curvature_bound,
    free_memory,
    require_free,
)

_ILL_CONDITIONED_DIRECT_UP_TO = 12_000  # rows; beyond, conjugate gradients take their time


@dataclass(frozen=True)
class FullLearner(Learner):
    """All training rows are basis vectors; every stage goes towards full kernel ridge regression.

    A stage solves ``(K + D) δ = negative / h - D α`` for ``D = λ / (h w)``, where ``h`` bounds the
    hessian and α are the weights so far: the minimizer of a quadratic bound on the penalized loss
    (for squared error the loss itself; for log loss that of Böhning 1992).  Up to 5,000 rows one
    Cholesky factor serves all stages.  Beyond, a stage is ``iterations`` steps of conjugate
    gradients, preconditioned by a sparse kernel machine of ``n_landmarks`` basis vectors: a
    direction is that small machine fitted to the residual, made conjugate to the last one.

    Parameters
    ----------
    setting : KernelMachineConfig
    iterations : int
    n_landmarks : int or "auto"
    tolerance : float
        The fit is over when the residual has fallen to this part of the first one.

    Notes
    -----
    The Gram matrix is kept where it fits into the memory budget, at 2 n² bytes; otherwise it is
    evaluated in every step.

    Kernel values are float32 only where λ is well above their rounding error.  Where it is not, up
    to 12,000 rows are solved by a Cholesky factor, too; beyond, conjugate gradients go on in
    float64.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    iterations: int = 10
    n_landmarks: int | str = "auto"
    tolerance: float = 1e-3

    name: ClassVar[str] = "full"
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
        """Note the stage; one that was added whole may leave nothing to do."""
        data.stage_added(stage, fitted)
        if data.descent is not None:
            return
        added_whole = all((part.coefficient == 1).all() for part in stage.terms)
        if data.solver.is_linear and added_whole and data.solver.left <= data.solver.tolerance:
            data.converged = True

    def converged(self, data: Workspace) -> bool:
        """Whether the last stage left nothing to add."""
        return data.converged

    def close(self, data: Workspace) -> None:
        """End the threads, forget the Gram matrix."""
        data.team.__exit__()
        data.solver = None

    def fit(
        self, data: Workspace, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """One expansion in all rows."""
        gradients, weight = data.seen(gradients, sample)
        n, r = gradients.negative_gradient.shape
        if weight is not None and not (weight > 0).all():
            raise IncompatibleParts(
                "full stages do not support row sampling; set subsample=1 and bootstrap=False, or "
                "stages='sparse'."
            )
        kernel, regularization = choose(self.setting, data, gradients, weight, iterates=True)
        if is_newton(gradients):
            return data.shown([self._newton(data, kernel, gradients, weight, regularization)])
        bound = curvature_bound(gradients)
        D = np.broadcast_to(
            regularization / bound / (1.0 if weight is None else weight), (n,)
        ).astype(np.float64)
        if data.solver is None:
            regularization, D = settle_precision(data, kernel, regularization, D)
        data.noise = D
        so_far = data.component(kernel, r)
        residual = gradients.negative_gradient / bound - D[:, None] * so_far.alpha
        with dense.blas_threads(data.team.n_threads):
            if data.solver is None or not data.solver.fits(D):
                data.solver = self._solver(data, kernel, D, residual, weight)
            step, outputs = data.solver.step(residual, self.iterations, so_far)
        data.solver.is_linear = gradients.hessian is None  # else the next stage has another bound
        data.converged = norm(residual) <= data.solver.tolerance
        fitted = data.fitted_on(kernel, data.solver.basis, np.arange(n), step, outputs)
        descending = Descending.of(
            fitted, gradients, weight, regularization, step, so_far.function, outputs
        )
        allowed = data.gained(kernel, gradients, weight, regularization)
        return data.shown([unspoilt(descending, gradients, weight, allowed)])

    def _newton(
        self,
        data: Workspace,
        kernel: Kernel,
        gradients: Gradients,
        weight: Floats | None,
        lam: float,
    ) -> Descending:
        """A Newton step, with the curvature at this stage's ``raw``."""
        n, r = gradients.negative_gradient.shape
        component = data.component(kernel, r)
        with dense.blas_threads(data.team.n_threads):
            size = mean_diagonal(dense.to_numpy(kernel.diag(data.X)))
            D, b = newton_system(gradients, weight, component.alpha, lam, size)
            if data.descent is None:
                data.descent = Descent(patience=1)
            if data.solver is None:
                raised, _ = settle_precision(data, kernel, lam, D.min(axis=1))
                if raised > lam:
                    lam = raised
                    D, b = newton_system(gradients, weight, component.alpha, lam, size)
                data.solver = self._newton_solver(data, kernel, D, weight)
            step, outputs = data.solver.step(D, b, self.iterations)
        fitted = data.fitted_on(kernel, data.solver.basis, np.arange(n), step, outputs)
        return Descending.of(fitted, gradients, weight, lam, step, component.function, outputs)

    def _newton_solver(
        self, data: Workspace, kernel: Kernel, D: Floats, weight: Floats | None
    ) -> DirectNewton | IterativeNewton:
        if self._is_direct(data):
            return DirectNewton.of(data, kernel)
        gram, landmarks = self._landmarks(data, kernel, weight)
        return IterativeNewton(gram, landmarks, float(D.min()))

    def _is_direct(self, data: Workspace) -> bool:
        """Whether a Cholesky factor of all rows is within the budget; this machine must hold it."""
        n = data.X.shape[0]
        up_to = _ILL_CONDITIONED_DIRECT_UP_TO if data.is_ill_conditioned else DIRECT_UP_TO
        if n > up_to or 32.0 * n * n > data.memory:
            return False
        require_free(24.0 * n * n, f"a Cholesky factor of {n} rows")
        return True

    def _landmarks(
        self, data: Workspace, kernel: Kernel, weight: Floats | None
    ) -> tuple[SymmetricGram, NDArray[np.int64]]:
        """The Gram matrix, and the rows of its preconditioner."""
        n = data.X.shape[0]
        m = default_landmarks(n) if self.n_landmarks == "auto" else min(int(self.n_landmarks), n)
        itemsize = data.X.itemsize
        for_landmarks = float(n) * m * itemsize + 24.0 * m * m
        require_memory(for_landmarks + 2.0**27, data.memory, f"preconditioning with {m} rows")
        require_free(for_landmarks, f"preconditioning with {m} rows")
        # Whether tiles are kept changes the time only.
        kept = min(data.memory, free_memory()) - for_landmarks
        gram = SymmetricGram(kernel, data.X, kept, data.team)
        rng = np.random.default_rng(data.seed)
        # Heavy rows, whose part of the system is the largest, go first.
        p = None if weight is None or np.ptp(weight) == 0 else weight / weight.sum()
        return gram, np.sort(rng.choice(n, m, replace=False, p=p))

    def _solver(
        self,
        data: Workspace,
        kernel: Kernel,
        D: Floats,
        residual: Floats,
        weight: Floats | None,
    ) -> DirectSolver | IterativeSolver:
        tolerance = self.tolerance * norm(residual)
        if self._is_direct(data):
            return DirectSolver.of(data, kernel, D, tolerance)
        gram, landmarks = self._landmarks(data, kernel, weight)
        Q, factor = nystroem_factor(gram, landmarks, float(D.min()))
        return IterativeSolver(gram, D, Nystroem(Q, D), tolerance, landmarks, factor)


def settle_precision(
    data: Workspace, kernel: Kernel, regularization: float, D: Floats
) -> tuple[float, Floats]:
    """Double precision where single is too coarse for λ, and a λ that is above the rounding error.

    Returns
    -------
    regularization : float
    D : (n,) float64
        The diagonal of the system.
    """
    share = share_of_rounding(kernel, data.X, D, data.seed)
    data.is_ill_conditioned = share > LARGEST_SHARE
    if data.is_ill_conditioned:
        data.use_float64()
    if data.precision == "float64":
        share *= float(np.finfo(np.float64).eps / np.finfo(np.float32).eps)
    if share <= LARGEST_SHARE:
        return regularization, D
    factor = share / LARGEST_SHARE
    data.regularization = regularization * factor
    return data.regularization, D * factor


def norm(residual: Floats) -> float:
    """Norm of the largest column."""
    return float(np.sqrt((residual**2).sum(axis=0)).max())


def default_landmarks(n: int) -> int:
    """Rows of the preconditioner: its cost n m² stays near that of the conjugate steps."""
    return int(min(n, np.clip(13 * np.sqrt(n), 500, 4000)))


@dataclass
class DirectSolver:
    """``(K + D)⁻¹`` from a Cholesky factor."""

    K: Floats
    factor: Floats
    D: Floats
    tolerance: float
    basis: np.ndarray
    left: float = 0.0
    is_linear: bool = False

    @classmethod
    def of(cls, data: Workspace, kernel: Kernel, D: Floats, tolerance: float) -> DirectSolver:
        """Evaluate and factor."""
        X = dense.to_numpy(data.X)
        K = Gram(kernel, X, X, np.inf, data.team).whole()
        factor = dense.cholesky(dense.add_to_diagonal(K.copy(), D))
        return cls(K, factor, D, tolerance, X.astype(data.precision))

    def fits(self, D: Floats) -> bool:
        """Whether this is the factor for ``D``."""
        return np.array_equal(D, self.D)

    def step(self, residual: Floats, iterations: int, so_far: Component) -> tuple[Floats, Floats]:
        """The exact step, and its values ``K step``."""
        step = dense.solve_cholesky(self.factor, residual.copy())
        return step, self.K @ step


class IterativeSolver:
    """Preconditioned conjugate gradients on ``K + D``, begun at the sparse machine."""

    def __init__(
        self,
        gram: SymmetricGram,
        D: Floats,
        nystroem: Nystroem,
        tolerance: float,
        landmarks: NDArray[np.int64],
        factor: Array,
    ) -> None:
        self.D = D
        self.gram = gram
        self.tolerance = tolerance
        self.left = np.inf
        self.is_linear = False
        self.basis = dense.to_numpy(gram.A).astype(gram.precision)
        self._diagonal = dense.like(D, gram.A, "float64")[:, None]
        self._nystroem = nystroem
        self._landmarks = landmarks
        self._factor = factor
        self._search = ConjugateGradients(self._system, nystroem)
        self._is_new = True

    def fits(self, D: Floats) -> bool:
        """Whether this solves with ``D``."""
        return np.array_equal(D, self.D)

    def _system(self, V: Array) -> Array:
        return self.gram.times(V) + self._diagonal * V

    def _sparse(self, b: Array) -> Array:
        """Kernel ridge regression with the landmarks as basis vectors."""
        weights = dense.solve_lower(self._factor, self._nystroem.coefficients(b), transposed=True)
        start = b * 0.0
        start[self._landmarks] = weights
        return start

    def step(self, residual: Floats, iterations: int, so_far: Component) -> tuple[Floats, Floats]:
        """A few conjugate steps, and their values ``K step``.

        Where the residual seems small enough, it is computed anew from all weights; if it is not
        small, the values returned lead to those of ``K (α + step)``, and the fit goes on.
        """
        b = dense.like(residual, self.gram.A, "float64")
        start, taken_first = b * 0.0, b * 0.0
        if self._is_new:
            start = self._sparse(b)
            taken_first = self._system(start)
            left = norm(dense.to_numpy(b - taken_first))
            if not left <= norm(residual):  # the landmarks are too nearly dependent
                start, taken_first = b * 0.0, b * 0.0
            self._is_new = False
        step, taken, self.left = self._search.run(b - taken_first, iterations, self.tolerance)
        step, taken = start + step, taken_first + taken
        outputs = taken - self._diagonal * step
        if self.left <= self.tolerance:
            before, function = (dense.like(v, b) for v in (so_far.alpha, so_far.function))
            true = self.gram.times(before + step) - function
            error = norm(dense.to_numpy(true - outputs))
            if not error <= self.tolerance:
                outputs, self.left = true, error
        return dense.to_numpy(step), dense.to_numpy(outputs)
