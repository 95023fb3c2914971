"""Predictive variance of a kernel machine as a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels.gram import Gram, evaluate, row_blocks
from hilboost.learners.kernel_machine.expansion import KernelExpansion

_EXACT_UP_TO = 5000
_LANDMARKS = 2000
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class PosteriorVariance:
    """Variance of new observations, for a machine whose basis vectors are all training rows.

    Attributes
    ----------
    model : KernelExpansion
    landmarks : (m, d) float64
        All rows if there are at most 5,000, otherwise 2,000 random rows.
    prior : (m, m) float64 or None
        Cholesky factor of ``K_mm``; ``None`` if all rows are landmarks.
    posterior : (m, m) float64
        Cholesky factor of ``K_mm + K_mn D⁻¹ K_nm``, or of ``K + D`` if all rows are landmarks.
    noise : float
        Noise variance of a new observation.

    Notes
    -----
    With all rows, the variance is exact (Rasmussen & Williams 2006, eq. 2.26).  With fewer, it is
    the projected process approximation plus the prior variance that the landmarks do not explain
    (Snelson & Ghahramani 2006), which does not underestimate the variance far from the data.
    """

    model: KernelExpansion
    landmarks: Floats
    prior: Floats | None
    posterior: Floats
    noise: float

    @classmethod
    def of(
        cls, model: KernelExpansion, D: Floats, noise: float, team: ThreadTeam, seed: int = 0
    ) -> PosteriorVariance:
        """Create it from an expansion in all training rows and the diagonal (n,) of its system.

        Cost O(n³) up to 5,000 rows, and O(n m²) above.
        """
        X = model.basis.astype(np.float64)
        n = len(X)
        kernel = model.kernel
        if n <= _EXACT_UP_TO:
            K = evaluate(kernel, X, X, team)
            factor = dense.cholesky(dense.add_to_diagonal(K, D))
            return cls(model, X, None, factor, noise)
        rows = np.sort(np.random.default_rng(seed).choice(n, _LANDMARKS, replace=False))
        landmarks = X[rows]
        K_mm = evaluate(kernel, landmarks, landmarks, team)
        gram = Gram(kernel, model.basis, model.basis[rows], 0.0, team)
        total, _ = gram.sums(1.0 / D, None)
        posterior = dense.cholesky(total + K_mm, 1e-10)
        return cls(model, landmarks, dense.cholesky(K_mm, 1e-10), posterior, noise)

    def __call__(self, X: Floats, team: ThreadTeam) -> Floats:
        """Compute the variance (n,) of new observations, including noise."""
        scaled = self.model.inputs(X)
        kernel = self.model.kernel
        variance = dense.to_numpy(kernel.diag(scaled)).copy()
        for rows in row_blocks(len(scaled), _ROWS_AT_ONCE):
            k = evaluate(kernel, self.landmarks, scaled[rows], team)
            if self.prior is None:
                variance[rows] -= (dense.solve_lower(self.posterior, k) ** 2).sum(axis=0)
            else:
                variance[rows] -= (dense.solve_lower(self.prior, k.copy()) ** 2).sum(axis=0)
                np.maximum(variance[rows], 0.0, out=variance[rows])
                variance[rows] += (dense.solve_lower(self.posterior, k) ** 2).sum(axis=0)
        return np.maximum(variance, 0.0) + self.noise
