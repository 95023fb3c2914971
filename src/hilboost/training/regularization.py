"""Selection of λ of a kernel machine by held-out loss, for losses other than squared error.

A λ that suits a least-squares fit to the gradients does not suit these losses.  If classes are
separable, the scores under log loss grow until λ limits them, and losses for counts or outliers
have lower or higher curvature than squared error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from hilboost.backends import array_api
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.config import BoostingConfig
from hilboost.boosting.loop import advance
from hilboost.boosting.member import EnsembleMember
from hilboost.boosting.sampling import StageKey
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate, mean_diagonal
from hilboost.learners.kernel_machine.config import DistinctRows, Workspace, draw_observations
from hilboost.learners.kernel_machine.full import FullLearner, FullState
from hilboost.learners.kernel_machine.tuning.choose import Choice
from hilboost.learners.kernel_machine.tuning.scoring import FoldKernels
from hilboost.reductions.row_splits import in_turn
from hilboost.rules import PenalizedLineSearch

_ROWS = 6000
_ROWS_WORTH_ONE_SPLIT = 2000
_FOLDS = 3
_BASIS = 300
_FACTORS = 10.0 ** np.arange(1.5, -7, -0.5)  # of the mean of k(x, x)
_PATIENCE = 2
_STEPS = 100
_PRECISION = 1e-6  # of the mean loss
_ROWS_OF_WHOLE_MACHINES = 1200
_STAGES = 15
_LEAST_FALL = 1e-2  # relative decrease of the penalized loss from its warm start

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows to learn from, ascending, and rows that are held out."""


@dataclass(frozen=True)
class HeldOutPenalty:
    """Searches λ for a loss and targets; ``start`` (r,) is the best constant.

    λ decreases by factors of √10, each machine warm-started from the previous one, until the
    held-out loss has failed to decrease twice.
    """

    loss: Loss
    target: Target
    start: Floats

    def of_basis(
        self, data: Workspace, kernel: Kernel, n_basis: float, folds: FoldKernels | None = None
    ) -> tuple[float, float]:
        """Find the λ with the lowest held-out loss for machines with few basis vectors.

        Uses at most 6,000 rows, a third of them held out (up to 2,000 rows: each third in turn),
        and 300 random basis vectors.
        """
        rng = np.random.default_rng((data.seed, 3))
        rows, target = _observations(np.arange(len(self.target.y)), self.target, data, rng)
        rows, trials = rows[:_ROWS], []
        n_splits = 1 if len(rows) > _ROWS_WORTH_ONE_SPLIT else _FOLDS
        for learn, held in _thirds(rows, self.target)[:n_splits]:
            basis = rng.permutation(np.unique(learn))[: int(min(n_basis, _BASIS))]
            if len(held) and len(learn):
                here = replace(self, target=target)
                trials.append(_BasisTrial(here, self.loss, data, kernel, learn, held, basis))
        size = mean_diagonal(kernel, _inputs(data, rows))
        if target.weight is not None:
            size *= float(target.weight[rows].mean())
        errors = _held_out_errors(trials, size, data.team)
        return float(size * _FACTORS[errors.argmin()]), float(errors.min())

    def of_rows(
        self, data: Workspace, kernel: Kernel, n_basis: float, folds: FoldKernels | None = None
    ) -> tuple[float, float]:
        """Find the λ with the lowest held-out loss for machines on all rows, and this loss.

        Uses three folds of at most 1,200 rows; a parabola interpolates the minimum.  If the kernel
        was chosen by some of the rows, ``folds`` are others, or have kernels of their own: length
        scales that fit the noise of the held-out rows would make a small λ look good.
        """
        rng = np.random.default_rng((data.seed, 4))
        inside, target = np.arange(len(self.target.y)), self.target
        if target.weight is not None:
            inside = np.flatnonzero(target.weight > 0)
        scored = self.loss.adapted(target, target.starting_raw(self.start))
        inside, target = _observations(inside, target, data, rng)
        given = folds if data.repetitions is None else None
        rows, splits, kernels = _folds(inside, self.target, data, kernel, given)
        here, trials = replace(self, target=target), []
        for (learn, held), own in zip(splits, kernels, strict=True):
            if len(held) and len(learn):
                trials.append(_WholeTrial(here, scored, data, own, learn, held))
        size = mean_diagonal(kernel, _inputs(data, rows))
        size *= _mean_curvature(scored, target.rows(rows), self.start)
        errors = _held_out_errors(trials, size, data.team)
        return float(size * _lowest(_FACTORS, errors)), float(errors.min())


@dataclass(eq=False)
class _Trial(ABC):
    """A machine fitted to some rows and evaluated on others."""

    search: HeldOutPenalty
    scored: Loss  # whose values are compared
    data: Workspace
    kernel: Kernel
    learn: NDArray[np.int64]
    held: NDArray[np.int64]

    def __post_init__(self) -> None:
        target = self.search.target
        self._loss, self._start = self.search.loss, self.search.start
        self._target, self._held = target.rows(self.learn), target.rows(self.held)
        self._K_held = np.empty((0, 0))

    @abstractmethod
    def _fit(self, lam: float) -> Floats:
        """Coefficients of the machine with this λ, warm-started from the previous one."""

    def error(self, lam: float) -> float:
        """Mean held-out loss with this λ."""
        raw = self._held.starting_raw(self._start) + self._K_held @ self._fit(lam)
        values = self.scored.value(self._held, raw)
        return float(np.average(values, weights=self._held.weight))


@dataclass(eq=False)
class _BasisTrial(_Trial):
    """A machine with a few basis vectors."""

    basis: NDArray[np.int64]

    def __post_init__(self) -> None:
        super().__post_init__()
        data, kernel, target = self.data, self.kernel, self._target
        X, points = _inputs(data, self.learn), _inputs(data, self.basis)
        self._K, self._K_DD = evaluate(kernel, X, points), evaluate(kernel, points, points)
        self._K_held = evaluate(kernel, _inputs(data, self.held), points)
        gradients = self._loss.gradients(target, target.starting_raw(self._start))
        bound = gradients.structure.bound or 1.0
        self._normal = bound * (self._K.T * target.row_weights) @ self._K
        self._alpha = np.zeros((len(self.basis), len(self._start)))

    def _fit(self, lam: float) -> Floats:
        """Run L-BFGS on ``L'α``, where ``L L'`` bounds the hessian."""
        L = array_api.cholesky(self._normal + lam * self._K_DD)
        shape, weight = self._alpha.shape, self._target.row_weights
        total = weight.sum()

        def objective(flat: Floats) -> tuple[float, Floats]:
            alpha = array_api.solve_lower(L, flat.reshape(shape).copy(), transposed=True)
            raw = self._target.starting_raw(self._start) + self._K @ alpha
            smooth = self._K_DD @ alpha
            value = weight @ self._loss.value(self._target, raw)
            value += 0.5 * lam * (alpha * smooth).sum()
            pull = self._loss.gradients(self._target, raw).negative_gradient * weight[:, None]
            gradient = array_api.solve_lower(L, lam * smooth - self._K.T @ pull)
            return float(value / total), gradient.ravel() / total

        with np.errstate(over="ignore", invalid="ignore"):  # the search rejects long steps
            found = minimize(
                objective,
                (L.T @ self._alpha).ravel(),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": _STEPS, "ftol": _PRECISION, "gtol": 0.0},
            )
        self._alpha = array_api.solve_lower(L, found.x.reshape(shape), transposed=True)
        return self._alpha


class _WholeTrial(_Trial):
    """A full machine, fitted as in full stages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        data, kernel = self.data, self.kernel
        X, points = (_inputs(data, rows).astype(np.float64) for rows in (self.held, self.learn))
        distinct, weight = DistinctRows.of(points, self._target.weight), self._target.weight
        if distinct is not None:
            points, weight = points[distinct.first], distinct.sums(distinct.weight)
        self._K_held = evaluate(kernel, X, points)
        workspace = Workspace(
            inputs=data.inputs,
            X=points,
            weight=weight,
            memory=np.inf,
            seed=data.seed,
            team=ThreadTeam(1),
            distinct=distinct,
        )
        self._machine = FullState(workspace, Choice(kernel, 0.0, warps=data.inputs.warps))
        raw = np.array(self._target.starting_raw(self._start), order="F")
        self._member = EnsembleMember(self._start, raw=raw, data=self._machine)
        rules = (PenalizedLineSearch(),)
        self._config = BoostingConfig(self._loss, FullLearner(), _STAGES, data.seed, rules)

    def _fit(self, lam: float) -> Floats:
        machine = self._machine
        machine.restart(lam, _LEAST_FALL)
        for stage in range(_STAGES):
            turn, team = StageKey(0, stage), machine.workspace.team
            advance(self._config, self._target, self._member, turn, team)
            if machine.converged:
                break
        return machine.component(self.kernel, len(self._start)).alpha


def _held_out_errors(trials: Sequence[_Trial], size: float, team: ThreadTeam) -> Floats:
    """Sum the errors for multiples of ``size``, until two in a row are not the lowest."""
    errors: list[float] = []
    for factor in _FACTORS:
        with array_api.one_blas_thread():
            error = sum(team.map(partial(_Trial.error, lam=size * factor), trials))
        errors.append(error if np.isfinite(error) else np.inf)
        if len(errors) - 1 - int(np.argmin(errors)) == _PATIENCE:
            break
    return np.array(errors)


def _inputs(data: Workspace, rows: NDArray[np.int64]) -> Floats:
    """Scaled inputs of some rows of the table."""
    return array_api.to_numpy(data.X[data.rows_of(rows)])


def _observations(
    rows: NDArray[np.int64], target: Target, data: Workspace, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Target]:
    """Return rows in random order; if rows are repeated, single observations of them."""
    counts = data.repetitions
    if counts is None:
        return rng.permutation(rows), target
    weight = None if data.row_weight == 1 else np.full(len(target.y), data.row_weight)
    return draw_observations(counts, _ROWS, rng), replace(target, weight=weight)


def _folds(
    rows: NDArray[np.int64],
    target: Target,
    data: Workspace,
    kernel: Kernel,
    given: FoldKernels | None,
) -> tuple[NDArray[np.int64], list[Rows], tuple[Kernel, ...]]:
    """Return the first rows of some folds, those without and in each fold, and its kernel."""
    if given is None or target.dependence is not None:
        rows = rows[:_ROWS_OF_WHOLE_MACHINES]
        thirds = _thirds(rows, target)
        return rows, thirds, (kernel,) * len(thirds)
    fold_of = given.of_rows(data.rows_of(rows))
    is_used = fold_of >= 0
    rows, fold_of = (part[is_used][:_ROWS_OF_WHOLE_MACHINES] for part in (rows, fold_of))
    folds = [(np.sort(rows[fold_of != k]), rows[fold_of == k]) for k in range(len(given.kernels))]
    return rows, folds, given.kernels


def _thirds(rows: NDArray[np.int64], target: Target) -> list[Rows]:
    """Rows without and in each third: by groups or times, the latest first, or by their places."""
    dependence = target.dependence and target.dependence.rows(rows)
    if dependence is None or not dependence.divides:
        thirds = np.array_split(rows, _FOLDS)
        return [
            (np.sort(np.concatenate(thirds[:k] + thirds[k + 1 :])), thirds[k])
            for k in range(_FOLDS)
        ]
    found = in_turn(key_of(0, Purpose.FOLDS_COMPARED), _FOLDS, dependence)
    return [(np.sort(rows[learned]), rows[held]) for learned, held in reversed(found)]


def _lowest(factors: Floats, errors: Floats) -> float:
    """Return the minimizer of the parabola through the lowest error and its neighbors."""
    k = int(np.argmin(errors))
    if 0 < k < len(errors) - 1 and np.isfinite(errors[k - 1 : k + 2]).all():
        before, lowest, after = errors[k - 1 : k + 2]
        curve = before - 2 * lowest + after
        if curve > 0:
            step = 0.5 * (before - after) / curve  # at most half the distance to a neighbor
            return float(factors[k] * (factors[1] / factors[0]) ** step)
    return float(factors[k])


def _mean_curvature(loss: Loss, target: Target, start: Floats) -> float:
    """Mean of sample weight times hessian at the initial prediction."""
    raw = target.starting_raw(start)
    hessian = loss.with_curvature(target, raw).gradients(target, raw).hessian
    curvature = np.ones(len(raw)) if hessian is None else np.median(hessian, axis=1)
    return max(float((target.row_weights * curvature).mean()), 1e-300)
