"""Which rows become the basis vectors of a sparse kernel machine.

=================  ========================================================  ====================
name               how                                                       cost besides kernels
=================  ========================================================  ====================
forward            greedy, best gain in the objective (SY2006, eq. 18)       O(m D (D + κ))
information_gain   greedy, most learned about the function (SWL2003)          O(m D²)
k_means            rows nearest to the centers of mini-batch k-means         one k-means
random             uniform                                                   O(m)
residual           without replacement, in proportion to weighted squares    O(m r)
rp_cholesky        randomly pivoted Cholesky, Chen et al. 2022               O(m D²), products
=================  ========================================================  ====================

The machine minimizes ``½ Σ_i w_i |y_i - f_i|² + ½ λ |f|²_H``.  In scores and draws other
than ``random``, a row of integer weight counts like so many copies of it; a row of weight zero is
never chosen.

SY2006: Sun & Yao, *A gradient-based forward greedy algorithm for sparse Gaussian process
regression*, 2006.  SWL2003: Seeger, Williams & Lawrence, *Fast forward selection to speed up sparse
Gaussian process regression*, AISTATS 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, unknown_name
from hilboost.kernels import gram
from hilboost.kernels.base import Kernel

Rows = NDArray[np.intp]

_DEPENDENT = 1e-12  # of a squared norm: what is left of it is rounding
_COARSE = 1e-6  # the same for kernels that round badly
_USELESS = 1e-14  # of the sum of squares: smaller gains are rounding
_KEPT_BYTES = 2**28  # of kernel values that the greedy search may keep
_ROWS_AT_ONCE = 256
_PIVOTS_AT_ONCE = 128


@dataclass(frozen=True)
class Problem:
    """What a strategy sees."""

    kernel: Kernel
    X: Floats  # (m, d)
    y: Floats  # (m, r), what is to be fitted
    weight: Floats  # (m,), positive
    regularization: float  # λ, positive
    diagonal: Floats  # (m,), k(x, x)
    rounding: Floats  # (m,), what may be left of the diagonal where nothing should be
    n_candidates: int | None  # κ of the greedy fit; None is every row

    def columns(self, rows: Rows) -> Floats:
        """``k(x_i, X)`` of some rows, (c, m)."""
        return gram.evaluate(self.kernel, self.X[rows], self.X)


def select(
    name: str,
    kernel: Kernel,
    X: Floats,
    residual: Floats,
    weight: Floats | None,
    regularization: float,
    n_basis: int,
    rng: np.random.Generator,
    n_candidates: int | None = 59,
) -> Rows:
    """Choose basis vectors among the rows.

    Parameters
    ----------
    name : str
        One of ``SELECTIONS``.
    kernel : Kernel
    X : (m, d) float64
    residual : (m, r) float64
        What the machine will be fitted to; scores are summed over the outputs.
    weight : (m,) float64 or None
        Sample weights; ``None`` is one for every row.
    regularization : float
        λ; raised to the rounding error of the kernel's trace where it is smaller.
    n_basis : int
    rng : Generator
    n_candidates : int or None
        κ: how many rows drawn at random ``forward`` scores at each step; ``None`` scores all,
        O(m²) a step, and evaluates m² kernel values a step where m is above about 5,800.

    Returns
    -------
    (D,) intp
        Distinct row numbers in the order of choice, 1 <= D <= n_basis.  D < n_basis where fewer
        rows are of use: copies of each other, no gain, a kernel of low rank.

    Raises
    ------
    InvalidParameter
        No strategy has this name.

    Notes
    -----
    Memory in float64 numbers: m D for ``rp_cholesky`` and ``forward``, 2 m D for
    ``information_gain``; ``forward`` keeps kernel values besides, up to 256 MiB.
    """
    if name not in _STRATEGIES:
        raise unknown_name("selection", name, SELECTIONS)
    rows = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
    if len(rows) == 0:  # all weights are zero: any row will do
        rows, weight = np.arange(len(X)), None
    X, y = X[rows], residual[rows]
    mass = np.ones(len(rows)) if weight is None else weight[rows]
    diagonal = kernel.diag(X)
    # A kernel with a kink, such as Laplace, turns the rounding of a distance into its root.
    few, size = X[:_ROWS_AT_ONCE], np.abs(diagonal)
    error = np.abs(gram.evaluate(kernel, few, few).diagonal() - diagonal[: len(few)]).max()
    rounding = np.clip(10 * error, _DEPENDENT * size, _COARSE * size)
    level = max(regularization, _DEPENDENT * float(mass @ size), np.finfo(float).tiny)
    problem = Problem(kernel, X, y, mass, level, diagonal, rounding, n_candidates)
    n_basis = max(1, min(n_basis, len(rows)))
    chosen = _STRATEGIES[name](problem, n_basis, rng)
    return rows[chosen if len(chosen) else _random(problem, 1, rng)]


def _random(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    return rng.permutation(len(problem.X))[:n_basis]


def _residual(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Draws without replacement are the largest of ``log p + Gumbel noise``."""
    mass = problem.weight * _squares(problem.y)
    with np.errstate(divide="ignore"):
        keys = np.log(mass) + rng.gumbel(size=len(mass))
    fitted = np.flatnonzero(mass == 0)  # follow at random
    ranked = np.argsort(-keys, kind="stable")[: len(mass) - len(fitted)]
    return np.append(ranked, rng.permutation(fitted))[:n_basis]


def _k_means(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Copies of a row are one heavy row, so that no cluster is empty."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import, and needed here only
    from sklearn.metrics import pairwise_distances_argmin

    distinct, first, copies = np.unique(problem.X, axis=0, return_index=True, return_inverse=True)
    if len(first) <= n_basis:
        return first
    clusters = MiniBatchKMeans(n_basis, n_init=1, random_state=int(rng.integers(2**31)))
    clusters.fit(distinct, sample_weight=np.bincount(copies.ravel(), problem.weight))
    centers, free = clusters.cluster_centers_, np.arange(len(first))
    chosen: list[Rows] = []
    while len(centers):  # where one row is the nearest to several centers, one of them gets it
        nearest, owner = np.unique(
            pairwise_distances_argmin(centers, distinct[free]), return_index=True
        )
        chosen.append(free[nearest])
        free, centers = np.delete(free, nearest), np.delete(centers, owner, axis=0)
    return first[np.concatenate(chosen)]


def _rp_cholesky(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Pivots drawn in proportion to what is left of the weighted diagonal.

    Chen, Epperly, Tropp & Webber 2022 (arXiv 2207.06503), Algorithm 1, made of matrix products by
    Epperly, Tropp & Webber 2024 (arXiv 2410.03969): pivots are proposed in blocks, and each is
    accepted with the probability that the accepted ones before it have left to it.  The pivots
    have the distribution of the sequential method.
    """
    X, kernel = problem.X, problem.kernel
    left = np.maximum(problem.diagonal, 0.0)  # (m,), zero for rows that are out
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
        new[:] = dense.solve_lower(corner, problem.columns(pivots) - above[:, kept].T @ factor[:k])
        left -= np.einsum("ij,ij->j", new, new)
        left[left <= problem.rounding] = 0.0
        left[pivots] = 0.0
        chosen = np.append(chosen, pivots)
    return chosen


def _accept(
    schur: Floats, proposed: Rows, before: Floats, smallest: Floats, rng: np.random.Generator
) -> tuple[Rows, Floats]:
    """Which proposals (b,) become pivots, and the Cholesky factor of their part of ``schur``.

    ``schur`` (b, b) is overwritten; ``before`` (b,) is the diagonal they were drawn by.
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


class ForwardFit:
    """The exact machine on the basis so far, grown by one basis vector at a time.

    The Cholesky factor of ``H = K_D' W K_D + λ K_DD`` is bordered; the fit is always recomputed
    from the weights, so that rounding does not build up in the residual.
    """

    def __init__(self, problem: Problem, n_basis: int) -> None:
        m, r = problem.y.shape
        self._problem = problem
        self._lengths = np.full(m, np.nan)  # k_i'Wk_i, filled in where needed
        self._columns = np.empty((n_basis, m))
        self._factor = np.zeros((n_basis, n_basis))
        self._half = np.empty((n_basis, r))  # factor⁻¹ K_D' W y
        # Candidates come up again and again: keep all columns rather than evaluate as many.
        n_scored = m if problem.n_candidates is None else problem.n_candidates * n_basis
        keep = n_scored >= m and 8 * m * m <= _KEPT_BYTES
        self._kernel = problem.columns(np.arange(m)) if keep else None
        self.chosen: list[int] = []
        self.alpha = np.empty((0, r))  # weights of the t basis vectors so far
        self.fitted = np.zeros((m, r))  # K_D α

    def _column(self, rows: Rows) -> Floats:
        return self._problem.columns(rows) if self._kernel is None else self._kernel[rows]

    def gains(self, rows: Rows) -> Floats:
        """``Δ_i`` of SY2006, eq. (18), summed over outputs, (c,); cost O(c m) and c columns.

        With ``f = K_D α`` and ``k̃_i'α = f_i`` it is
        ``½ (k_i'W(y - f) - λ f_i)² / (λ k_ii + k_i'Wk_i)``.
        """
        problem = self._problem
        pull = problem.weight[:, None] * (problem.y - self.fitted)
        slopes = -problem.regularization * self.fitted[rows]
        new = np.isnan(self._lengths[rows])
        if self._kernel is not None and 2 * len(rows) > len(pull) and not new.any():
            slopes += (self._kernel @ pull)[rows]
        else:
            for part in gram.row_blocks(len(rows), _ROWS_AT_ONCE):
                columns = self._column(rows[part])
                slopes[part] += columns @ pull
                if new[part].any():
                    self._lengths[rows[part]] = (columns * columns) @ problem.weight
        curvature = problem.regularization * problem.diagonal[rows] + self._lengths[rows]
        halves = 0.5 * _squares(slopes)
        return np.divide(halves, curvature, out=np.zeros(len(rows)), where=curvature > 0)

    def include(self, i: int) -> bool:
        """Add a row to the basis, unless it depends on the basis; cost O(m t + t²)."""
        problem, t = self._problem, len(self.chosen)
        column = self._column(np.array([i]))[0]
        weighted = problem.weight * column
        border = self._columns[:t] @ weighted + problem.regularization * column[self.chosen]
        corner = float(column @ weighted + problem.regularization * problem.diagonal[i])
        row = dense.solve_lower(self._factor[:t, :t], border) if t else border
        square = corner - float(row @ row)
        if not square > _DEPENDENT * abs(corner):
            return False
        pivot = np.sqrt(square)
        self._columns[t] = column
        self._factor[t, :t], self._factor[t, t] = row, pivot
        self._half[t] = (weighted @ problem.y - row @ self._half[:t]) / pivot
        self.chosen.append(i)
        t += 1
        self.alpha = dense.solve_lower(self._factor[:t, :t], self._half[:t].copy(), transposed=True)
        self.fitted = self._columns[:t].T @ self.alpha
        return True


def _forward(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
    """Rows that once gain nothing, or depend on the basis, are not looked at again."""
    least = _USELESS * 0.5 * float(problem.weight @ _squares(problem.y))
    if least == 0:  # else every column would be looked at in vain
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


class ProjectedPosterior:
    """A Gaussian process whose observations see a row's projection on the basis, not the row.

    The projected likelihood of SWL2003; the noise of row i is ``σ²/w_i`` with ``σ² = λ``.
    ``L L' = K_DD``, ``V = L⁻¹ K_D'``, ``Q Q' = σ² I + V W V'``, ``P = Q⁻¹ V``.  The posterior mean
    is ``μ``; ``q_i = w_i |p_i|²`` is the posterior variance of a projection in units of the row's
    noise; ``l_i² = k_ii - |v_i|²`` is the variance of the row about its projection.
    """

    def __init__(self, problem: Problem, n_basis: int) -> None:
        m, r = problem.y.shape
        self._problem, self._size = problem, 0
        self._V, self._P = np.empty((n_basis, m)), np.empty((n_basis, m))
        self._Q = np.zeros((n_basis, n_basis))
        self._half = np.empty((n_basis, r))  # Q⁻¹ V W y
        self.mean = np.zeros((m, r))  # μ
        self.leverage = np.zeros(m)  # q
        self.variance = np.maximum(problem.diagonal, 0.0)  # l², zero where it is only rounding

    def scores(self) -> Floats:
        """``information_gain`` of every row, (m,)."""
        problem = self._problem
        precision = problem.weight / problem.regularization
        errors = problem.y - self.mean
        return information_gain(self.variance, self.leverage, errors, precision)

    def include(self, i: int) -> None:
        """Add a row of positive ``variance`` to the basis; cost O(m t + t²)."""
        problem, t, noise = self._problem, self._size, self._problem.regularization
        V, P = self._V[:t], self._P[:t]
        v = (problem.columns(np.array([i]))[0] - V[:, i] @ V) / np.sqrt(self.variance[i])
        weighted = problem.weight * v
        row = dense.solve_lower(self._Q[:t, :t], V @ weighted) if t else np.empty(0)
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
    """How much the posterior would learn from a row's entering the basis, (m,), in nats.

    Let ``f = h + e`` with ``h`` the row's projection on the basis and ``e ~ N(0, l²)``.  At present
    the row's observation is of ``h``; were the row in the basis, it would be of ``f``.  The gain is
    ``KL(new || present)`` of these two posteriors, all other observations being left with their
    projections (SWL2003).  With ``σ²`` the noise of the row,
    ``ξ = 1 / (σ²/l² + 1 - q)`` and ``κ = ξ (1 + 2 σ²/l²)``, it is
    ``-log(σ/l) - ½ (log ξ + ξ (1 - κ) (y - μ)²/σ² - κ + 2)``; below in ``l²/σ²``, which may vanish.

    ``variance`` is ``l²``, ``leverage`` ``q`` and ``precision`` ``1/σ²``, all (m,); ``errors``
    (m, r) is ``y - μ``, and the gains of the outputs are added.
    """
    ratio = variance * precision
    shrinkage = 1 / (1 + (1 - leverage) * ratio)
    spread = np.log1p((1 - leverage) * ratio) + (2 * leverage - 1) * ratio * shrinkage
    shift = ratio * (1 + leverage * ratio) * shrinkage**2 * precision * _squares(errors)
    return 0.5 * (errors.shape[1] * spread + shift)


def _information_gain(problem: Problem, n_basis: int, rng: np.random.Generator) -> Rows:
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


def _squares(values: Floats) -> Floats:
    """Sum of squares over the outputs, (m,)."""
    return np.einsum("ij,ij->i", values, values)


_STRATEGIES: dict[str, Callable[[Problem, int, np.random.Generator], Rows]] = {
    "forward": _forward,
    "information_gain": _information_gain,
    "k_means": _k_means,
    "random": _random,
    "residual": _residual,
    "rp_cholesky": _rp_cholesky,
}

SELECTIONS: tuple[str, ...] = tuple(sorted(_STRATEGIES))
"""Names of the strategies."""

COLUMNS_HELD = {"forward": 1, "information_gain": 2, "rp_cholesky": 1}
"""Arrays (m, D) of float64 that a strategy holds; the others hold none."""

MOST_ROWS_ALL_SCORED = 6000


def refuse_many_rows(m: int) -> None:
    """Refuse to score all rows where that takes m² kernel values a step."""
    if m > MOST_ROWS_ALL_SCORED:
        raise InvalidParameter(
            f"n_candidates=None scores all {m} rows for each basis vector, which requires {m}² "
            f"kernel values; set subset_size to at most {MOST_ROWS_ALL_SCORED}, or n_candidates to "
            "a number such as 59."
        )
