"""The choice of kernel and λ in the first stage of a fit.

Stages of several kernels converge to the machine with the sum of these kernels.  The amplitudes of
the kernels decide how much of the function each can explain, and λ is that of the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.gradients import Gradients
from hilboost.core.plain_values import is_auto
from hilboost.kernels import Kernel, Precomputed, Scaled, Sum
from hilboost.kernels.gram import evaluate, mean_diagonal
from hilboost.kernels.marginal_likelihood import SharePrior, maximize
from hilboost.learners.kernel_machine.config import DIRECT_UP_TO, KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.feature_map import Warps
from hilboost.learners.kernel_machine.inputs import learned_warps, warped
from hilboost.learners.kernel_machine.tuning.likelihood import (
    SMALLEST_LAMBDA,
    START_NOISE,
    by_likelihood,
    by_mean_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_HOLD_OUT,
    ROWS_OF_LEAVE_ONE_OUT,
    Candidate,
    FoldKernels,
    Rows,
    best_lambda,
    best_scale,
    by_error,
    lambda_on_grid,
    leave_one_out,
    mean_and_standard_error,
    predictions,
)
from hilboost.learners.kernel_machine.tuning.search import Clock, Search
from hilboost.learners.kernel_machine.tuning.table_kernel import USUAL_FAMILY, Columns, TableKernel

_BYTES_OF_A_CANDIDATE = 32.0  # a squared row
_AT_ONCE = 2  # candidates that the memory budget must hold
_FEWEST_ROWS = 64
_EVENNESS = 0.2  # effective share of the rows, below which Newton steps are tried, too
_UNLIKE = 30.0  # targets whose spreads differ by more are standardized one by one
_RESOLUTION = 2.0**-30  # of standardized targets
_SMALLEST_ITERATIVE_LAMBDA = 1e-3  # below, conjugate gradients need hundreds of steps
_SMALLEST_HURRIED_LAMBDA = 1e-2  # for slow steps that a time limit may cut short
_ROWS_OF_SLOW_STEPS = 15_000
_ROWS_OF_AMPLITUDES = 500
_ROWS_OF_WARPED = 1500  # to which kernels are fitted, with and without warps
_LAMBDAS_OF_WARPED = np.array([0.1, 0.3, 1.0, 3.0])  # factors
_FAMILIES_OF_WARPED = USUAL_FAMILY, "manhattan_laplace"  # the latter suits steps without a warp
_WORTH_WARPS = 0.95


PenaltyChoice = Callable[[Workspace, Kernel, float, FoldKernels | None], tuple[float, float]]
"""Chooses λ by the loss itself, which is also returned, for a workspace, a kernel, the number of
basis vectors, and kernels that the rows of a fold did not help to choose; ``None`` if none did."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel and λ of a fit."""

    in_files: ClassVar[bool] = True

    kernel: Kernel
    regularization: float  # λ
    rows: Ints | None = None  # (m,) int64 or None: rows that the choice held out
    predicted: Floats | None = None  # (m, r) float64 or None: predictions of their first gradients
    parts: tuple[Kernel, ...] = ()  # several kernels with their amplitudes, whose sum is the kernel
    warps: Warps = ()  # of the features

    def settled(self, workspace: Workspace, weight: Floats | None) -> tuple[Workspace, float]:
        """The workspace with warped features, and a λ that is large enough.

        It is in double precision if single rounds λ away.  λ = 0 stands for the smallest one that
        exceeds rounding errors.
        """
        workspace = workspace.with_warps(self.warps)
        if 0 < self.regularization < self._smallest(workspace, weight):
            workspace = workspace.in_float64()
        return workspace, max(self.regularization, self._smallest(workspace, weight))

    def _smallest(self, workspace: Workspace, weight: Floats | None) -> float:
        eps = float(np.finfo(workspace.precision).eps)
        mass = 1.0 if weight is None else float(weight.mean())
        return 10 * eps * mass * mean_diagonal(self.kernel, workspace.X[:256])


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses what the user left open, from the gradients of the first stage."""

    config: KernelMachineConfig
    workspace: Workspace
    # number of basis vectors that the model can have, if fewer than rows
    n_effective: float = np.inf
    # whether the fit takes conjugate gradient steps on all rows, which a small λ slows down
    iterates: bool = False
    # chooses λ instead, for other losses than squared error
    choose_penalty: PenaltyChoice | None = None

    def choice(self, gradients: Gradients, weight: Floats | None) -> Choice:
        """Kernel and λ, for gradients and sample weights (n,), zero for rows outside the sample.

        If few rows hold most of the curvature, as with offsets that differ by orders of magnitude,
        the gradients hide the function.  Newton steps, with the curvature as weights, may show it.
        Several kernels are used as they are if λ is given.
        """
        config, curvature = self.config, gradients.hessian
        kernel, regularization = config.given_kernel, config.given_regularization
        if config.tuning == "auto" and kernel is not None and regularization is not None:
            return Choice(kernel, regularization, parts=config.kernels)
        choice, loss = self._chosen(gradients, weight)
        can_vary = self._scores_losses and kernel is None and config.tuning_seconds is None
        can_vary = can_vary and self.workspace.observed is None and gradients.corners is None
        if can_vary and curvature is not None and _is_uneven(curvature):
            steps = replace(gradients, negative_gradient=gradients.negative_gradient / curvature)
            mass = curvature[:, 0] * (1.0 if weight is None else weight)
            rival, its_loss = self._chosen(steps, mass)
            choice = rival if its_loss < loss else choice
        return choice

    @property
    def _scores_losses(self) -> bool:
        """Whether λ is chosen by the loss itself."""
        is_open = self.config.given_regularization is None and self.config.tuning == "auto"
        return is_open and self.choose_penalty is not None

    def _chosen(self, gradients: Gradients, weight: Floats | None) -> tuple[Choice, float]:
        """Choose by the negative gradients; also return the held-out loss, if λ is chosen by it."""
        sample = StandardizedSample.of(self.workspace, gradients, weight)
        kernels: tuple[Kernel, ...] = ()
        warps: Warps = ()
        # Each candidate runs on one thread: the choice is the same on any number of threads.
        with array_api.one_blas_thread(), self._team(len(sample.rows)) as team:
            if self.config.kernels:
                best, kernels = self._best_sum(sample, team)
            else:
                best, warps = self._best(sample, team)
        regularization, loss = self.config.given_regularization, np.inf
        if self._scores_losses and self.choose_penalty is not None:
            regularization, loss = self.choose_penalty(
                self.workspace.with_warps(warps), best.kernel, self.n_effective, best.folds
            )
        elif regularization is None:
            regularization = best.regularization * sample.mass
        kernel = Sum(kernels) if kernels else best.kernel
        return Choice(kernel, regularization, *sample.held_out(best), kernels, warps), loss

    def _team(self, n_rows: int) -> ThreadTeam:
        """As many threads as the memory budget has candidates for."""
        m, workspace = min(ROWS_OF_HOLD_OUT, n_rows), self.workspace
        most = max(1, int(workspace.memory / (_BYTES_OF_A_CANDIDATE * m * m)))
        return ThreadTeam(min(most, workspace.team.n_threads))

    def _best(
        self, sample: StandardizedSample, team: ThreadTeam
    ) -> tuple[Candidate[Kernel], Warps]:
        """Kernel, λ and warps for standardized targets, by the method of the config."""
        config, kernel, rows = self.config, self.config.given_kernel, sample.rows
        columns = Columns.of(rows.X.shape[1], config.categorical)
        if config.tuning == "marginal_likelihood":
            return by_likelihood(kernel, columns, rows), ()
        if config.tuning == "mean_distance":
            kernel = by_mean_distance(rows)
        if kernel is not None:
            return lambda_on_grid(kernel, rows, team), ()
        n, clock = min(sample.n, self.n_effective), Clock(config.tuning_seconds)
        is_wide = clock.is_wide and not config.tunes_briefly
        search = Search(columns, rows, n, self._floor(sample), team, clock, is_wide)
        warps: Warps = ()
        if is_auto(config.standardize) and search.can_warp:
            search, warps = with_warps(search)
        best = search.best()
        # Machines of a few basis vectors are compared with one kernel for all folds.
        uses_folds = self._scores_losses and np.isinf(self.n_effective)
        folds = search.folds_of(best) if uses_folds else None
        plain: Any = best  # the search has its own form of kernels
        return replace(plain, kernel=best.kernel.plain, folds=folds), warps

    def _floor(self, sample: StandardizedSample) -> float:
        """The smallest λ for which the rest of the fit converges in time."""
        n = min(sample.n, self.n_effective)
        if n <= DIRECT_UP_TO:
            return SMALLEST_LAMBDA
        hurries = self.iterates and self.config.tuning_seconds is not None
        if hurries and n > _ROWS_OF_SLOW_STEPS:
            return _SMALLEST_HURRIED_LAMBDA
        return _SMALLEST_ITERATIVE_LAMBDA

    def _best_sum(
        self, sample: StandardizedSample, team: ThreadTeam
    ) -> tuple[Candidate[Kernel], tuple[Kernel, ...]]:
        """The sum of the kernels, and the kernels with their amplitudes.

        The order of the kernels has no effect on the choice.  Their amplitudes maximize the
        posterior density of the sum on 500 rows, the marginal likelihood times a prior in favor of
        equal shares, and λ minimizes the leave-one-out error of the sum.  With
        ``tuning="marginal_likelihood"``, the hyperparameters of the kernels are fitted as well.
        """
        config, rows = self.config, sample.rows
        order = _canonical_order(config.kernels, rows)
        start = _unit_sum([config.kernels[k] for k in order], rows.X)
        if config.tuning == "marginal_likelihood":
            columns = Columns.of(rows.X.shape[1], config.categorical)
            best = by_likelihood(start, columns, rows)
        else:
            best = _by_amplitudes(start, rows, self._floor(sample), team)
        found = best.kernel.parts  # type: ignore[attr-defined]
        return best, tuple(found[order.index(k)] for k in range(len(order)))


def with_warps(search: Search) -> tuple[Search, Warps]:
    """The search with warps of its features, if they predict held-out rows clearly better.

    Kernels of two families are fitted with and without warps that are learned from the same rows.
    """
    rows, columns = search.sampled, search.columns.numeric
    learned, judged = (rows.part(places) for places in rows.divided)
    trial = learned_warps(learned, columns)
    if not trial:
        return search, ()
    rival = replace(search, sampled=warped(rows, trial))
    likely = [search.usual, rival.usual]
    lowest = [np.full(len(judged), np.inf)] * 2
    for family in _FAMILIES_OF_WARPED:
        for k, one in enumerate((search, rival)):
            if family != USUAL_FAMILY:
                likely[k] = one.likely(family, likely[k])
            errors = _errors(one, likely[k])
            lowest[k] = min(lowest[k], errors, key=lambda own: float(own @ judged.weight))
        if not np.isfinite(lowest).all():
            return search, ()
        gain, error = mean_and_standard_error(lowest[0] - lowest[1], judged.weight)
        before = float(np.average(lowest[0], weights=judged.weight))
        if not gain > max((1 - _WORTH_WARPS) * before, error):
            return search, ()
    warps = learned_warps(rows, columns)
    return replace(search, sampled=warped(rows, warps)), warps


def _errors(search: Search, likely: Candidate[TableKernel]) -> Floats:
    """Squared errors of held-out rows (m,) with a kernel of the best scale and λ."""
    learned, held = (search.sampled.part(places) for places in search.sampled.divided)
    likely = best_scale(likely, learned.first(ROWS_OF_LEAVE_ONE_OUT))
    some = learned.first(_ROWS_OF_WARPED)
    grid = np.maximum(likely.regularization * _LAMBDAS_OF_WARPED, search.floor)
    errors = ((predictions(likely.kernel, some, held.X, grid) - held.Y) ** 2).sum(axis=2)
    errors[np.isnan(errors)] = np.inf
    best: Floats = errors[np.argmin(errors @ held.weight)]
    return best


def _is_uneven(curvature: Floats) -> bool:
    """Whether few rows hold most of the curvature (n, r) of one output."""
    if curvature.shape[1] > 1 or not (curvature > 0).all():
        return False
    return bool(curvature.mean() ** 2 < _EVENNESS * (curvature**2).mean())


@dataclass(frozen=True, eq=False)
class StandardizedSample:
    """A random sample of the rows, its targets less their means and divided by their spreads."""

    rows: Rows
    middle: Floats  # (r,) float64: mean and spread of the targets
    spread: Floats  # (r,) float64: mean and spread of the targets
    n: int  # number of rows it was drawn from
    mass: float  # mean sample weight

    @classmethod
    def of(
        cls, workspace: Workspace, gradients: Gradients, weight: Floats | None
    ) -> StandardizedSample:
        """Draw as many rows as the memory budget allows, at most twice as many as for a fit."""
        rng = np.random.default_rng((workspace.seed, 1))
        inside = np.arange(workspace.X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
        affordable = int(np.sqrt(workspace.memory / (_BYTES_OF_A_CANDIDATE * _AT_ONCE)) / 0.75)
        n_drawn = max(_FEWEST_ROWS, min(2 * ROWS_OF_HOLD_OUT, affordable))
        observed, own, dependence = workspace.observed, None, workspace.dependence
        if observed is not None:
            rows, Y = observed.rows[:n_drawn], observed.negative_gradient[:n_drawn]
            own, dependence = observed.weight, observed.dependence
            own = None if own is None else own[:n_drawn]
            dependence = dependence and dependence.rows(slice(n_drawn))
        else:
            rows = rng.permutation(inside)[:n_drawn]
            Y = gradients.negative_gradient[rows]
            own = None if weight is None else weight[rows]
            dependence = dependence and dependence.rows(rows)
        middle = Y.mean(axis=0)
        Y = Y - middle
        spread = _spread(Y)
        w = np.ones(len(rows)) if own is None else own / own.mean()
        mass = workspace.row_weight if own is None else float(own.mean())
        # Rounding errors, which depend on the unit of the targets, would lead the search astray.
        Y = np.rint(Y / spread / _RESOLUTION) * _RESOLUTION
        sampled = Rows(array_api.to_numpy(workspace.X[rows]), Y, w, rows, dependence)
        return cls(sampled, middle, spread, len(inside), mass)

    def held_out(self, best: Candidate[Any]) -> tuple[Ints | None, Floats | None]:
        """The distinct rows (m,) that a candidate held out, and predictions of their gradients."""
        if best.predicted is None or best.rows is None:
            return None, None
        predicted = self.middle + self.spread * best.predicted
        rows, first = np.unique(best.rows, return_index=True)
        if len(rows) == len(best.rows):
            return best.rows, predicted
        return rows, predicted[first]


def _spread(Y: Floats) -> Floats:
    """Divisors of centered targets (m, r); one number if their spreads are similar."""
    spread = np.sqrt((Y**2).mean(axis=0))
    varies = spread > 0
    if varies.any() and spread.max() <= _UNLIKE * spread[varies].min():
        spread[:] = np.sqrt((spread[varies] ** 2).mean())  # classes, or targets of one kind
    spread[~varies] = 1.0
    return spread


class SharedChoice:
    """The kernel and λ of all members of an ensemble.

    The choice depends on the first gradients of all rows, which are the same for all members.  The
    result is therefore the same whichever member comes first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: Choice | None = None

    def settled(self, choose: Callable[[], Choice]) -> Choice:
        """Return the choice of the first member that asks."""
        with self._lock:
            if self._found is None:
                self._found = choose()
            return self._found


def _unit_sum(kernels: Sequence[Kernel], X: Floats) -> Sum:
    """The sum of the kernels, each with the same mean of k(x, x)."""
    X = X[:ROWS_OF_LEAVE_ONE_OUT]
    sizes = [mean_diagonal(kernel, X) * len(kernels) for kernel in kernels]
    return Sum(
        tuple(
            Scaled(kernel, 1 / size if size > 0 else 1.0)
            for kernel, size in zip(kernels, sizes, strict=True)
        )
    )


def _by_amplitudes(start: Sum, sampled: Rows, floor: float, team: ThreadTeam) -> Candidate[Kernel]:
    """A sum of kernels with the most probable amplitudes, and the best λ."""
    if not sampled.Y.any() or len(sampled) < 3:
        return Candidate(start, 1e-2)
    rows = sampled.first(_ROWS_OF_AMPLITUDES)
    numbers = np.arange(len(rows), dtype=np.float64)[:, None]
    looked_up = Sum(
        tuple(
            Scaled(Precomputed(evaluate(part.kernel, rows.X, rows.X)), part.factor)
            for part in start.parts
        )
    )
    # The likelihood counts every target; correlated ones tell less about the kernels.
    strength = rows.Y.shape[1] / effective_number(rows.Y)
    prior = SharePrior(looked_up.log_parameters, strength)
    found = maximize(looked_up, START_NOISE, numbers, rows.Y, prior=prior)
    pairs = zip(start.parts, found.kernel.parts, strict=True)
    total = Sum(tuple(Scaled(part.kernel, likely.factor) for part, likely in pairs))
    rows = sampled.first(ROWS_OF_LEAVE_ONE_OUT)
    # The most likely noise of a few rows can be almost 0, from where the search goes not far.
    starts = [
        leave_one_out(Candidate[Kernel](total, max(noise, floor)), rows)
        for noise in (found.noise, START_NOISE)
    ]
    return best_lambda(min(starts, key=by_error), rows, leave_one_out, floor, team)


def effective_number(Y: Floats) -> float:
    """The participation ratio of the targets (n, c): c if they are uncorrelated, 1 if all equal."""
    squares = (Y.T @ Y) if Y.shape[1] <= len(Y) else (Y @ Y.T)
    return float(np.trace(squares) ** 2 / np.maximum((squares**2).sum(), 1e-300))


def _canonical_order(kernels: Sequence[Kernel], sampled: Rows) -> list[int]:
    """An order that does not depend on that of the list: sums of floats depend on their order."""
    X = sampled.X[:_ROWS_OF_AMPLITUDES]

    def key(k: int) -> tuple[float, float]:
        K = evaluate(kernels[k], X, X)
        return float(K.sum()), float((K * K).sum())

    return sorted(range(len(kernels)), key=key)
