"""Errors of kernels and λ on rows that they were not fitted to, and choices by these errors.

Rows are left out of a linear system one by one, or with all rows of their group, without solving it
again.  By time, blocks of the later half are predicted from the rows before them, for which the
factor of all rows suffices: a leading part of it is that of the earlier rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api, lapack
from hilboost.backends.random_bits import Purpose, key_of
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import NotPositive
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate, mean_diagonal
from hilboost.kernels.marginal_likelihood import AnyKernel
from hilboost.reductions.row_splits import Split, in_turn, once

_KEY = key_of(0, Purpose.FOLDS_COMPARED)
_BLOCKS = 5  # of the later half of the rows
ROWS_OF_HOLD_OUT = 4000
ROWS_OF_LEAVE_ONE_OUT = 1000
_SMALLER_SCALES, _LARGER_SCALES = (0.8, 0.6), (1.3,)
_LAMBDA_STEPS = (1 / 4, 4.0)
_STEEPEST_SHRINKING = -0.25
_SINGLE_PRECISION = 5e-4, 1e20  # shares of the diagonal between which λ adds to it


class LeftOut(NamedTuple):
    """Rows that were left out."""

    rows: NDArray[np.intp]  # (k,) places
    residual: Floats  # (k, r)
    scaled: Floats  # (k, r): divided by the variance given the rows that were not left out


def left_out(
    factor: Floats,  # (n, n): ``L`` of ``C = L Lᵀ``
    Y: Floats,  # (n, r)
    dependence: Dependence | None,  # by what rows are left out; ``None`` for one by one
    team: ThreadTeam | None = None,
) -> LeftOut:
    """Predict rows from the others; cost O(n³), and by time O(n² r) if rows are in its order."""
    if dependence is None or not dependence.divides:
        return LeftOut(np.arange(len(Y)), *array_api.left_out(factor, Y, team))
    if dependence.groups is None:
        return _forward(factor, Y, dependence)
    return _by_group(factor, Y, dependence.groups, team)


def _by_group(
    factor: Floats, Y: Floats, groups: NDArray[np.int64], team: ThreadTeam | None
) -> LeftOut:
    """Residuals ``(C⁻¹_gg)⁻¹ α_g`` of each group ``g``, where ``α = C⁻¹ Y``."""
    inverse = lapack.inverse_by_tiles(factor, team or ThreadTeam())
    alpha = inverse.T @ (inverse @ Y)
    residual, scaled = np.empty(Y.shape), np.empty(Y.shape)
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, 1 + np.flatnonzero(np.diff(groups[order]))):
        columns = inverse[:, rows]
        covariance = np.linalg.inv(columns.T @ columns)
        residual[rows] = covariance @ alpha[rows]
        scaled[rows] = residual[rows] / np.diag(covariance)[:, None]
    return LeftOut(np.arange(len(Y)), residual, scaled)


def _forward(factor: Floats, Y: Floats, dependence: Dependence) -> LeftOut:
    """Residuals of blocks of time, given the rows before them and before a gap."""
    assert dependence.times is not None
    order = np.argsort(dependence.times, kind="stable")
    if (np.diff(order) < 0).any():
        C = factor @ factor.T
        factor, Y = array_api.cholesky(C[np.ix_(order, order)]), Y[order]
    white = array_api.solve_lower(factor, Y.copy())
    rows, residuals, variances = [], [], []
    for learned, held in in_turn(_KEY, _BLOCKS, dependence.rows(order)):
        m = len(learned)  # the first ones
        rows.append(order[held])
        residuals.append(Y[held] - factor[held, :m] @ white[:m])
        variances.append((factor[held, m:] ** 2).sum(axis=1))
    residual = np.concatenate(residuals)
    return LeftOut(np.concatenate(rows), residual, residual / np.concatenate(variances)[:, None])


@dataclass(frozen=True, eq=False)
class FoldKernels:
    """Folds of the rows, and for each fold a kernel whose length scales do not depend on it."""

    folds: tuple[Ints, ...]  # tuple of (m,) int64: row numbers
    kernels: tuple[Kernel, ...]  # one for each fold

    def of_rows(self, rows: Ints) -> Ints:
        """The fold of each of some rows (m,), -1 for rows in no fold."""
        n = 1 + max(int(fold.max(initial=-1)) for fold in (*self.folds, rows))
        fold_of = np.full(n, -1)
        for k, fold in enumerate(self.folds):
            fold_of[fold] = k
        return fold_of[rows]


@dataclass(frozen=True)
class Candidate(Generic[AnyKernel]):
    """A kernel, its λ, and its error on rows that it was not fitted to."""

    kernel: AnyKernel
    regularization: float
    error: float = np.inf  # weighted mean square; infinite before it is known
    predicted: Floats | None = None  # (m, r) float64 or None: predictions for those rows
    rows: Ints | None = None  # (m,) int64 or None: their numbers
    folds: FoldKernels | None = None  # kernels like this one, for the choice of λ by other losses


@dataclass(frozen=True)
class Rows:
    """Rows of a table with targets and weights; the choices are by samples in random order."""

    X: Floats  # (m, d) float64
    Y: Floats  # (m, r) float64: targets
    weight: Floats  # (m,) float64: sample weights
    rows: Ints  # (m,) int64: row numbers
    dependence: Dependence | None = None  # by what rows are held out, if not at random
    weighs_noise: bool = False  # whether likelihoods divide the noise by the weights

    @classmethod
    def of(cls, X: Floats, Y: Floats, weight: Floats | None = None) -> Rows:
        """All rows of a table."""
        return cls(X, Y, np.ones(len(X)) if weight is None else weight, np.arange(len(X)))

    def joined(self, others: Rows) -> Rows:
        """Return these rows and others, numbered anew."""
        pairs = (self.X, others.X), (self.Y, others.Y), (self.weight, others.weight)
        return Rows.of(*map(np.concatenate, pairs))

    def first(self, m: int) -> Rows:
        """Return the first ``m`` rows."""
        return self.part(slice(m))

    def part(self, rows: Any) -> Rows:
        """Return some of the rows."""
        dependence = self.dependence and self.dependence.rows(rows)
        X, Y, weight, numbers = (one[rows] for one in (self.X, self.Y, self.weight, self.rows))
        return Rows(X, Y, weight, numbers, dependence, self.weighs_noise)

    def of_columns(self, columns: Ints) -> Rows:
        """Return the rows with some of the columns."""
        return replace(self, X=self.X[:, columns])

    @property
    def in_time(self) -> Rows:
        """The rows in the order of time, if they have one."""
        dependence = self.dependence
        if dependence is None or dependence.groups is not None or dependence.times is None:
            return self
        return self.part(np.argsort(dependence.times, kind="stable"))

    def splits(self, n_folds: int) -> list[Split]:
        """Hold out each of several folds in turn, see :func:`in_turn`."""
        dependence, every = self.dependence, np.arange(len(self))
        if dependence is None or not dependence.divides:
            folds = np.array_split(every, n_folds)
            return [Split(np.setdiff1d(every, fold), fold) for fold in folds]
        return in_turn(_KEY, n_folds, dependence)

    @property
    def divided(self) -> Split:
        """The rows that are fitted, and those that judge the fit: another quarter, or more."""
        m, every, dependence = n_learned(self), np.arange(len(self)), self.dependence
        if dependence is None or not dependence.divides:
            return Split(every[:m], every[m:])
        return once(_KEY, 1 - m / len(self), dependence)

    def __len__(self) -> int:
        return len(self.X)


Tried = TypeVar("Tried")
by_error: Callable[[Any], float] = attrgetter("error")


def while_better(
    start: Tried,
    directions: Iterable[Iterable[float]],
    tried: Callable[[float], Tried],
    worth: float = 1.0,  # factor by which each step must decrease the error
    error: Callable[[Tried], float] = by_error,
) -> Tried:
    """Go in the first direction that decreases the error, step by step, while it falls."""
    best, lowest = start, error(start)
    for steps in directions:
        for step in steps if best is start else ():
            found = tried(step)
            now = error(found)
            if not now < worth * lowest:
                break
            best, lowest = found, now
    return best


def leave_one_out(candidate: Candidate[AnyKernel], rows: Rows) -> Candidate[AnyKernel]:
    """The candidate with its weighted mean squared error on rows that are left out in turn."""
    rows = rows.in_time
    K = evaluate(candidate.kernel, rows.X, rows.X)
    D = candidate.regularization / rows.weight
    try:
        factor = array_api.cholesky(array_api.add_to_diagonal(K, D))
    except ArithmeticError:
        return Candidate(candidate.kernel, candidate.regularization)
    places, residual, _ = left_out(factor, rows.Y, rows.dependence)
    held = rows.part(places)
    error = float(np.average((residual**2).sum(axis=1), weights=held.weight))
    return Candidate(
        candidate.kernel, candidate.regularization, error, held.Y - residual, held.rows
    )


def n_learned(rows: Rows) -> int:
    """Number of rows that are fitted to predict the others."""
    return min(ROWS_OF_HOLD_OUT, int(0.75 * len(rows)))


def held_out(candidate: Candidate[AnyKernel], rows: Rows) -> Candidate[AnyKernel]:
    """The candidate, fitted to some of the rows, with its error on the others.

    It is computed in single precision where λ is far above the rounding errors.
    """
    learn, held = (rows.part(places) for places in rows.divided)
    kernel, lam = candidate.kernel, candidate.regularization
    grid, dtype = np.array([lam]), "float32" if _suits_single(kernel, learn, lam) else "float64"
    predicted = predictions(kernel, learn, held.X, grid, dtype)[0]
    if dtype == "float32" and np.isnan(predicted).any():
        predicted = predictions(kernel, learn, held.X, grid)[0]
    error = float(np.average(((predicted - held.Y) ** 2).sum(axis=1), weights=held.weight))
    if np.isnan(error):
        return Candidate(kernel, lam)
    return Candidate(kernel, lam, error, predicted, held.rows)


def _suits_single(kernel: Kernel, learn: Rows, lam: float) -> bool:
    """Whether a fit to many rows may be computed in single precision."""
    if len(learn) < ROWS_OF_LEAVE_ONE_OUT:
        return False
    added = lam / np.array([learn.weight.max(), learn.weight.min()])
    least, most = np.array(_SINGLE_PRECISION) * mean_diagonal(kernel, learn.X)
    return bool(least < added[0] and added[1] < most)


def predictions(
    kernel: Kernel, learn: Rows, X: Floats, grid: Floats, dtype: str = "float64"
) -> Floats:
    """Predictions (l, m, r) of some rows for every λ of a grid; NaN without a solution."""
    rows, X = learn.X.astype(dtype), X.astype(dtype)
    K, K_held = evaluate(kernel, rows, rows), evaluate(kernel, X, rows)
    unit = unit_of(learn.Y)
    found = np.full((len(grid), len(X), learn.Y.shape[1]), np.nan)
    for predicted, lam in zip(found, grid, strict=True):
        D = (lam / learn.weight).astype(dtype)
        system = array_api.add_to_diagonal(K.copy(), D)
        try:
            # A raised diagonal would be far above λ in single precision.
            factor = array_api.cholesky(system) if dtype == "float64" else _factor(system)
        except ArithmeticError:
            continue
        right = (learn.Y / unit).astype(dtype)
        predicted[...] = K_held @ array_api.solve_cholesky(factor, right)
        predicted *= unit
    return found


def unit_of(Y: Floats) -> float:
    """A power of two by which targets are divided, so that single precision can hold them."""
    exponent = np.frexp(np.abs(Y).max(initial=0.0))[1]
    return float(np.ldexp(1.0, min(int(exponent), 1023)))


def _factor(matrix: NDArray[Any]) -> NDArray[Any]:
    """Cholesky factor below the diagonal of a matrix, which is overwritten."""
    if not lapack.factor(matrix.T, lower=False):
        raise NotPositive(array_api.NOT_POSITIVE)
    return matrix


def mean_and_standard_error(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """Mean of some values (n,) with sample weights (n,), and its standard error."""
    share = np.full(len(values), 1.0) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt((share**2) @ (values - mean) ** 2))


Score = Callable[[Candidate[AnyKernel], Rows], Candidate[AnyKernel]]


def scaled(candidate: Candidate[AnyKernel], factor: float) -> Candidate[AnyKernel]:
    """The candidate with its length scales multiplied, not yet scored."""
    return Candidate(candidate.kernel.stretched(factor), candidate.regularization)


def best_scale(candidate: Candidate[AnyKernel], rows: Rows) -> Candidate[AnyKernel]:
    """Multiply the length scales while the leave-one-out error falls."""
    return while_better(
        leave_one_out(candidate, rows),
        (_SMALLER_SCALES, _LARGER_SCALES),
        lambda factor: leave_one_out(scaled(candidate, factor), rows),
    )


def best_lambda(
    candidate: Candidate[AnyKernel],
    rows: Rows,
    score: Score[AnyKernel],
    floor: float,
    team: ThreadTeam,
) -> Candidate[AnyKernel]:
    """Decrease or increase λ by factors of four, not below the floor, while the error falls."""

    def scored(factor: float) -> Candidate[AnyKernel]:
        lam = max(candidate.regularization * factor, floor)
        return score(Candidate(candidate.kernel, lam), rows)

    known = dict(zip(_LAMBDA_STEPS, team.map(scored, _LAMBDA_STEPS), strict=True))
    step = min(known, key=lambda factor: known[factor].error)
    factors = [step**k for k in range(1, 5)]
    return while_better(candidate, (factors,), lambda factor: known.get(factor) or scored(factor))


def lambda_on_grid(kernel: AnyKernel, sampled: Rows, team: ThreadTeam) -> Candidate[AnyKernel]:
    """λ for a given kernel: the power of ten with the lowest leave-one-out error."""
    rows = sampled.first(ROWS_OF_LEAVE_ONE_OUT)
    diagonal = mean_diagonal(kernel, rows.X)
    grid = [Candidate(kernel, diagonal * 10.0**k) for k in range(-6, 2)]
    return min(team.map(lambda candidate: leave_one_out(candidate, rows), grid), key=by_error)


def extrapolated(
    best: Candidate[AnyKernel], sampled: Rows, few: Rows, n: float, team: ThreadTeam
) -> Candidate[AnyKernel]:
    """Length scales for ``n`` rows, extrapolated from the best ones for few and for many rows.

    The best length scale decreases with the number of rows.
    """
    m = n_learned(sampled)
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
    """Logarithm of the factor at the minimum of a parabola through three log errors."""
    if not np.isfinite(errors).all() or min(errors) <= 0:
        return float(np.log(factors[int(np.argmin(errors))]))
    x = np.log(factors)
    curve, line, _ = np.polyfit(x, np.log(errors), 2)
    if curve <= 0:
        return float(x[int(np.argmin(errors))])
    return float(np.clip(-line / (2 * curve), 1.5 * x[0], 1.5 * x[-1]))
