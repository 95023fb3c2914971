"""An additive kernel in place of the stationary one, where held-out rows show that it suits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Additive
from hilboost.kernels.marginal_likelihood import Effort, LogScalePrior, maximize
from hilboost.learners.kernel_machine.tuning.metric import SMALLEST_RIDGE, Metric, Problem

_FEWEST_ROWS = 60  # of each part
_FIRST_ROWS, _FIRST_JUDGED, _FIRST_STEPS = 120, 300, 15
_FIRST_BETTER = 1.0  # the first look must find an error that is smaller by this factor
_ROWS, _JUDGED, _STEPS = 300, 600, 25
_BETTER = 0.95  # the error must be smaller by this factor
_ERRORS = 2.0  # standard errors that the gain must exceed
_SPREAD = 3.0  # of the logarithms of the length scales
_FIRST_NOISE = 0.03
_RIDGES = (0.3, 1.0, 3.0)  # factors of the ridge that are compared


@dataclass(frozen=True)
class AdditiveMetric:
    """Feature scales for an additive kernel of length scale one, its shares, and the ridge."""

    scales: Floats  # (q,) float64
    shares: Floats  # (2,) float64: of main effects and of interactions of two features
    ridge: float  # λ in ``(K + λ / weight) α = y``


def additive_metric(
    Z: Floats,  # (m, q) float64: features of the rows
    Y: Floats,  # (m, r) float64
    weight: Floats | None,  # (m,) float64 or None
    metric: Metric,  # the diagonal metric; features that it leaves out are left out here, too
    axes: Floats,  # (q, k) float64: linear map for the stationary kernel of length scale one
    ridge: float,  # of the stationary kernel
    team: ThreadTeam | None = None,  # threads that share matrices
) -> AdditiveMetric | None:
    """Learn an additive kernel, if it is clearly better than the stationary one.

    Length scales, shares and the ridge maximize the marginal likelihood of three fifths of the
    rows.  The leave-one-out error of the other rows decides.  A first look at few rows ends the
    search on most tables.

    The cost is that of about 15 inversions of 120 × 120 matrices, and if the first look is good, of
    25 inversions of 300 × 300 matrices and six of 600 × 600 matrices.
    """
    learned, judged = Problem.divided(Z, Y, weight, team)
    used = np.flatnonzero(metric.scales)
    if min(len(learned.Z), len(judged.Z)) < _FEWEST_ROWS or len(used) < 2:
        return None
    for n_rows, n_judged, n_steps, enough in (
        (_FIRST_ROWS, _FIRST_JUDGED, _FIRST_STEPS, _FIRST_BETTER),
        (_ROWS, _JUDGED, _STEPS, _BETTER),
    ):
        some = judged.first(n_judged)
        rows, points = some.Z[:, used], some.Z @ axes
        found = _likeliest(learned.first(n_rows), used, n_steps)
        if found is None:
            return None
        kernel, noise = found
        errors = _errors(some, kernel.block(rows, rows), noise)
        usual = _errors(some, some.kernel_values(some.squares(points)), ridge)
        if not errors @ some.weight < enough * (usual @ some.weight) < np.inf:
            return None
    gain, error = _mean_and_error(usual - errors, some.weight)
    if not gain > _ERRORS * error:
        return None
    # Divided by its variance over the rows, so that ridges of different kernels are comparable.
    K = kernel.block(rows, rows)
    variance = float(np.diag(K).mean() - K.mean())
    scales = np.zeros(len(metric.scales))
    scales[used] = 1 / kernel.length_scale
    shares = np.array([kernel.main, kernel.pairs]) / variance
    return AdditiveMetric(scales, shares, max(noise / variance, SMALLEST_RIDGE))


def _likeliest(
    problem: Problem, used: NDArray[np.intp], n_steps: int
) -> tuple[Additive, float] | None:
    """Maximize the marginal likelihood; return the kernel and the ridge."""
    spread = float(np.sqrt(np.average(problem.Y**2, axis=0, weights=problem.weight).mean()))
    if not 0 < spread < np.inf:
        return None
    prior = LogScalePrior((slice(0, len(used)),), _SPREAD)
    Z, Y, start = problem.Z[:, used], problem.Y / spread, Additive(np.ones(len(used)))
    found = maximize(start, _FIRST_NOISE, Z, Y, Effort(n_steps), prior, problem.weight)
    return None if found.value == np.inf else (found.kernel, found.noise)


def _errors(problem: Problem, K: NDArray, ridge: float) -> Floats:
    """Squared leave-one-out errors (m,) with the best of some ridges."""
    found = [problem.left_out(K, ridge * factor)[0] for factor in _RIDGES]
    return min(found, key=lambda errors: float(errors @ problem.weight))


def _mean_and_error(values: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted mean, and its standard error."""
    mean = float(np.average(values, weights=weight))
    deviation = np.sqrt(np.sum((weight * (values - mean)) ** 2))
    return mean, float(deviation / weight.sum())
