"""Stages with a few basis vectors each, fitted to all rows: kernelboosting (SY2006)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hilboost.backends import array_api as dense
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.learner import FittedTerm, Learner, RowSample
from hilboost.core.loss import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import Gram, evaluate, require_memory
from hilboost.learners.kernel_machine.basis import COLUMNS_HELD, refuse_many_rows, select
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.joint import refit
from hilboost.learners.kernel_machine.newton import is_newton
from hilboost.learners.kernel_machine.reweighting import Reweighting
from hilboost.learners.kernel_machine.rounding import unspoilt
from hilboost.learners.kernel_machine.tuning import choose
from hilboost.learners.kernel_machine.workspace import (
    KernelMachineConfig,
    Workspace,
)

_SMALLEST_CURVATURE = 1e-6
_BYTES_BESIDE = 2.0**27
_PATIENCE = 5


@dataclass(frozen=True)
class SparseLearner(Learner):
    """A stage is a sparse kernel machine, its weights optimal on all rows.

    On a random subset ``D_j`` a selection chooses the basis vectors for the current residual; then
    the weights minimize the penalized loss of the whole ensemble, SY2006 eq. (21).  That is a
    rank-one generalized Rayleigh quotient: with ``H = K'WK + λ K_DD`` and
    ``g = K' negative - λ f(basis)`` (``f`` the ensemble so far) its solution is ``a = H⁻¹ g``, and
    the objective falls by ``½ g'H⁻¹g``.

    Parameters
    ----------
    setting : KernelMachineConfig
    n_basis : int
        Basis vectors a stage.
    subset_size : int or None
        Rows that they are chosen from; ``None`` is all.
    selection : str
        A name of :data:`~hilboost.learners.kernel_machine.basis.SELECTIONS`.
    n_candidates : int or None
        κ, for ``selection="forward"``: rows scored a step; ``None`` is all.
    solver : {"closed_form", "conjugate_gradient"}
        The latter follows SY2006: from the weights fitted on ``D_j``, a number of steps along the
        gradient (22)–(26).
    cg_iterations : int
    penalty : {"ensemble", "stage"}
        Whether the norm of the whole function is penalized (SY2006, eq. 12, µ = λ), or that of the
        stage alone.
    reweight : bool
        Weight all stages anew after each one, by the recursion (27).
    refit_every : int or None
        After so many stages, one that corrects the weights of all their basis vectors together, by
        at most ``cg_iterations`` steps of preconditioned conjugate gradients.
    length_scale_factors : sequence of float
        Multiples of the kernel's length scales that compete in every stage; the highest gain
        ``½ g'H⁻¹g`` on the subset wins.
    """

    setting: KernelMachineConfig = field(default_factory=KernelMachineConfig)
    n_basis: int = 1000
    subset_size: int | None = None
    selection: str = "residual"
    n_candidates: int | None = 59
    solver: str = "closed_form"
    cg_iterations: int = 50
    penalty: str = "ensemble"
    reweight: bool = False
    refit_every: int | None = None
    length_scale_factors: tuple[float, ...] = ()

    name: ClassVar[str] = "sparse"
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
        """One expansion; with ``reweight`` also the changes of the earlier ones."""
        if self.reweight:
            _check_reweighting(gradients, sample)
        gradients, weight = data.seen(gradients, sample)
        n, r = gradients.negative_gradient.shape
        kernel, lam = choose(self.setting, data, gradients, weight)
        W = row_curvature(gradients, weight, r)
        with dense.blas_threads(data.team.n_threads):
            if self.refit_every is not None and (data.n_stages + 1) % (self.refit_every + 1) == 0:
                shared = W if W is None or W.shape[1] == 1 else W.max(axis=1, keepdims=True)
                joint = refit(data, kernel, gradients, weight, shared, lam, self.cg_iterations)
                if joint is not None:
                    return data.shown([unspoilt(joint, gradients, weight)])
            subset = self._subset(weight, n, rng)
            kernel = self._best_kernel(data, kernel, gradients, weight, W, subset, lam)
            rows = subset[self._select(data, kernel, gradients, W, subset, lam, rng)]
            initial = None
            if self.solver == "conjugate_gradient":
                initial = _fitted_on_subset(data, kernel, rows, subset, gradients, weight, W, lam)
            a, outputs = self._solved(data, kernel, rows, gradients, weight, W, lam, initial)
        fitted = data.fitted(kernel, rows, a, outputs)
        if self.reweight:
            return data.shown(_reweighted(data, fitted, gradients, weight, lam))
        if is_newton(gradients) and data.descent is None:
            is_whole = self.subset_size is None and len(rows) == n
            data.descent = Descent(1 if is_whole else _PATIENCE)
        before = data.component(kernel, r).function[rows]
        if self.penalty == "stage":
            before = np.zeros_like(before)
        step = Descending.of(fitted, gradients, weight, lam, a, before, outputs[rows])
        return data.shown([unspoilt(step, gradients, weight)])

    def _subset(self, weight: Floats | None, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        rows = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
        if self.subset_size is None or self.subset_size >= len(rows):
            return rows
        return np.sort(rng.choice(rows, self.subset_size, replace=False))

    def _select(
        self,
        data: Workspace,
        kernel: Kernel,
        gradients: Gradients,
        W: Floats | None,
        subset: NDArray[np.int64],
        lam: float,
        rng: np.random.Generator,
    ) -> NDArray[np.intp]:
        W_subset = None if W is None else W[subset].mean(axis=1)
        residual = gradients.negative_gradient[subset]
        curvature = row_curvature(gradients, None, residual.shape[1])  # without sample weights
        if curvature is not None:
            residual = residual / curvature[subset].mean(axis=1, keepdims=True)
        if self.selection == "forward" and self.n_candidates is None:
            refuse_many_rows(len(subset))
        D = min(self.n_basis, len(subset))
        held = COLUMNS_HELD.get(self.selection, 0) * 8.0 * len(subset) * D
        held += self._kept_to_reweight(data, gradients)
        require_memory(held, data.memory, f"choosing {D} of {len(subset)} rows")
        X = dense.to_numpy(data.X[subset])
        return select(
            self.selection, kernel, X, residual, W_subset, lam, self.n_basis, rng, self.n_candidates
        )

    def _kept_to_reweight(self, data: Workspace, gradients: Gradients) -> float:
        """Bytes that re-weighting keeps of all stages, this one included."""
        if not self.reweight:
            return 0.0
        n_stages = 1 if data.solver is None else 1 + len(data.solver[1])
        kept = 16.0 * gradients.negative_gradient.size * n_stages  # the outputs, and a column of G
        what = f"reweighting {n_stages} stages on {len(gradients.negative_gradient)} rows"
        require_memory(kept + _BYTES_BESIDE, data.memory, what, "stages (n_estimators)")
        return kept

    def _best_kernel(
        self,
        data: Workspace,
        kernel: Kernel,
        gradients: Gradients,
        weight: Floats | None,
        W: Floats | None,
        subset: NDArray[np.int64],
        lam: float,
    ) -> Kernel:
        """The multiple of the length scales with the highest gain on some rows."""
        if not self.length_scale_factors:
            return kernel
        candidates = data.scaled_kernels(kernel, self.length_scale_factors)
        scored = subset[:: max(1, len(subset) // 4000)]
        basis = scored[:: max(1, len(scored) // min(self.n_basis, 1000))]
        gains = []
        for candidate in candidates:
            small = self._system(data, candidate, basis, gradients, weight, W, lam, scored)
            gains.append(small.gain())
        return candidates[int(np.argmax(gains))]

    def _solved(
        self,
        data: Workspace,
        kernel: Kernel,
        rows: NDArray[np.int64],
        gradients: Gradients,
        weight: Floats | None,
        W: Floats | None,
        lam: float,
        initial: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Weights (D, r) and outputs on all rows, in double precision if single is too coarse."""
        system = self._system(data, kernel, rows, gradients, weight, W, lam)
        a = system.solve(initial, self.cg_iterations)
        if data.needs_float64(kernel, rows, a):
            system = self._system(data, kernel, rows, gradients, weight, W, lam)
            a = system.solve(initial, self.cg_iterations)
        return a, system.outputs(a)

    def _system(
        self,
        data: Workspace,
        kernel: Kernel,
        rows: NDArray[np.int64],
        gradients: Gradients,
        weight: Floats | None,
        W: Floats | None,
        lam: float,
        on: NDArray[np.int64] | None = None,
    ) -> StageSystem:
        """``H`` and ``g`` of eq. (21), from all rows or those ``on``."""
        D, r = len(rows), gradients.negative_gradient.shape[1]
        needed = 8.0 * D * D * (3 if W is None or W.shape[1] == 1 else 2 + r)
        needed += self._kept_to_reweight(data, gradients)
        require_memory(needed + _BYTES_BESIDE, data.memory, f"a stage of {D} basis vectors")
        gram = data.gram(kernel, on, rows, data.memory - needed)
        negative = gradients.negative_gradient
        right = negative if weight is None else negative * weight[:, None]
        right = right if on is None else right[on]
        W = W if on is None or W is None else W[on]
        points = dense.cast(data.X[rows], "float64")
        K_DD = evaluate(kernel, points, points, data.team)
        grams = []
        b: Any = None
        for column in range(1 if W is None else W.shape[1]):
            w = None if W is None else dense.like(W[:, column], data.X, "float64")
            first = dense.like(right, data.X, "float64") if column == 0 else None
            total, product = gram.sums(w, first)
            grams.append(total)
            b = product if column == 0 else b
        if self.penalty == "ensemble":
            component = data.component(kernel, r)
            b = b - lam * dense.like(component.function[rows], data.X, "float64")
        return StageSystem(gram, grams, b, K_DD, lam)


def row_curvature(gradients: Gradients, weight: Floats | None, r: int) -> Floats | None:
    """Sample weight times hessian, (n, 1 or r); ``None`` is one everywhere."""
    if gradients.hessian is None:
        return None if weight is None else weight[:, None]
    if gradients.bound is not None and r > 1:
        curvature = np.full((len(gradients.hessian), 1), gradients.bound)  # one H for all outputs
    else:
        curvature = np.maximum(gradients.hessian, _SMALLEST_CURVATURE)
    return curvature if weight is None else curvature * weight[:, None]


@dataclass
class StageSystem:
    """The quadratic model of a stage: ``½ a'Ha - g'a``, ``H = K'WK + λ K_DD``.

    Attributes
    ----------
    gram : Gram, (n, D)
    grams : list of (D, D)
        ``K'WK``, one for all outputs or one an output.
    g : (D, r)
    K_DD : (D, D)
    regularization : float
    """

    gram: Gram
    grams: list[Any]
    g: Any
    K_DD: Any
    regularization: float

    def _hessians(self) -> list[Any]:
        return [total + self.regularization * self.K_DD for total in self.grams]

    def solve(self, initial: Floats | None, iterations: int) -> Floats:
        """Weights (D, r), in closed form or by conjugate gradients from ``initial``."""
        if initial is not None:
            hessians = self._hessians()
            return np.column_stack(
                [
                    climb(
                        dense.to_numpy(hessians[min(k, len(hessians) - 1)]),
                        dense.to_numpy(self.g[:, k]),
                        initial[:, k],
                        iterations,
                    )
                    for k in range(self.g.shape[1])
                ]
            )
        factors = [dense.cholesky(H) for H in self._hessians()]
        if len(factors) == 1:
            return dense.to_numpy(dense.solve_cholesky(factors[0], self.g + 0.0))
        solved = [dense.solve_cholesky(f, self.g[:, k] + 0.0) for k, f in enumerate(factors)]
        return np.column_stack([dense.to_numpy(s) for s in solved])

    def gain(self) -> float:
        """``½ g'H⁻¹g``, what the penalized loss falls by."""
        return 0.5 * float((dense.to_numpy(self.g) * self.solve(None, 0)).sum())

    def outputs(self, a: Floats) -> Floats:
        """Values on all rows, (n, r)."""
        return dense.to_numpy(self.gram.times(dense.like(a, self.gram.A, "float64")))


def climb(H: Floats, g: Floats, start: Floats, iterations: int) -> Floats:
    """Steps of nonlinear conjugate gradients on (21), then the best length ``c*`` of (20).

    (21) is ``-½ (g'a)² / (a'Ha)``; its gradient, (22), is ``c (c Ha - g)`` with
    ``c = g'a / a'Ha``.
    """
    if not start.any():
        start = g

    def objective(a: Floats) -> tuple[float, Floats]:
        Ha = H @ a
        curvature = max(float(a @ Ha), 1e-300)
        c = float(g @ a) / curvature
        return -0.5 * c * c * curvature, c * (c * Ha - g)

    size = float(np.abs(objective(start)[0])) or 1.0
    result = minimize(
        lambda a: tuple(part / size for part in objective(a)),
        start,
        jac=True,
        method="CG",
        options={"maxiter": iterations, "gtol": 0.0},
    )
    a = result.x if np.isfinite(result.x).all() else start
    curvature = float(a @ (H @ a))
    return a * (float(g @ a) / curvature) if curvature > 0 else np.zeros_like(a)


def _fitted_on_subset(
    data: Workspace,
    kernel: Kernel,
    rows: NDArray[np.int64],
    subset: NDArray[np.int64],
    gradients: Gradients,
    weight: Floats | None,
    W: Floats | None,
    lam: float,
) -> Floats:
    """Step 2(a): weights of the sparse machine on the subset alone."""
    curvature = None if W is None else W[subset].mean(axis=1)
    right = gradients.negative_gradient[subset]
    if weight is not None:
        right = right * weight[subset, None]
    gram = data.gram(kernel, subset, rows, data.memory)
    total, product = gram.sums(
        None if curvature is None else dense.like(curvature, data.X, "float64"),
        dense.like(right, data.X, "float64"),
    )
    points = dense.cast(data.X[rows], "float64")
    H = total + lam * evaluate(kernel, points, points, data.team)
    return dense.to_numpy(dense.solve_cholesky(dense.cholesky(H), product))


def _check_reweighting(gradients: Gradients, sample: RowSample) -> None:
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


def _reweighted(
    data: Workspace, new: FittedTerm, gradients: Gradients, weight: Floats | None, lam: float
) -> list[FittedTerm]:
    """The new part with its weight by (27), and the earlier ones with what theirs change by."""
    r = gradients.negative_gradient.shape[1]
    if data.solver is None:
        data.solver = ([Reweighting(lam) for _ in range(r)], [])
    recursions, earlier = data.solver
    root = np.ones(len(gradients.negative_gradient)) if weight is None else np.sqrt(weight)
    model = new.term.model
    assert isinstance(model, KernelExpansion)
    assert model.rows is not None
    assert new.outputs is not None
    own = np.empty(r)
    changes = np.empty((len(earlier), r))
    for k, recursion in enumerate(recursions):
        a = model.weights[:, k]
        q = np.array([_inner_product(model, k, old) for old in earlier])
        q_own = float(a @ new.outputs[model.rows, k])
        f, residual = root * new.outputs[:, k], root * gradients.negative_gradient[:, k]
        own[k], changes[:, k] = recursion.add(f, q, q_own, residual)
    parts = [FittedTerm(Term(model, new.term.columns, own), outputs=new.outputs)]
    for old, change in zip(earlier, changes, strict=True):
        parts.append(
            FittedTerm(Term(old.term.model, old.term.columns, change), outputs=old.outputs)
        )
    earlier.append(new)
    return parts


def _inner_product(new: KernelExpansion, column: int, old: FittedTerm) -> float:
    """Of two stages' functions; functions of different kernels are penalized apart."""
    assert isinstance(old.term.model, KernelExpansion)
    assert old.outputs is not None
    if old.term.model.kernel is not new.kernel:
        return 0.0
    return float(new.weights[:, column] @ old.outputs[new.rows, column])
