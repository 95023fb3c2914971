"""Selection of the rows that become basis vectors of a sparse kernel machine.

The machine minimizes ``½ Σ_i w_i |y_i - f_i|² + ½ λ |f|²_H`` for m rows and D basis vectors.  An
integer weight is equivalent to repeating the row, except for ``random``.  Rows of weight zero are
never chosen.  Besides kernel values, ``forward`` costs O(m D (D + κ)), ``information_gain`` and
``rp_cholesky`` O(m D²), and ``random`` and ``residual`` O(m).

SY2006: Sun & Yao, *A gradient-based forward greedy algorithm for sparse Gaussian process
regression*, 2006.  SWL2003: Seeger, Williams & Lawrence, *Fast forward selection to speed up sparse
Gaussian process regression*, AISTATS 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, unknown_name
from hilboost.kernels import gram
from hilboost.kernels.base import Kernel

Rows = NDArray[np.intp]

DEPENDENT = 1e-12  # relative size of a squared norm that is only rounding error
_COARSE = 1e-6  # the same for kernels with large rounding errors
_ROWS_CHECKED = 256
KEPT_BYTES = 2**28  # of kernel values that the search may keep
MOST_ROWS_ALL_SCORED = 6000
_USELESS = 1e-14  # of the sum of squares: smaller gains are rounding errors
_ROWS_AT_ONCE = 256
_PIVOTS_AT_ONCE = 128
# Number of float64 arrays (m, D) that strategies hold; none by default.
COLUMNS_HELD = {"forward": 1, "information_gain": 2, "rp_cholesky": 1}


@dataclass(frozen=True)
class Problem:
    """The input of a selection strategy."""

    kernel: Kernel
    X: Floats  # (m, d) float64: candidate rows
    y: Floats  # (m, r) float64: what the machine will be fitted to
    weight: Floats  # (m,) float64: positive sample weights
    regularization: float  # λ, positive
    diagonal: Floats  # (m,) float64: ``k(x, x)``
    # (m,) float64: rounding error of the diagonal.  A smaller Schur complement counts as zero.
    rounding: Floats
    n_candidates: int | None  # κ of the greedy fit; ``None`` means all rows
    rows: Rows  # (m,) intp: their numbers in the table

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Floats,  # (n, d) float64
        y: Floats,  # (n, r) float64; scores are summed over the outputs
        weight: Floats | None,  # (n,) float64 or None: sample weights
        regularization: float,
        # Steps of the greedy fit that score all rows cost O(m²), and evaluate m² kernel values if m
        # is above about 5,800.
        n_candidates: int | None,
    ) -> Problem:
        """Measure the rounding error, and raise λ to that of the trace of ``K``.

        Rows with zero weight are left out, unless all weights are zero.
        """
        rows = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
        if len(rows) == 0:
            rows, weight = np.arange(len(X)), None
        X, y, weight = X[rows], y[rows], np.ones(len(rows)) if weight is None else weight[rows]
        diagonal = kernel.diag(X)
        # A kernel with a kink, such as Laplace, takes the root of the rounding error of a distance.
        few, size = X[:_ROWS_CHECKED], np.abs(diagonal)
        error = np.abs(gram.evaluate(kernel, few, few).diagonal() - diagonal[: len(few)]).max()
        rounding = np.clip(10 * error, DEPENDENT * size, _COARSE * size)
        level = max(regularization, DEPENDENT * float(weight @ size), np.finfo(float).tiny)
        return cls(kernel, X, y, weight, level, diagonal, rounding, n_candidates, rows)

    def columns(self, rows: Rows) -> Floats:
        """``k(x_i, X)`` of some rows, (c, m)."""
        return gram.evaluate(self.kernel, self.X[rows], self.X)


def squares(values: Floats) -> Floats:
    """Sum of squares over the outputs, (m,)."""
    return np.einsum("ij,ij->i", values, values)


class ForwardFit:
    """The exact machine on the basis so far, to which basis vectors are added one by one.

    Each of them adds a row to the Cholesky factor of ``H = K_D' W K_D + λ K_DD``.  The fitted
    values are recomputed from the weights, so that rounding errors do not accumulate in the
    residual.
    """

    def __init__(self, problem: Problem, n_basis: int) -> None:
        m, r = problem.y.shape
        self._problem = problem
        self._lengths = np.full(m, np.nan)  # k_i'Wk_i, computed on first use
        self._columns = np.empty((n_basis, m))
        self._factor = np.zeros((n_basis, n_basis))
        self._half = np.empty((n_basis, r))  # factor⁻¹ K_D' W y
        # Rows become candidates repeatedly: keeping all columns may save kernel values.
        n_scored = m if problem.n_candidates is None else problem.n_candidates * n_basis
        keep = n_scored >= m and 8 * m * m <= KEPT_BYTES
        self._kernel = problem.columns(np.arange(m)) if keep else None
        self.chosen: list[int] = []  # the basis so far, D rows
        self.alpha = np.empty((0, r))  # weights of the basis vectors, (D, r)
        self.fitted = np.zeros((m, r))

    def _column(self, rows: Rows) -> Floats:
        return self._problem.columns(rows) if self._kernel is None else self._kernel[rows]

    def gains(self, rows: Rows) -> Floats:
        """``Δ_i`` of SY2006, eq. (18), summed over outputs, (c,); cost O(c m) and c columns.

        With ``f = K_D α`` and ``k̃_i'α = f_i``, this is
        ``½ (k_i'W(y - f) - λ f_i)² / (λ k_ii + k_i'Wk_i)``.
        """
        problem = self._problem
        weighted_residual = problem.weight[:, None] * (problem.y - self.fitted)
        slopes = -problem.regularization * self.fitted[rows]
        new = np.isnan(self._lengths[rows])
        if self._kernel is not None and 2 * len(rows) > len(weighted_residual) and not new.any():
            slopes += (self._kernel @ weighted_residual)[rows]
        else:
            for some in gram.row_blocks(len(rows), _ROWS_AT_ONCE):
                columns = self._column(rows[some])
                slopes[some] += columns @ weighted_residual
                if new[some].any():
                    self._lengths[rows[some]] = (columns * columns) @ problem.weight
        curvature = problem.regularization * problem.diagonal[rows] + self._lengths[rows]
        gains = 0.5 * squares(slopes)
        return np.divide(gains, curvature, out=np.zeros(len(rows)), where=curvature > 0)

    def include(self, i: int) -> bool:
        """Add a row to the basis, unless it is linearly dependent on it; cost O(m D + D²)."""
        problem, t = self._problem, len(self.chosen)
        column = self._column(np.array([i]))[0]
        weighted = problem.weight * column
        border = self._columns[:t] @ weighted + problem.regularization * column[self.chosen]
        corner = float(column @ weighted + problem.regularization * problem.diagonal[i])
        row = array_api.solve_lower(self._factor[:t, :t], border) if t else border
        square = corner - float(row @ row)
        if not square > DEPENDENT * abs(corner):
            return False
        pivot = np.sqrt(square)
        self._columns[t] = column
        self._factor[t, :t], self._factor[t, t] = row, pivot
        self._half[t] = (weighted @ problem.y - row @ self._half[:t]) / pivot
        self.chosen.append(i)
        t += 1
        factor = self._factor[:t, :t]
        self.alpha = array_api.solve_lower(factor, self._half[:t].copy(), transposed=True)
        self.fitted = self._columns[:t].T @ self.alpha
        return True


def forward(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """The best of some candidates in each step.

    A row that yields no gain, or is linearly dependent on the basis, is not scored again.
    """
    least = _USELESS * 0.5 * float(problem.weight @ squares(problem.y))
    if least == 0:  # no row yields a gain
        return np.empty(0, dtype=np.intp)
    fit = ForwardFit(problem, n_basis)
    pool, size = np.arange(len(problem.X)), problem.n_candidates
    while len(fit.chosen) < n_basis and len(pool):
        some = size is not None and size < len(pool)
        tried = rng.choice(pool, size, replace=False) if some else pool
        gains = fit.gains(tried)
        ranked = tried[np.argsort(-gains, kind="stable")][: np.count_nonzero(gains > least)]
        n_tried = next((j + 1 for j, i in enumerate(ranked) if fit.include(int(i))), None)
        spent = tried if n_tried is None else ranked[:n_tried]
        pool = np.setdiff1d(pool, spent, assume_unique=True)
    return np.array(fit.chosen, dtype=np.intp)


def refuse_many_rows(m: int) -> None:
    """Refuse to score all rows if that takes m² kernel values a step."""
    if m > MOST_ROWS_ALL_SCORED:
        raise InvalidParameter(
            f"n_candidates=None scores all {m} rows for each basis vector, which requires {m}² "
            f"kernel values; set subset_size to at most {MOST_ROWS_ALL_SCORED}, or n_candidates to "
            "a number such as 59."
        )


class ProjectedPosterior:
    """A Gaussian process with the projected likelihood of SWL2003.

    An observation is of a row's projection on the basis instead of the row, with noise ``σ²/w_i``
    for ``σ² = λ``.  ``L L' = K_DD``, ``V = L⁻¹ K_D'``, ``Q Q' = σ² I + V W V'``, ``P = Q⁻¹ V``.
    """

    def __init__(self, problem: Problem, n_basis: int) -> None:
        m, r = problem.y.shape
        self._problem, self._size = problem, 0
        self._V, self._P = np.empty((n_basis, m)), np.empty((n_basis, m))
        self._Q = np.zeros((n_basis, n_basis))
        self._half = np.empty((n_basis, r))  # Q⁻¹ V W y
        self.mean = np.zeros((m, r))  # posterior mean ``μ``
        # ``q_i = w_i |p_i|²``: posterior variance of a projection, in units of the row's noise.
        self.leverage = np.zeros(m)
        # ``l_i² = k_ii - |v_i|²``: variance of a row given its projection, zero if rounding error.
        self.variance = np.maximum(problem.diagonal, 0.0)

    def scores(self) -> Floats:
        """``information_gain`` of every row, (m,)."""
        problem = self._problem
        precision = problem.weight / problem.regularization
        errors = problem.y - self.mean
        return information_gain(self.variance, self.leverage, errors, precision)

    def include(self, i: int) -> None:
        """Add a row of positive ``variance`` to the basis of D rows; cost O(m D + D²)."""
        problem, t, noise = self._problem, self._size, self._problem.regularization
        V, P = self._V[:t], self._P[:t]
        v = (problem.columns(np.array([i]))[0] - V[:, i] @ V) / np.sqrt(self.variance[i])
        weighted = problem.weight * v
        row = array_api.solve_lower(self._Q[:t, :t], V @ weighted) if t else np.empty(0)
        pivot = np.sqrt(max(noise + float(v @ weighted - row @ row), noise))
        p = (v - row @ P) / pivot
        self._V[t], self._P[t] = v, p
        self._Q[t, :t], self._Q[t, t] = row, pivot
        self._half[t] = (weighted @ problem.y - row @ self._half[:t]) / pivot
        self.mean += np.outer(p, self._half[t])
        self.leverage = np.minimum(self.leverage + problem.weight * p * p, 1.0)
        self.variance -= v * v
        self.variance[self.variance <= problem.rounding] = 0.0
        self.variance[i] = 0.0
        self._size += 1


def information_gain(
    variance: Floats, leverage: Floats, errors: Floats, precision: Floats
) -> Floats:
    """Information that the posterior gains if a row enters the basis, (m,), in nats.

    Let ``f = h + e`` with ``h`` the row's projection on the basis and ``e ~ N(0, l²)``.  The row's
    observation is of ``h`` now, and of ``f`` if the row is in the basis.  The gain is ``KL(new ||
    present)`` of the two posteriors; all other observations remain of their projections (SWL2003).
    With the row's noise ``σ²`` (``1/precision``), ``l²`` (``variance``), ``q`` (``leverage``), ``y
    - μ`` (``errors``), ``ξ = 1 / (σ²/l² + 1 - q)`` and ``κ = ξ (1 + 2 σ²/l²)``, it is ``-log(σ/l) -
    ½ (log ξ + ξ (1 - κ) (y - μ)²/σ² - κ + 2)``, summed over the outputs.  The code uses ``l²/σ²``,
    which may be zero.
    """
    ratio = variance * precision
    shrinkage = 1 / (1 + (1 - leverage) * ratio)
    spread = np.log1p((1 - leverage) * ratio) + (2 * leverage - 1) * ratio * shrinkage
    shift = ratio * (1 + leverage * ratio) * shrinkage**2 * precision * squares(errors)
    return 0.5 * (errors.shape[1] * spread + shift)


def by_information_gain(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """The row with the highest gain in each step."""
    posterior = ProjectedPosterior(problem, n_basis)
    chosen: list[int] = []
    for _ in range(n_basis):
        scores = np.where(posterior.variance > 0, posterior.scores(), 0.0)
        best = int(np.argmax(scores))
        if not scores[best] > 0:
            break
        chosen.append(best)
        posterior.include(best)
    return np.array(chosen, dtype=np.intp)


def random_rows(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Uniformly, without replacement."""
    return rng.permutation(len(problem.X))[:n_basis]


def by_residual(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Without replacement, in proportion to the weighted squares of the residual.

    Such draws are the rows with the largest ``log p + Gumbel noise``.
    """
    mass = problem.weight * squares(problem.y)
    with np.errstate(divide="ignore"):
        keys = np.log(mass) + rng.gumbel(size=len(mass))
    fitted = np.flatnonzero(mass == 0)  # these come last, in random order
    ranked = np.argsort(-keys, kind="stable")[: len(mass) - len(fitted)]
    return np.append(ranked, rng.permutation(fitted))[:n_basis]


def k_means(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """The rows nearest to the centers; equal rows are merged first, so that no cluster is empty."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import, and used here only
    from sklearn.metrics import pairwise_distances_argmin

    distinct, first, copies = np.unique(problem.X, axis=0, return_index=True, return_inverse=True)
    if len(first) <= n_basis:
        return first
    clusters = MiniBatchKMeans(n_basis, n_init=1, random_state=int(rng.integers(2**31)))
    clusters.fit(distinct, sample_weight=np.bincount(copies.ravel(), problem.weight))
    centers, free = clusters.cluster_centers_, np.arange(len(first))
    chosen: list[Rows] = []
    while len(centers):  # if a row is the nearest to several centers, one of them gets it
        nearest, owner = np.unique(
            pairwise_distances_argmin(centers, distinct[free]), return_index=True
        )
        chosen.append(free[nearest])
        free, centers = np.delete(free, nearest), np.delete(centers, owner, axis=0)
    return first[np.concatenate(chosen)]


def rp_cholesky(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Pivots drawn in proportion to the weighted diagonal of the Schur complement.

    Chen, Epperly, Tropp & Webber 2022 (arXiv 2207.06503), Algorithm 1, in the accelerated form of
    Epperly, Tropp & Webber 2024 (arXiv 2410.03969), which uses matrix products: pivots are proposed
    in blocks and accepted by rejection sampling.  They have the same distribution as in the
    sequential method.
    """
    X, kernel = problem.X, problem.kernel
    # (m,) diagonal of the Schur complement; zero for rows that are excluded
    left = np.maximum(problem.diagonal, 0.0)
    factor = np.empty((n_basis, len(X)))
    chosen: Rows = np.empty(0, dtype=np.intp)
    while (k := len(chosen)) < n_basis and (total := (mass := problem.weight * left).sum()) > 0:
        proposed = rng.choice(len(X), size=_PIVOTS_AT_ONCE, p=mass / total)
        above = factor[:k, proposed]
        schur = gram.evaluate(kernel, X[proposed], X[proposed]) - above.T @ above
        smallest = problem.rounding[proposed]
        kept, corner = _accept(schur, proposed, left[proposed], smallest, rng)
        if len(kept) == 0:  # the first is accepted, unless it is numerically dependent
            left[proposed[0]] = 0.0
            continue
        kept, corner = kept[: n_basis - k], corner[: n_basis - k, : n_basis - k]
        pivots, new = proposed[kept], factor[k : k + len(kept)]
        residual = problem.columns(pivots) - above[:, kept].T @ factor[:k]
        new[:] = array_api.solve_lower(corner, residual)
        left -= np.einsum("ij,ij->j", new, new)
        left[left <= problem.rounding] = 0.0
        left[pivots] = 0.0
        chosen = np.append(chosen, pivots)
    return chosen


def _accept(
    schur: Floats, proposed: Rows, before: Floats, smallest: Floats, rng: np.random.Generator
) -> tuple[Rows, Floats]:
    """Which proposals (b,) become pivots, and the Cholesky factor of their block of ``schur``.

    ``schur`` (b, b) is overwritten; ``before`` (b,) is the diagonal that they were drawn by, and
    ``smallest`` (b,) its rounding error.
    """
    bounds = np.maximum(rng.random(len(schur)) * before, smallest)
    bounds[0] = smallest[0]
    factor = np.zeros_like(schur)
    kept: list[int] = []
    taken: set[int] = set()
    for j in range(len(schur)):
        if schur[j, j] > bounds[j] and proposed[j] not in taken:
            column = schur[j:, j] / np.sqrt(schur[j, j])
            schur[j:, j:] -= np.outer(column, column)
            factor[j:, len(kept)] = column
            kept.append(j)
            taken.add(proposed[j])
    return np.array(kept, dtype=np.intp), factor[kept, : len(kept)]


_STRATEGIES: dict[str, Callable[[Problem, int, np.random.Generator], Rows]] = {
    "forward": forward,
    "information_gain": by_information_gain,
    "k_means": k_means,
    "random": random_rows,
    "residual": by_residual,
    "rp_cholesky": rp_cholesky,
}

SELECTIONS: tuple[str, ...] = tuple(sorted(_STRATEGIES))
"""Names of the strategies."""


def select(
    name: str,  # one of ``SELECTIONS``
    problem: Problem,
    n_basis: int,
    rng: np.random.Generator,
) -> Rows:
    """Choose at most ``n_basis`` distinct basis vectors among the rows, in the order of choice.

    Fewer if fewer rows are useful: the others are equal, yield no gain, or the kernel has a low
    rank.  Memory in float64 numbers for m rows and D basis vectors: m D for ``rp_cholesky`` and
    ``forward``, 2 m D for ``information_gain``; in addition, ``forward`` keeps up to 256 MiB of
    kernel values.
    """
    if name not in _STRATEGIES:
        raise unknown_name("selection", name, SELECTIONS)
    n_basis = max(1, min(n_basis, len(problem.X)))
    chosen = _STRATEGIES[name](problem, n_basis, rng)
    return problem.rows[chosen if len(chosen) else random_rows(problem, 1, rng)]
