"""Linear systems of kernel machines with a learned metric: all rows as centers, or some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hilboost.backends import array_api, lapack
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate, row_blocks
from hilboost.learners.kernel_machine.feature_map import FeatureMap
from hilboost.learners.kernel_machine.tuning.metric import KERNEL, SMALLEST_RIDGE, precision_of
from hilboost.learners.kernel_machine.tuning.scoring import Rows, unit_of, while_better

_SMALLER_RIDGES = (0.3, 0.1, 0.03)
_BETTER = 0.998  # a smaller ridge must decrease the error by this factor
_ROWS_OF_BLOCK = 128
_SMALL_RIDGE = 1e-4
_JITTER = 1e-13  # share of the mean diagonal


@dataclass(frozen=True)
class System:
    """The kernel values between rows, which are all centers, and their targets and weights."""

    K: NDArray[Any]  # (m, m) float64
    target: Floats  # (m, r) float64
    weight: Floats  # (m,) float64
    # factors matrices; the results do not depend on it
    team: ThreadTeam = field(default_factory=ThreadTeam)

    @classmethod
    def of(
        cls, centers: NDArray[Any], rows: Rows, team: ThreadTeam, kernel: Kernel = KERNEL
    ) -> System:
        """Evaluate the kernel values in float64: small ridges need them."""
        Z = centers.astype(np.float64)
        return cls(evaluate(kernel, Z, Z, team), rows.Y, rows.weight, team)

    def solved(self, rows: NDArray[Any], ridge: float, dtype: DTypeLike = np.float64) -> Floats:
        """Return weights (m, r), zero except for ``rows``."""

        def shifted() -> NDArray[Any]:
            A = np.empty((len(rows), len(rows)), dtype)

            def copy(block: slice) -> None:
                """Up to the diagonal, as a Cholesky factor reads no more."""
                A[block, : block.stop] = self.K[rows[block, None], rows[: block.stop]]

            self.team.map(copy, row_blocks(len(rows), _ROWS_OF_BLOCK))
            return array_api.add_to_diagonal(A, (ridge / self.weight[rows]).astype(dtype))

        factor = array_api.cholesky(shifted(), _JITTER, again=shifted, team=self.team)
        weights, unit = np.zeros_like(self.target), unit_of(self.target[rows])
        right = (self.target[rows] / unit).astype(dtype)
        weights[rows] = array_api.solve_cholesky(factor, right)
        return weights * unit

    def judged_by(self, held: NDArray[np.integer[Any]]) -> JudgedSystem:
        """Hold out some rows, which judge fits to the others."""
        learned = np.setdiff1d(np.arange(len(self.K)), held, assume_unique=True)
        return JudgedSystem(self, learned, held)


@dataclass(frozen=True)
class JudgedSystem:
    """Fits to some rows of a system, in single precision if it suffices, judged by the others."""

    system: System
    learned: NDArray[np.integer[Any]]
    held: NDArray[np.integer[Any]]
    _fits: dict[float, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    def fit(self, ridge: float) -> Floats:
        """Return weights (m, r); each fit is computed once."""
        if ridge not in self._fits:
            dtype = precision_of(ridge / self.system.weight[self.learned])
            self._fits[ridge] = self.system.solved(self.learned, ridge, dtype)
        return self._fits[ridge]

    def better_ridge(self, ridge: float) -> tuple[float, float]:
        """Compare the ridge with smaller ones, as more rows need less; also return the error."""
        return _better_ridge(ridge, lambda ridge: self._error(self.fit(ridge)))

    def error_of_centers(self, ridge: float, share: int) -> float:
        """Error of a fit with one in ``share`` of the rows that are learned from as a center."""
        system, learned = self.system, self.learned
        centers, weight = learned[::share], system.weight[learned]
        root = np.sqrt(weight)[:, None]
        K = system.K[learned[:, None], centers] * root

        def shifted() -> Floats:
            squares: Floats = array_api.square(K, system.team)
            return squares + ridge * system.K[centers[:, None], centers]

        factor = array_api.cholesky(shifted(), _JITTER, again=shifted, team=system.team)
        moments = K.T @ (root * system.target[learned])
        weights = np.zeros_like(system.target)
        weights[centers] = array_api.solve_cholesky(factor, moments)
        return self._error(weights)

    def outputs(self, ridge: float) -> Floats:
        """Outputs for the rows that are held out."""
        return self.system.K[self.held] @ self.fit(ridge)

    def _error(self, weights: Floats) -> float:
        system, held = self.system, self.held
        residual = system.target[held] - system.K[held] @ weights
        return float(np.average((residual**2).sum(axis=1), weights=system.weight[held]))


@dataclass(frozen=True)
class _Sums:
    """Sums over the rows of one part."""

    products: Floats  # (m, m) float64: ``Kᵀ W K``; only the lower triangle is used
    moments: Floats  # (m, r) float64: ``Kᵀ W Y``
    squares: float  # ``Σ w |y|²``

    def error(self, weights: Floats) -> float:
        """Sum of the squared residuals of the rows."""
        symmetric = lapack.symmetric_product(self.products.T, weights, lower=False)
        return self.squares + float((weights * (symmetric - 2 * self.moments)).sum())


@dataclass(frozen=True)
class NormalEquations:
    """Least squares on all rows, with the kernel functions of some of them as a basis.

    The coefficients ``a`` minimize ``Σ w_i |y_i - k_i a|² + λ aᵀ K a``, with the same ``λ``
    as if all rows were centers (Smola & Schölkopf 2000, Eq. 6; Rudi, Carratino & Rosasco 2017).
    The sums are kept for each part of the rows, so that parts can be left out.

    Rounding errors of the products hide small ridges.  For these, the basis is ``L⁻¹ k_i``, with
    ``K = L Lᵀ``, so that the penalty is ``λ |Lᵀ a|²``.
    """

    penalty: Floats  # (m, m) float64: kernel values between the centers, or the identity
    parts: tuple[_Sums, ...]
    root: Floats | None = None  # (m, m) float64: ``L``, for small ridges
    kernel: Kernel = KERNEL
    # factors matrices; the results do not depend on it
    team: ThreadTeam = field(default_factory=ThreadTeam)
    _fits: dict[tuple[int | None, float], Floats] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        features: FeatureMap,
        centers: NDArray[Any],  # (m, q) float32 or float64
        table: Rows,
        parts: Sequence[NDArray[Any]],  # the rows of each part
        team: ThreadTeam,
        kernel: Kernel = KERNEL,
        ridge: float = 1.0,  # about the one of the fits
    ) -> NormalEquations:
        """Sum over the rows (n m² operations, or 2 n m² for small ridges), part by part."""
        Z, root = centers.astype(np.float64), None
        values = partial(evaluate, kernel, Z, Z, team)
        penalty = values()
        if ridge < _SMALL_RIDGE:
            root = array_api.cholesky(penalty, _JITTER, again=values, team=team)
            penalty = np.eye(len(Z))

        def sums(rows: NDArray[Any]) -> _Sums:
            return _summed(kernel, features, Z, table.part(rows), root, team)

        return cls(penalty, tuple(team.map(sums, parts)), root, kernel, team)

    def with_rows(self, features: FeatureMap, centers: NDArray[Any], rows: Rows) -> NormalEquations:
        """Return the equations with further rows, as another part."""
        Z = centers.astype(np.float64)
        more = _summed(self.kernel, features, Z, rows, self.root, self.team)
        return replace(self, parts=(*self.parts, more))

    def solved(self, left_out: int | None, ridge: float) -> Floats:
        """Return the coefficients (m, r), without the rows of one part."""
        found = self._fit(left_out, ridge)
        if self.root is None:
            return found
        return array_api.solve_lower(self.root, found.copy(), transposed=True)

    def _fit(self, left_out: int | None, ridge: float) -> Floats:
        """Return the coefficients in the basis; each fit is computed once."""
        key = left_out, ridge
        if key not in self._fits:
            self._fits[key] = self._computed(left_out, ridge)
        return self._fits[key]

    def better_ridge(self, ridge: float) -> float:
        """Compare the ridge with smaller ones on the first part."""
        return _better_ridge(ridge, lambda ridge: self.parts[0].error(self._fit(0, ridge)))[0]

    def _computed(self, left_out: int | None, ridge: float) -> Floats:
        used = [part for k, part in enumerate(self.parts) if k != left_out]

        def summed() -> Floats:
            A = np.empty_like(self.penalty)

            def add(rows: slice) -> None:
                """Up to the diagonal, as in the products."""
                total = ridge * self.penalty[rows, : rows.stop]
                for part in used:
                    total += part.products[rows, : rows.stop]
                A[rows, : rows.stop] = total

            self.team.map(add, row_blocks(len(A), _ROWS_OF_BLOCK))
            return A

        factor = array_api.cholesky(summed(), _JITTER, again=summed, team=self.team)
        return array_api.solve_cholesky(factor, np.sum([part.moments for part in used], axis=0))


def _summed(
    kernel: Kernel,
    features: FeatureMap,
    centers: Floats,
    rows: Rows,
    lower: Floats | None,  # ``L``
    team: ThreadTeam,
) -> _Sums:
    m, root = len(centers), np.sqrt(rows.weight)[:, None]
    products = np.zeros((m, m))
    Y = rows.Y * root
    moments = np.zeros((m, Y.shape[1]))
    for block in row_blocks(len(rows)):
        K = evaluate(kernel, features(rows.X[block]), centers, team)

        def weigh(part: slice, K: Floats = K, block: slice = block) -> None:
            if lower is not None:
                lapack.divide(K[part], lower)
            K[part] *= root[block][part]

        team.map(weigh, row_blocks(len(K), _ROWS_OF_BLOCK))
        lapack.add_products(K, products, team)
        moments += array_api.product(K.T, Y[block], team)
    return _Sums(products, moments, float((Y**2).sum()))


def _better_ridge(ridge: float, error: Callable[[float], float]) -> tuple[float, float]:
    """Return the ridge, or a smaller one with a smaller error, and its error."""

    def tried(ridge: float) -> tuple[float, float]:
        return ridge, error(ridge)

    smaller = [ridge * by for by in _SMALLER_RIDGES if ridge * by >= SMALLEST_RIDGE]
    return while_better(tried(ridge), (smaller,), tried, _BETTER, itemgetter(1))
