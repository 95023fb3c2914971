"""Predictive variance of a kernel machine as a Gaussian process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.kernels.gram import Gram, evaluate, row_blocks
from hilboost.learners.kernel_machine.expansion import KernelExpansion

_EXACT_UP_TO = 5000
_LANDMARKS = 2000
_ROWS_AT_ONCE = 256
_JUDGED, _JUDGED_AT_ONCE, _NEIGHBORS = 150, 50, 1000


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
    # of all variances, so that they agree with the residuals of a sample of training rows
    factor: float = 1.0

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
        """Compute the variance (n,) of new observations, including noise."""
        scaled = self.model.inputs(X)
        kernel = self.model.kernel
        variance = array_api.to_numpy(kernel.diag(scaled)).copy()

        def explain(rows: slice) -> None:
            k = evaluate(kernel, self.landmarks, scaled[rows])
            if self.prior is None:
                variance[rows] -= (array_api.solve_lower(self.posterior, k) ** 2).sum(axis=0)
            else:
                variance[rows] -= (array_api.solve_lower(self.prior, k.copy()) ** 2).sum(axis=0)
                np.maximum(variance[rows], 0.0, out=variance[rows])
                variance[rows] += (array_api.solve_lower(self.posterior, k) ** 2).sum(axis=0)

        team.map(explain, row_blocks(len(scaled), _ROWS_AT_ONCE))
        return self.factor * (np.maximum(variance, 0.0) + self.noise)

    def fitted_to_residuals(
        self, weights: Floats, D: Floats, amplitude: float, team: ThreadTeam
    ) -> PosteriorVariance:
        """Multiply the variances by the mean squared z-score of 150 rows that are left out.

        The residual of a row that is left out is its weight in the expansion times the variance of
        this row given the others (Rasmussen & Williams 2006, eq. 5.12).  Its 1,000 nearest
        neighbors stand for the others, unless the landmarks explain more.  ``weights`` (n, r) solve
        the linear system with the diagonal ``D`` (n,), and ``amplitude`` is the common factor of
        all variances so far.
        """
        if self.prior is None:
            return self
        X, kernel = self.model.basis.astype(np.float64), self.model.kernel
        others = np.setdiff1d(np.arange(len(X)), _landmark_rows(len(X)))
        rows = others[:: max(1, len(others) // _JUDGED)][:_JUDGED]
        by_landmarks = self._left_out(X[rows], D[rows], team)
        diagonal = array_api.to_numpy(kernel.diag(X))

        def unexplained(one: tuple[int, NDArray[np.intp]]) -> float:
            row, near = one
            values = evaluate(kernel, X[near], X[[row, *near]])
            factor = array_api.cholesky(array_api.add_to_diagonal(values[:, 1:].copy(), D[near]))
            explained = array_api.solve_lower(factor, values[:, 0].copy())
            return max(diagonal[row] - float(explained @ explained), 0.0)

        neighbors = self._neighbors(X, rows, team)
        exact = np.array(team.map(unexplained, zip(rows, neighbors, strict=True)))
        variance = np.minimum(exact, by_landmarks) + D[rows]
        squares = (weights[rows] ** 2).mean(axis=1) * variance**2 / (by_landmarks + D[rows])
        found = float(squares.mean()) / amplitude
        return replace(self, factor=found) if 0 < found < np.inf else self

    def _left_out(self, X: Floats, D: Floats, team: ThreadTeam) -> Floats:
        """Variance (m,) of the function at training rows (m, d), given the landmarks and others."""
        assert self.prior is not None
        k = evaluate(self.model.kernel, self.landmarks, X, team)
        prior = (array_api.solve_lower(self.prior, k.copy()) ** 2).sum(axis=0)
        posterior = (array_api.solve_lower(self.posterior, k) ** 2).sum(axis=0)
        unexplained = array_api.to_numpy(self.model.kernel.diag(X)) - prior
        return np.maximum(unexplained, 0.0) + posterior / np.maximum(1 - posterior / D, 1e-12)

    def _neighbors(self, X: Floats, rows: Ints, team: ThreadTeam) -> Iterator[NDArray[np.intp]]:
        """The rows with the largest correlations, for each of ``rows``, without itself."""
        diagonal = np.maximum(array_api.to_numpy(self.model.kernel.diag(X)), 1e-300)
        for block in row_blocks(len(rows), _JUDGED_AT_ONCE):
            k = evaluate(self.model.kernel, X[rows[block]], X, team) ** 2 / diagonal
            k[np.arange(len(k)), rows[block]] = -1.0
            yield from np.argpartition(k, -_NEIGHBORS, axis=1)[:, -_NEIGHBORS:]


def is_approximate(n: int) -> bool:
    """Whether the variances of a machine with this number of rows are approximations."""
    return n > _EXACT_UP_TO


def _landmark_rows(n: int) -> Ints:
    return np.sort(np.random.default_rng(0).choice(n, _LANDMARKS, replace=False))
