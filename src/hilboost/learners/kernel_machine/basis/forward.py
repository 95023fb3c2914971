"""Greedy forward selection by the gain in the objective (SY2006)."""

from __future__ import annotations

import numpy as np

from hilboost.backends import array_api
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import gram
from hilboost.learners.kernel_machine.basis.problem import DEPENDENT, Problem, Rows, squares

KEPT_BYTES = 2**28  # of kernel values that the search may keep
MOST_ROWS_ALL_SCORED = 6000
_USELESS = 1e-14  # of the sum of squares: smaller gains are rounding errors
_ROWS_AT_ONCE = 256


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
