"""Selection of a kernel's scale and λ by leave-one-out and held-out errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate

ROWS_OF_HOLD_OUT = 4000
_SCALE_FACTORS = (0.6, 0.8, 1.0, 1.3)
_STEEPEST_SHRINKING = -0.25


@dataclass(frozen=True)
class Candidate:
    """A kernel with λ, and its error on rows to which it was not fitted."""

    kernel: Kernel
    regularization: float
    error: float = np.inf
    predicted: Floats | None = None  # predictions for those rows
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Sampled:
    """Rows for the selection, in random order: inputs (m, d), targets (m, r), weights (m,)."""

    X: Floats
    Y: Floats
    weight: Floats
    rows: NDArray[np.int64]

    def first(self, m: int) -> Sampled:
        """Return the first ``m`` rows."""
        return self.part(slice(m))

    def part(self, rows: slice) -> Sampled:
        """Return a slice of the rows."""
        return Sampled(self.X[rows], self.Y[rows], self.weight[rows], self.rows[rows])

    def __len__(self) -> int:
        return len(self.X)


def by_error(candidate: Candidate) -> float:
    """Return the error of a candidate, as a sort key."""
    return candidate.error


def leave_one_out(candidate: Candidate, rows: Sampled) -> Candidate:
    """Return the candidate with its weighted mean squared leave-one-out error.

    The leave-one-out residual of a row is ``α_i / (K + D)⁻¹_ii`` (Rasmussen & Williams 2006, eq.
    5.12).
    """
    K = evaluate(candidate.kernel, rows.X, rows.X)
    D = candidate.regularization / rows.weight
    try:
        factor = dense.cholesky(dense.add_to_diagonal(K, D))
    except ArithmeticError:
        return Candidate(candidate.kernel, candidate.regularization)
    inverse = dense.solve_lower(factor, np.eye(len(rows)))
    alpha = dense.solve_lower(factor, inverse @ rows.Y, transposed=True)
    residual = alpha / (inverse**2).sum(axis=0)[:, None]
    error = float(np.average((residual**2).sum(axis=1), weights=rows.weight))
    return Candidate(
        candidate.kernel, candidate.regularization, error, rows.Y - residual, rows.rows
    )


def held_out(candidate: Candidate, rows: Sampled) -> Candidate:
    """Return the candidate with its error on held-out rows after a fit to the other rows."""
    m = min(ROWS_OF_HOLD_OUT, int(0.75 * len(rows)))
    learn, X, Y = rows.first(m), rows.X[m:], rows.Y[m:]
    K = evaluate(candidate.kernel, learn.X, learn.X)
    try:
        factor = dense.cholesky(dense.add_to_diagonal(K, candidate.regularization / learn.weight))
    except ArithmeticError:
        return Candidate(candidate.kernel, candidate.regularization)
    alpha = dense.solve_cholesky(factor, learn.Y.copy())
    predicted = evaluate(candidate.kernel, X, learn.X) @ alpha
    error = float(np.average(((predicted - Y) ** 2).sum(axis=1), weights=rows.weight[m:]))
    return Candidate(candidate.kernel, candidate.regularization, error, predicted, rows.rows[m:])


Score = Callable[[Candidate, Sampled], Candidate]


def scaled(candidate: Candidate, factor: float) -> Candidate:
    """Return the candidate with multiplied length scales, without an error."""
    return Candidate(candidate.kernel.stretched(factor), candidate.regularization)


def best_scale(candidate: Candidate, rows: Sampled) -> Candidate:
    """Return the candidate with the best multiple of its length scales, by leave-one-out error."""
    tried = [leave_one_out(scaled(candidate, factor), rows) for factor in _SCALE_FACTORS]
    return min(tried, key=lambda c: c.error)


def best_lambda(
    candidate: Candidate, rows: Sampled, score: Score, floor: float, team: ThreadTeam
) -> Candidate:
    """Search a grid of λ downward, not below ``floor``, while the error decreases; else upward."""
    best, went_down = candidate, True

    def scored(factor: float) -> Candidate:
        lam = max(candidate.regularization * factor, floor)
        return score(Candidate(candidate.kernel, lam), rows)

    for factors in ((1 / 4, 4.0), (1 / 16, 16.0), (1 / 64, 64.0), (1 / 256, 256.0)):
        side = [f for f in factors if best is candidate or (f < 1) == went_down]
        tried = min(team.map(scored, side), key=by_error)
        if not tried.error < best.error:
            break
        went_down = tried.regularization < candidate.regularization
        best = tried
    return best


def extrapolated(
    best: Candidate, sampled: Sampled, few: Sampled, n: float, team: ThreadTeam
) -> Candidate:
    """Extrapolate the length scales to ``n`` rows from those for few and for most sampled rows.

    The best length scale decreases with the number of rows.
    """
    m = min(ROWS_OF_HOLD_OUT, int(0.75 * len(sampled)))
    factors = np.array([0.7, 1.0, 1.4])
    others = team.map(lambda f: held_out(scaled(best, f), sampled), factors[[0, 2]])
    at_large = [others[0], best, others[1]]
    at_small = team.map(lambda f: leave_one_out(scaled(best, f), few), factors)
    low = lowest_point(factors, [c.error for c in at_small])
    high = lowest_point(factors, [c.error for c in at_large])
    slope = np.clip((high - low) / np.log(m / len(few)), _STEEPEST_SHRINKING, 0.0)
    factor = float(np.exp(high + slope * np.log(max(n / m, 1.0))))
    return replace(best, kernel=scaled(best, factor).kernel)


def lowest_point(factors: Floats, errors: list[float]) -> float:
    """Return the logarithm of the factor at the minimum of a parabola through three log errors."""
    if not np.isfinite(errors).all() or min(errors) <= 0:
        return float(np.log(factors[int(np.argmin(errors))]))
    x = np.log(factors)
    curve, line, _ = np.polyfit(x, np.log(errors), 2)
    if curve <= 0:
        return float(x[int(np.argmin(errors))])
    return float(np.clip(-line / (2 * curve), 1.5 * x[0], 1.5 * x[-1]))
