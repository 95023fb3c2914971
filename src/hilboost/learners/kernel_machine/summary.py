"""Choices of a kernel machine fit, and its predictive variance as a Gaussian process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels import Kernel, Sum
from hilboost.kernels.base import first_of_equals
from hilboost.kernels.gram import Gram, evaluate, row_blocks
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.tuning.scoring import left_out

_EXACT_UP_TO = 5000
_LANDMARKS = 2000
_ROWS_AT_ONCE = 256
_JUDGED, _JUDGED_AT_ONCE = 2000, 25  # rows that are left out
_NEAREST = 100  # neighbors that stand for the others
_COMPARED, _NEIGHBORS = 50, 1000  # of these, rows whose variance more neighbors correct
_FEW = 50  # rows; one of fewer may well make up a fifth of a sum of squares


@dataclass(frozen=True)
class PosteriorVariance:
    """Variance of new observations, for a machine whose basis vectors are all training rows.

    With all rows, the variance is exact (Rasmussen & Williams 2006, eq. 2.26).  With fewer, it is
    the projected process approximation plus the prior variance that the landmarks do not explain
    (Snelson & Ghahramani 2006), which does not underestimate the variance far from the data.
    """

    model: KernelExpansion
    # (m, d) float64: all rows if there are at most 5,000, otherwise 2,000 random rows
    landmarks: Floats
    # (m, m) float64 or None: cholesky factor of ``K_mm``; ``None`` if all rows are landmarks
    prior: Floats | None
    # (m, m) float64: cholesky factor of ``K_mm + K_mn D⁻¹ K_nm``, or of ``K + D`` if all rows are
    # landmarks
    posterior: Floats
    noise: float  # noise variance of a new observation
    # (r,) or (1,): of the variances of each target, so that they agree with its residuals
    factors: Floats = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(
        cls, model: KernelExpansion, D: Floats, noise: float, team: ThreadTeam
    ) -> PosteriorVariance:
        """Create it from an expansion in all training rows and the diagonal (n,) of its system.

        Cost O(n³) up to 5,000 rows, and O(n m²) above.
        """
        X = model.basis.astype(np.float64)
        n = len(X)
        kernel = model.kernel
        if not is_approximate(n):
            K = evaluate(kernel, X, X, team)
            factor = array_api.cholesky(array_api.add_to_diagonal(K, D), team=team)
            return cls(model, X, None, factor, noise)
        rows = _landmark_rows(n)
        landmarks = X[rows]
        K_mm = evaluate(kernel, landmarks, landmarks, team)
        gram = Gram(kernel, model.basis, model.basis[rows], 0.0, team)
        total, _ = gram.sums(1.0 / D, None)
        posterior = array_api.cholesky(total + K_mm, 1e-10, team=team)
        prior = array_api.cholesky(K_mm, 1e-10, team=team)
        return cls(model, landmarks, prior, posterior, noise)

    def __call__(self, X: Floats, team: ThreadTeam) -> Floats:
        """Compute the variance (n, r) or (n, 1) of new observations, including noise."""
        unexplained, posterior = self._parts(self.model.inputs(X), team)
        return (unexplained + posterior + self.noise)[:, None] * self.factors

    def _parts(self, X: Floats, team: ThreadTeam) -> tuple[Floats, Floats]:
        """Variance (n,) that the landmarks do not explain, and that of the projection on them."""
        unexplained = array_api.to_numpy(self.model.kernel.diag(X)).copy()
        posterior = np.zeros(len(X))

        def explain(rows: slice) -> None:
            k = evaluate(self.model.kernel, self.landmarks, X[rows])
            if self.prior is not None:
                posterior[rows] = (array_api.solve_lower(self.posterior, k.copy()) ** 2).sum(axis=0)
            factor = self.posterior if self.prior is None else self.prior
            unexplained[rows] -= (array_api.solve_lower(factor, k) ** 2).sum(axis=0)

        team.map(explain, row_blocks(len(X), _ROWS_AT_ONCE))
        return np.maximum(unexplained, 0.0), posterior

    def fitted_to_residuals(
        self,
        weights: Floats,
        D: Floats,
        amplitude: float,
        team: ThreadTeam,
        dependence: Dependence | None = None,
    ) -> PosteriorVariance:
        """Multiply the variances by the mean squared z-score of training rows that are left out.

        The residual of a row that is left out is its weight in the expansion times the variance of
        this row given the others (Rasmussen & Williams 2006, eq. 5.12).  ``weights`` (n, r) solve
        the linear system with the diagonal ``D`` (n,), and ``amplitude`` is the common factor of
        all variances so far.  Up to 5,000 rows are left out by ``dependence``.  Equal rows are left
        out together, which says nothing about the spread of their targets: repetitions count as
        z-scores of 1.
        """
        squares = self._squares(weights, D, team, dependence) / amplitude
        share = min(1.0, len(D) / float((self.noise / D).sum()))  # of different rows among all
        found = 1 - share + share * np.array([_robust_mean(column) for column in squares.T])
        return replace(self, factors=found) if np.isfinite(found).all() and found.all() else self

    def _squares(
        self, weights: Floats, D: Floats, team: ThreadTeam, dependence: Dependence | None
    ) -> Floats:
        """Squared z-scores (m, r) of all rows, or of up to 2,000 rows beside the landmarks.

        In the latter case, the landmarks or, if they explain more, the 100 nearest neighbors of a
        row stand for the others.  All squares are multiplied by the mean ratio for 50 rows, drawn
        with probabilities proportional to their squares.  With k neighbors, the variance exceeds
        that given all rows by about c/k, and 500 and 1,000 neighbors tell c.
        """
        if self.prior is None:
            targets = self.posterior @ (self.posterior.T @ weights)
            _, residual, scaled = left_out(self.posterior, targets, dependence, team)
            return residual * scaled
        X = self.model.basis.astype(np.float64)
        others = np.setdiff1d(np.arange(len(X)), _landmark_rows(len(X)))
        n_judged = min(_JUDGED, len(others))
        rows = others[np.arange(n_judged) * len(others) // n_judged]
        unexplained, posterior = self._parts(X[rows], team)
        without = posterior / np.maximum(1 - posterior / D[rows], 1e-12)
        by_landmarks = unexplained + without + D[rows]

        def given_others(some: Ints, n_neighbors: int) -> Floats:
            blocks = [rows[some][block] for block in row_blocks(len(some), _JUDGED_AT_ONCE)]
            found = team.map(partial(self._given_neighbors, X, D, n_neighbors), blocks)
            return np.minimum(by_landmarks[some], np.concatenate(found))

        variance = given_others(np.arange(n_judged), _NEAREST)
        squares = weights[rows] ** 2 * (variance**2 / by_landmarks)[:, None]
        sums = np.cumsum(squares.sum(axis=1))
        drawn = np.searchsorted(sums, (np.arange(_COMPARED) + 0.5) / _COMPARED * sums[-1])
        drawn, times = np.unique(drawn, return_counts=True)
        many, half = (given_others(drawn, k) for k in (_NEIGHBORS, _NEIGHBORS // 2))
        ratios = np.maximum(2 * many - half, many / 2) / variance[drawn]
        return squares * np.average(ratios**2, weights=times)

    def _given_neighbors(self, X: Floats, D: Floats, n_neighbors: int, rows: Ints) -> Floats:
        """Variances of observations given the rows with the largest correlations, for each row."""
        kernel, variances = self.model.kernel, np.empty(len(rows))
        diagonal = np.maximum(array_api.to_numpy(kernel.diag(X)), 1e-300)
        similarity = evaluate(kernel, X[rows], X) ** 2 / diagonal
        for k, row in enumerate(rows):
            similarity[k, row] = -1.0
            near = np.argpartition(similarity[k], -n_neighbors)[-n_neighbors:]
            values = evaluate(kernel, X[near], X[[row, *near]])
            factor = array_api.cholesky(array_api.add_to_diagonal(values[:, 1:].copy(), D[near]))
            explained = array_api.solve_lower(factor, values[:, 0].copy())
            variances[k] = max(diagonal[row] - float(explained @ explained), 0.0) + D[row]
        return variances


def _robust_mean(squares: Floats) -> float:
    """The mean (m,), to which no row of a larger sample contributes more than a fifth."""
    ordered, bound = np.sort(squares)[::-1], np.inf
    for n_bounded in range(5 if len(squares) >= _FEW else 0):
        bound = float(ordered[n_bounded:].sum()) / (5 - n_bounded)
        if ordered[n_bounded] <= bound:
            break
    return float(np.minimum(squares, bound).mean())


def is_approximate(n: int) -> bool:
    """Whether the variances of a machine with this number of rows are approximations."""
    return n > _EXACT_UP_TO


def _landmark_rows(n: int) -> Ints:
    return np.sort(np.random.default_rng(0).choice(n, _LANDMARKS, replace=False))


@dataclass(frozen=True, eq=False)
class StageKernels:
    """The kernels of a list, the one that made each stage, and the norms of their functions."""

    in_files: ClassVar[bool] = True

    kernels: tuple[Kernel, ...]  # in the order of the list
    chosen: Ints  # (n_stages,) int64: position of the kernel of each stage
    # (n_stages, n_kernels) float64: squared norms of the functions in the spaces of the kernels
    # after each stage: weighted sums of squared values on the training rows
    norms: Floats

    @property
    def total(self) -> Kernel:
        """The sum of the different kernels, to whose machine the stages converge."""
        distinct = [self.kernels[k] for k in sorted(set(first_of_equals(self.kernels)))]
        return distinct[0] if len(distinct) == 1 else Sum(tuple(distinct))

    @property
    def weights(self) -> Floats:
        """Shares of the squared norms after the last stage, (n_kernels,); zeros for a constant."""
        last: Floats = self.norms[-1] if len(self.norms) else np.zeros(len(self.kernels))
        return last / (math.fsum(last) or 1.0)  # the sum is the same in any order

    def first(self, n_stages: int) -> StageKernels:
        """The record of the first stages."""
        return StageKernels(self.kernels, self.chosen[:n_stages], self.norms[:n_stages])

    def listed(self, firsts: Sequence[int]) -> StageKernels:
        """The record for a list that repeats kernels, by the place of the first equal one."""
        places = sorted(set(firsts))
        norms = np.zeros((len(self.norms), len(firsts)))
        norms[:, places] = self.norms
        kernels = tuple(self.kernels[places.index(first)] for first in firsts)
        return StageKernels(kernels, np.array(places, dtype=np.int64)[self.chosen], norms)

    @classmethod
    def of(cls, kernels: tuple[Kernel, ...], n_stages: int = 0) -> StageKernels:
        """The record before the first stage, or that of one kernel, which makes every stage."""
        n = len(kernels)
        return cls(kernels, np.zeros(n_stages, dtype=np.int64), np.ones((n_stages, n)))

    def after(self, k: int, norms: Floats) -> StageKernels:
        """The record after a stage of the k-th kernel, and squared norms (n_kernels,)."""
        return StageKernels(self.kernels, np.append(self.chosen, k), np.vstack([self.norms, norms]))


@dataclass(frozen=True)
class KernelMachineSummary:
    """Kernel and regularization of a fitted kernel machine."""

    # ``None`` if no stage was fitted; the sum of the kernels if there are several
    kernel: Kernel | None
    regularization: float | None
    amplitude: float = 1.0  # maximum likelihood estimate of a common factor of kernel and noise
    # (n,) float64 or None: for full stages with squared error: diagonal of the linear system, λ
    # divided by the weights
    noise: Floats | None = None
    # weight of a new observation; the variance of its noise is λ divided by this weight.  One if λ
    # was given, otherwise the weight that counts as one row.
    row_weight: float = 1.0
    # (c,) float64 or None: the units of several targets, in which their variances are equal
    sizes: Floats | None = None
    # (n_stages,) int64 or None: numbers of basis vectors of nested machines
    path: Ints | None = None
    n_iter: int | None = None  # total number of steps on all nested machines
    stage_kernels: StageKernels | None = None  # kernels of the stages, if the user listed kernels
    # by what rows are left out to compare variances with residuals, if not one by one
    dependence: Dependence | None = None
    # factor of the variances of each target, or of all: from the first call of ``variance`` or from
    # a model file
    residual_factor: list[float] = field(default_factory=list, compare=False)
    _variance: list[PosteriorVariance] = field(default_factory=list, repr=False, compare=False)

    def first(self, n_stages: int) -> KernelMachineSummary:
        """The summary of a model with the first stages."""
        path, kernels = self.path, self.stage_kernels
        return replace(
            self,
            path=None if path is None else path[:n_stages],
            stage_kernels=None if kernels is None else kernels.first(n_stages),
            residual_factor=[],
            _variance=[],
        )

    def variance(
        self, model: KernelExpansion, weights: Floats, X: Floats, team: ThreadTeam
    ) -> Floats:
        """Compute the variance (n, r) or (n, 1) of new observations, in units of the fit.

        It includes noise.  ``weights`` (m, r) is the sum over all full stages.  The variances agree
        with the residuals unless the user chose kernel and λ.
        """
        if not self._variance:
            self._variance[:] = [self._posterior(model, weights, team)]
        return self.amplitude * self._variance[0](np.asarray(X, dtype=np.float64), team)

    def fit_to_residuals(self, model: KernelExpansion, weights: Floats, team: ThreadTeam) -> None:
        """Compute the factor that a file keeps, if it is missing, and keep nothing else."""
        is_kept = is_approximate(len(model.basis)) or self.dependence is not None
        if self.amplitude != 1 and not self.residual_factor and is_kept:
            self._posterior(model, weights, team)

    def _posterior(
        self, model: KernelExpansion, weights: Floats, team: ThreadTeam
    ) -> PosteriorVariance:
        """The variances, with the factor that makes them agree with the residuals."""
        assert self.noise is not None
        assert self.regularization is not None
        noise = float(self.regularization) / self.row_weight
        if self.stage_kernels is not None:
            assert self.kernel is not None
            model = replace(model, kernel=self.kernel)
        found = PosteriorVariance.of(model, self.noise, noise, team)
        if self.residual_factor:
            found = replace(found, factors=np.array(self.residual_factor))
        elif self.amplitude != 1:
            own = weights if self.sizes is None else weights / self.sizes
            found = found.fitted_to_residuals(
                own, self.noise, self.amplitude, team, self.dependence
            )
        is_kept = found.prior is not None or self.dependence is not None
        if is_kept and self.amplitude != 1:
            self.residual_factor[:] = found.factors.tolist()
        return found
