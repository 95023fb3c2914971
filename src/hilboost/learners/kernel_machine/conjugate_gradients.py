"""Conjugate gradients, and a preconditioner from the Nyström approximation of a Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api, lapack
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.exchange import Exchange
from hilboost.kernels.gram import Gram, OrderFreeSum, evaluate, row_blocks
from hilboost.kernels.symmetric import SymmetricGram

_SAME_RESIDUAL = 1e-3  # relative difference
_ROWS = 512  # that one thread takes at a time
_JITTER = 1e-6
# Above this ratio of the largest eigenvalue to λ, single precision rounds λ away.
_SINGLE_PRECISION_RATIO = 1e6


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of a search, from which the next one continues; arrays are in C order."""

    in_files: ClassVar[bool] = True

    direction: Floats | None  # (n, r) or None: the last direction; ``None`` if there was no step
    # (r,) or None: ``r'z`` of the last step, for its residual ``r`` and preconditioned residual
    # ``z``
    size: Floats | None
    residual: Floats  # (n, r): what is left of the right-hand side

    @classmethod
    def of(cls, direction: Array | None, size: Array | None, residual: Array) -> Progress:
        """Copy the arrays from their device."""
        if direction is None or size is None:
            return cls(None, None, array_api.to_numpy(residual))
        return cls(*(array_api.to_numpy(array) for array in (direction, size, residual)))

    def continued(self, b: Array) -> tuple[Array, Array] | None:
        """The direction and size, if a right-hand side is what this search left."""
        left = b - array_api.like(self.residual, b)
        if self.direction is None or self.size is None:
            return None
        if largest_norm(left) > _SAME_RESIDUAL * largest_norm(b):
            return None
        return array_api.like(self.direction, b), array_api.like(self.size, b)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The sum of some steps, and the state after them."""

    x: Array  # (n, r): their sum
    Sx: Array  # (n, r): what they take from the residual
    left: float  # largest column norm of the residual that is left
    progress: Progress


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """Conjugate gradients for ``S x = b``, several right-hand sides in parallel.

    Fletcher & Reeves (1964).  A search that continues from the progress of another one is equal to
    one longer search.
    """

    system: Callable[[Array], Array]  # (n, r) -> (n, r): ``S``, symmetric positive definite
    precondition: Callable[[Array], Array]  # (n, r) -> (n, r): about ``S⁻¹``

    def run(
        self, b: Array, iterations: int, tolerance: float, progress: Progress | None = None
    ) -> SearchResult:
        """Search from zero, with directions conjugate to an earlier search's directions.

        ``b`` (n, r) is the present residual, and the search ends when the norm of each of its
        columns is at most the tolerance.  An earlier search is ignored if it did not leave ``b``.
        """
        xp = array_api.namespace(b)
        x, taken = b * 0.0, b * 0.0
        r = b + 0.0
        p, size = (progress and progress.continued(b)) or (None, None)
        for _ in range(iterations):
            if largest_norm(r) <= tolerance:
                break
            z = self.precondition(r)
            new = xp.sum(r * z, axis=0)
            beta = xp.zeros_like(new) if size is None else new / _nonzero(size)
            p = z if p is None else z + beta * p
            Sp = self.system(p)
            curvature = xp.sum(p * Sp, axis=0)
            # Rounding may leave a direction without curvature: such a column has converged.
            step = xp.where((curvature > 0) & (new > 0), new / _nonzero(curvature), 0.0)
            if not float(xp.max(step)) > 0:
                break
            x += step * p
            taken += step * Sp
            r = b - taken
            size = new
        return SearchResult(x, taken, largest_norm(r), Progress.of(p, size, r))


def largest_norm(array: Array) -> float:
    """Norm of the largest column."""
    xp = array_api.namespace(array)
    return float(xp.max(xp.sqrt(xp.sum(array * array, axis=0))))


def _nonzero(array: Array) -> Array:
    xp = array_api.namespace(array)
    return xp.where(array == 0, 1.0, array)


def solve_rows(factor: Array, blocks: Sequence[Array], team: ThreadTeam) -> None:
    """``rows L⁻ᵀ`` in place, for a lower factor (m, m) and blocks of rows, which threads share."""
    if array_api.namespace(factor) is np:
        pieces = [rows[some] for rows in blocks for some in row_blocks(len(rows), _ROWS)]
        team.map(lambda rows: lapack.divide(rows, factor), pieces)
        return
    for rows in blocks:
        rows[...] = array_api.solve_lower(factor, rows.T).T


@dataclass(frozen=True, eq=False)
class Features:
    """A matrix ``Q`` (n, m) in blocks of rows; each of several workers has some of the blocks.

    Sums over rows do not depend on their order, so that all workers find the sums of one process.
    """

    n_rows: int
    blocks: list[tuple[slice, Array]]  # list of (slice, array): the rows that are here
    bound: float  # bound of the entries
    team: ThreadTeam
    exchange: Exchange | None = None  # ``None`` if all rows are here

    @property
    def precision(self) -> str:
        """Dtype of the entries."""
        return array_api.precision(self.blocks[0][1])

    def gram(self, weight: Array | None) -> Array:
        """``Q'WQ`` (m, m) for weights (n, 1), float64."""
        heaviest = 1.0 if weight is None else float(np.abs(array_api.to_numpy(weight)).max())

        def product(rows: slice, Q: Array) -> Array:
            if weight is None:
                return array_api.square(Q, self.team)
            weighted = Q * array_api.cast(weight[rows], self.precision)
            M = array_api.product(Q.T, weighted, self.team)
            return (M + M.T) / 2

        m = self.blocks[0][1].shape[1]
        terms = (product(rows, Q) for rows, Q in self.blocks)
        return self._summed(terms, (m, m), self.bound**2 * heaviest)

    def transposed_times(self, R: Array) -> Array:
        """``Q'R`` (m, r) for ``R`` (n, r), float64."""
        short = array_api.cast(R, self.precision)
        shape = self.blocks[0][1].shape[1], R.shape[1]
        largest = float(np.abs(array_api.to_numpy(R)).max(initial=0.0))

        def product(block: tuple[slice, Array]) -> Array:
            rows, Q = block
            return Q.T @ short[rows]

        return self._summed(self._map(product), shape, self.bound * largest)

    def times(self, V: Array) -> Array:
        """``Q V`` (n, r) for ``V`` (m, r), float64."""
        short = array_api.cast(V, self.precision)
        xp = array_api.namespace(V)
        products = self._map(lambda block: block[1] @ short)
        found = xp.concat([array_api.cast(values, "float64") for values in products])
        if self.exchange is None:
            return found
        return array_api.like(self.exchange.gathered(array_api.to_numpy(found)), V, "float64")

    def _map(self, function: Callable[[tuple[slice, Array]], Array]) -> list[Array]:
        """Results for the blocks, which threads share on the processor."""
        on_host = array_api.namespace(self.blocks[0][1]) is np
        return self.team.map(function, self.blocks) if on_host else [*map(function, self.blocks)]

    def _summed(self, terms: Iterable[Array], shape: tuple[int, int], bound: float) -> Array:
        n = self.n_rows
        total = OrderFreeSum(shape, self.blocks[0][1], n * bound, n)
        for term in terms:
            total.add(array_api.cast(term, "float64"))
        return total.total(self.exchange)


@dataclass
class Nystroem:
    """``(Q Q' + D)⁻¹`` for a low-rank ``Q Q' ≈ K`` and a positive diagonal ``D``."""

    Q: Features
    D: Floats  # (n,) float64: diagonal
    _factor: Array = field(init=False, repr=False)
    _inverse: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        inverse = np.broadcast_to(1 / np.asarray(self.D, dtype=np.float64), (self.Q.n_rows,))
        self._inverse = array_api.like(inverse, self.Q.blocks[0][1], "float64")[:, None]
        if (inverse == inverse[0]).all():
            M = self.Q.gram(None) * float(inverse[0])
        else:
            M = self.Q.gram(self._inverse)
        self._factor = array_api.cholesky(array_api.add_to_diagonal(M, 1.0), team=self.Q.team)

    def coefficients(self, R: Array) -> Array:
        """``(Q'D⁻¹Q + I)⁻¹ Q'D⁻¹R``, (m, r): ridge regression on the columns of ``Q``."""
        inner = self.Q.transposed_times(R * self._inverse)
        return array_api.solve_cholesky(self._factor, inner)

    def __call__(self, R: Array) -> Array:
        """``(Q Q' + D)⁻¹ R`` for ``R`` (n, r), by the Woodbury identity."""
        return (R - self.Q.times(self.coefficients(R))) * self._inverse


def nystroem_factor(
    gram: SymmetricGram, landmarks: Ints, smallest: float
) -> tuple[Features, Array]:
    """``Q = K_nm L⁻ᵀ`` (n, m) and a factor ``L L' = K_mm``, so that ``Q Q' = K_nm K_mm⁻¹ K_mn``.

    ``Q`` is float64 if the smallest entry of the diagonal that will be added is tiny relative to
    the largest eigenvalue.
    """
    points = gram.A[landmarks]
    double_points = array_api.cast(points, "float64")
    K_mm = evaluate(gram.kernel, double_points, double_points)
    n, m, xp = gram.A.shape[0], len(landmarks), array_api.namespace(K_mm)
    largest = float(xp.max(xp.sum(K_mm, axis=1))) * n / m
    double = largest > _SINGLE_PRECISION_RATIO * smallest
    name = "float64" if double else gram.precision
    factor = array_api.cholesky(K_mm, min(_JITTER, smallest), team=gram.team)
    A = array_api.cast(gram.A, name)
    rows = Gram(gram.kernel, A, array_api.cast(points, name), np.inf, gram.team, gram.exchange)
    Q = rows.whole()
    blocks = [(own, Q[own]) for own in rows.own_blocks] or [(slice(0, 0), Q[:0])]
    solve_rows(array_api.cast(factor, name), [block for _, block in blocks], gram.team)
    # The row of Q has at most the length of the point: |Q_i|² <= k(x_i, x_i).
    return Features(n, blocks, math.sqrt(rows.largest), gram.team, gram.exchange), factor
