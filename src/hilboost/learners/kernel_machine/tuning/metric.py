"""The metric of the kernel: scales of the features, by gradients or by the likelihood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hilboost.backends import array_api, lapack
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel, Matern
from hilboost.kernels.gram import row_blocks
from hilboost.kernels.marginal_likelihood import (
    AnyKernel,
    Effort,
    Evidence,
    LogScalePrior,
    maximize,
    negative_log_likelihood,
)
from hilboost.kernels.stationary import squared_distances
from hilboost.learners.kernel_machine.tuning.scoring import Rows, by_error, unit_of

KERNEL = Matern(1.0, 2.5)
PARTS, _LEARNED = 5, 3  # of the rows: three fifths are learned from
_ROWS_OF_BLOCK = 128
_ROUNDS = 3
_STEP = 1.6
_FIRST_LENGTHS = (0.7, 1.6)  # times the median distance
_FIRST_RIDGES = (3e-3, 3e-2, 3e-1)
SMALLEST_RIDGE = 1e-8  # smooth functions without noise need little
_LEAST_OF_SINGLE, _MOST_OF_SINGLE = 1e-3, 1e9  # ridges between which single precision suffices
_LEAST_PER_ROW = 5e-6  # rounding errors of smooth kernels grow with the number of rows
_ROWS_TO_HALVE = 500  # with as many, half of them choose where the search starts
_FLOOR = 1e-3  # of the largest scale, during the search
_DROPPED = 3e-3  # smaller scales become zero, unless the error grows by the next factor
_HARMLESS = 1.1
_SMALLEST_PRIORITY = 0.02
_SMOOTH = 0.3  # share of the variance; with a smaller error, the likelihood is maximized, too
_OPTIMISM = 2.0  # by as many rows each scale decreases the error of those it is fitted to
_STEPS, _TOLERANCE, FIRST_NOISE = 25, 1e-4, 0.03  # of the likelihood
_SPREAD = 2.0  # of the logarithms of the scales


@dataclass(frozen=True)
class Path:
    """The choices of a search, which suit other rows of the same table."""

    start: int  # of the scales that it began with: equal ones, or the priorities
    # length scale and ridge of the start and each round; none if the likelihood was maximized
    steps: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Metric:
    """A kernel of length scale one of scaled or rotated features, and the ridge."""

    axes: Floats  # (q,) or (q, k) float64: scales of the features, or a linear map of them
    ridge: float  # λ in ``(K + λ / weight) α = y``
    error: float = np.inf  # leave-one-out error on the rows of the search, if it is known
    # (2,) float64 or None: of main effects and of interactions of two features in an additive
    # kernel; ``None`` for the usual kernel
    shares: Floats | None = None
    path: Path | None = None  # of its search; ``None`` if there were too few rows for one


@dataclass(frozen=True)
class Fit:
    """A kernel ridge fit to the rows of the search, and its metric."""

    error: float  # weighted mean squared leave-one-out error
    ridge: float  # λ in ``(K + λ / weight) α = y``
    alpha: Floats  # (m, r) float64
    axes: Floats  # (q,) float64: scales of the features, before they are divided by ``length``
    squares: NDArray  # (m, m) float64: squared distances, likewise
    length: float = 1.0


def learned_metric(
    rows: Rows,  # X are features
    # (q,) float64 or None: how important the features may be, such as the gains of trees; not
    # negative
    priorities: Floats | None = None,
    # threads that share the comparisons and their matrices; the result does not depend on them
    team: ThreadTeam | None = None,
    path: Path | None = None,  # of a search on other rows, which is repeated without comparisons
) -> Metric:
    """Learn the metric from some hundred rows.

    The search starts from equal scales and, if there are any, from the priorities.  Each round
    sets the scales to the diagonal of the average gradient outer product of the last fit
    (Radhakrishnan, Beaglehole, Pandit & Belkin 2024), and then searches for the length scale and
    the ridge with the smallest exact leave-one-out error, until it no longer decreases.  If this
    error is small, the scales and the ridge of the largest marginal likelihood are tried, too; they
    often suit smooth functions better, but have a larger error where the noise is not Gaussian.

    The cost is that of up to 25 inversions of m × m matrices, or twice as many; with a path, of at
    most four, or of 25.
    """
    problem = Problem.of(rows, team)
    equal = np.ones(rows.X.shape[1])
    if len(problem.Z) < 2:
        return Metric(equal, 1.0, 1.0)
    variance = float(np.average((problem.Y**2).sum(axis=1), weights=problem.weight)) or 1.0
    starts = [equal]
    if priorities is not None and priorities.max(initial=0.0) > 0:
        starts.append(np.sqrt(priorities / priorities.max()) + _SMALLEST_PRIORITY)
    if path is None:
        best, path = _searched(problem, starts, _SMOOTH * variance)
    else:
        best = _repeated(problem, starts, path)
    scales = best.axes / best.length
    large = np.where(scales < _DROPPED * scales.max(), 0.0, scales)
    if not large.all() and problem.fit_with(large, best.ridge).error <= _HARMLESS * best.error:
        scales = large
    return Metric(scales, best.ridge, best.error / variance, path=path)


def _searched(problem: Problem, starts: list[Floats], small: float) -> tuple[Fit, Path]:
    """Return the best fit and the path to it; the likelihood is tried if errors are small."""
    m = len(problem.Z)
    some = problem.first((m + 1) // 2) if m >= _ROWS_TO_HALVE else problem
    fits = [some.best(scales, _FIRST_LENGTHS, _FIRST_RIDGES) for scales in starts]
    start = min(range(len(fits)), key=lambda k: fits[k].error)
    enough = 1 - _OPTIMISM * problem.Z.shape[1] / m
    searches: list[Callable[[], Any]] = [partial(_rounds, problem, fits[start])]
    if enough > 0 and fits[start].error < small:  # as it will be after the rounds
        searches.insert(0, problem.likeliest)  # the longer one
    *likely, (best, steps) = problem.team.map(lambda search: search(), searches)
    if enough > 0 and best.error < small:
        likeliest = likely[0] if likely else problem.likeliest()
        if likeliest.error < enough * best.error:
            return likeliest, Path(start, ())
    return best, Path(start, steps)


def _rounds(problem: Problem, first: Fit) -> tuple[Fit, tuple[tuple[float, float], ...]]:
    """Set the scales by gradients until the error no longer decreases.

    Returns the best fit, and the length scale and the ridge of each round.
    """
    best = problem.best(first.axes, (first.length,), (first.ridge,))
    steps = [(best.length, best.ridge)]
    for _ in range(_ROUNDS):
        scales = problem.gradient_scales(best)
        lengths = (best.length / _STEP, best.length, best.length * _STEP)
        found = problem.best(scales, lengths, (best.ridge,))
        ridges = found.ridge / 4, found.ridge * 4
        others = problem.nearby(found.axes, found.squares, (found.length,), ridges)
        found = min(found, others, key=by_error)
        if not found.error < best.error:
            break
        best = found
        steps.append((best.length, best.ridge))
    return best, tuple(steps)


def _repeated(problem: Problem, starts: list[Floats], path: Path) -> Fit:
    """Return the best fit on a path that a search on other rows found."""
    if not path.steps:
        return problem.likeliest()
    (length, ridge), *rounds = path.steps
    now = best = problem.best(starts[min(path.start, len(starts) - 1)], (length,), (ridge,))
    for length, ridge in rounds:
        now = problem.best(problem.gradient_scales(now), (length,), (ridge,))
        best = min(best, now, key=by_error)
    return best


def precision_of(D: Floats) -> DTypeLike:
    """The precision that suffices to compare fits with some numbers added to the diagonal, (m,)."""
    least, most = max(_LEAST_OF_SINGLE, _LEAST_PER_ROW * len(D)), _MOST_OF_SINGLE
    return np.float32 if least <= D.min() and D.max() <= most else np.float64


def _merged(rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Merge equal rows, so that leaving one out leaves none like it; sum their weights."""
    distinct, inverse = np.unique(rows.X, axis=0, return_inverse=True)
    group = inverse.ravel()
    mass = np.zeros(len(distinct))
    np.add.at(mass, group, rows.weight)
    sums = np.zeros((len(distinct), rows.Y.shape[1]))
    np.add.at(sums, group, rows.weight[:, None] * rows.Y)
    return distinct, sums / mass[:, None], mass


def _median(squares: Floats) -> float:
    """Median of the squared distances (m, m) of half of the pairs of rows; one if it is zero."""
    return float(np.median(squares[::2, 1::2])) or 1.0


@dataclass(frozen=True)
class Problem:
    """The rows of the search: features (m, q), centered targets (m, r), and weights (m,)."""

    Z: Floats
    Y: Floats
    weight: Floats
    team: ThreadTeam = field(default_factory=ThreadTeam)

    @classmethod
    def of(cls, rows: Rows, team: ThreadTeam | None = None) -> Problem:
        """Merge equal rows, and center the targets."""
        Z, Y, w = _merged(rows)
        return cls(Z, Y - np.average(Y, axis=0, weights=w), w, team or ThreadTeam())

    @classmethod
    def divided(cls, rows: Rows, team: ThreadTeam | None) -> tuple[Problem, Problem]:
        """Three fifths of the rows to learn from, and the others."""
        is_learned = np.arange(len(rows)) % PARTS < _LEARNED
        return cls.of(rows.part(is_learned), team), cls.of(rows.part(~is_learned), team)

    def first(self, n: int) -> Problem:
        """Up to ``n`` of the rows, evenly spread over them."""
        m = len(self.Z)
        rows = np.arange(min(n, m)) * m // min(n, m)
        Y, weight = self.Y[rows], self.weight[rows]
        Y = Y - np.average(Y, axis=0, weights=weight)
        return replace(self, Z=self.Z[rows], Y=Y, weight=weight)

    def best(self, scales: Floats, lengths: Iterable[float], ridges: Sequence[float]) -> Fit:
        """Return the fit with the smallest leave-one-out error."""
        squares = self.squares(scales)
        median = _median(squares)
        return self.nearby(scales / np.sqrt(median), squares / median, lengths, ridges)

    def nearby(
        self, axes: Floats, squares: Floats, lengths: Iterable[float], ridges: Sequence[float]
    ) -> Fit:
        """Return the fit with the smallest leave-one-out error for these axes and distances."""
        matrices = {length: self.kernel_values(squares / length**2) for length in lengths}

        def fit(pair: tuple[float, float]) -> Fit:
            length, ridge = pair
            return self.fit(matrices[length], ridge, axes, squares, length)

        bounded = [max(ridge, SMALLEST_RIDGE) for ridge in ridges]
        return min(self.team.map(fit, product(matrices, bounded)), key=by_error)

    def in_blocks(self, function: Callable[[slice], Any]) -> list[Any]:
        """Results of a function for blocks of rows, which threads share."""
        return self.team.map(function, row_blocks(len(self.Z), _ROWS_OF_BLOCK))

    def squares(self, scales: Floats) -> Floats:
        """Return the squared distances (m, m) of scaled features."""
        points = self.Z * scales
        return np.concatenate(self.in_blocks(lambda rows: squared_distances(points[rows], points)))

    def kernel_values(self, squares: Floats) -> Floats:
        """Return the kernel values (m, m) for squared distances, in blocks up to the diagonal."""
        K = np.zeros(squares.shape)

        def evaluate(rows: slice) -> None:
            K[rows, : rows.stop] = KERNEL.profile(squares[rows, : rows.stop].copy())

        self.in_blocks(evaluate)
        return K

    def fit_with(self, axes: Floats, ridge: float) -> Fit:
        """Return the fit with some scales."""
        squares = self.squares(axes)
        return self.fit(self.kernel_values(squares), ridge, axes, squares)

    def fit(
        self, K: NDArray, ridge: float, axes: Floats, squares: NDArray, length: float = 1.0
    ) -> Fit:
        """Return the fit with some kernel values (m, m) and a ridge."""
        residuals, alpha = self.residuals(K, ridge)
        error = float(np.average((residuals**2).sum(axis=1), weights=self.weight))
        return Fit(error, ridge, alpha, axes, squares, length)

    def residuals(
        self, K: NDArray, ridge: float, dtype: DTypeLike | None = None
    ) -> tuple[Floats, Floats]:
        """Return the leave-one-out residuals (m, r), and the coefficients (m, r).

        Without a type, they are computed in single precision, unless the ridge is too small.
        """
        D = ridge / self.weight
        dtype, unit = dtype or precision_of(D), unit_of(self.Y)
        factor = array_api.add_to_diagonal(K.astype(dtype, "C"), D.astype(dtype))
        if not lapack.factor_by_tiles(factor, self.team):
            return np.full_like(self.Y, np.inf), np.zeros_like(self.Y)
        residuals, alpha = array_api.left_out(factor, (self.Y / unit).astype(dtype), self.team)
        return residuals.astype(np.float64) * unit, alpha.astype(np.float64) * unit

    def likeliest(self) -> Fit:
        """Maximize the marginal likelihood of a Gaussian process over all scales and the ridge.

        The search starts from equal scales.
        """
        equal = np.ones(self.Z.shape[1])
        start = replace(KERNEL, length_scale=equal * np.sqrt(_median(self.squares(equal))))
        effort = Effort(_STEPS, _TOLERANCE, team=self.team, any_amplitude=True)
        prior = LogScalePrior((slice(0, len(equal)),), _SPREAD)
        found = self.maximized(start, FIRST_NOISE, effort, prior)
        return self.fit_with(1 / found.kernel.length_scale, max(found.noise, SMALLEST_RIDGE))

    def maximized(
        self, start: AnyKernel, noise: float, effort: Effort, prior: LogScalePrior | None
    ) -> Evidence[AnyKernel]:
        """Maximize the likelihood, or the posterior density."""
        return maximize(start, noise, self.Z, self.Y, effort, prior, self.weight)

    def surprise(self, kernel: Kernel, ridge: float) -> float:
        """Negative log likelihood of the rows under a kernel with its most likely amplitude."""
        return negative_log_likelihood(
            kernel, ridge, self.Z, self.Y, self.weight, any_amplitude=True, team=self.team
        )[0]

    def gradient_scales(self, fit: Fit) -> Floats:
        """Return the root mean squared derivatives of a fit along the features, (q,)."""

        def squared(rows: slice) -> Any:
            # But for a factor, ∂f/∂z at row i is axes² Σ_j slope_ij α_j (z_i - z_j).
            Z, slopes = self.Z, KERNEL.slope(fit.squares[rows] / fit.length**2)
            moved = [
                (slopes @ a)[:, None] * Z[rows] - slopes @ (a[:, None] * Z) for a in fit.alpha.T
            ]
            return sum(self.weight[rows] @ pull**2 for pull in moved)

        found = np.sqrt(np.sum(self.in_blocks(squared), axis=0)) * fit.axes**2
        largest = found.max(initial=0.0)
        return found / largest + _FLOOR if largest > 0 else np.ones(len(found))
