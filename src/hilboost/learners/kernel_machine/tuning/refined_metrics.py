"""Metrics in place of the diagonal one, where held-out rows show that they suit.

These are linear maps of the features, and additive kernels.  The gradients of fitted functions also
give length scales of a kernel of a table, and the columns that matter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Additive
from hilboost.kernels.marginal_likelihood import Effort
from hilboost.learners.kernel_machine.tuning.metric import (
    PARTS,
    SMALLEST_RIDGE,
    Fit,
    Metric,
    Problem,
    learned_metric,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    Candidate,
    Rows,
    mean_and_standard_error,
    while_better,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import USUAL_FAMILY, Columns, TableKernel

# Of linear maps:
_ROUNDS = 3
_POWER = 0.75  # of the average gradient outer product; with one, few directions would be left
_STEP = 1.35  # between lengths
_SMALLER_RIDGE = 0.4
_FIRST_BETTER = 0.9  # the first round must decrease their error by this factor
_SMALL_STEP = 0.98  # a round that gains less is the last one
_BETTER_MAP = 0.9  # all rounds must decrease the error of the other rows by this factor
_DROPPED = 1e-5  # share of the largest eigenvalue

# Of additive kernels:
_FEWEST_OF_A_PART = 60  # rows
# Rows that are learned from, rows that judge, steps, and the factor by which the error must be
# smaller: a first look, and the comparison that counts.
_LOOKS = ((120, 300, 15, 1.0), (300, 600, 25, 0.95))
_ERRORS = 2.0  # standard errors that the gain must exceed
_SPREAD = 3.0  # of the logarithms of the length scales
_RIDGES = (0.3, 1.0, 3.0)  # factors of the ridge that are compared

# Of length scales:
_FEWEST_ROWS, _ROWS, _ROWS_OF_MAP = 20, 400, 1000
_MOST_COLUMNS, _MOST_ADDITIVE = 256, 24


def refined_metrics(
    rows: Rows,  # X are features
    metric: Metric,  # the diagonal metric
    most_additive: int,  # number of features of an additive kernel
    team: ThreadTeam | None = None,  # threads that share matrices
    rotates: bool = True,  # whether linear maps are tried
) -> list[Metric]:
    """Learn a linear map, and an additive kernel that is better than it; neither without gain."""
    found = [rotated_metric(rows, metric, team) if rotates else None]
    if np.count_nonzero(metric.axes) <= most_additive:
        found.append(additive_metric(rows, metric, found[0] or metric, team))
    return [better for better in found if better is not None]


def rotated_metric(rows: Rows, metric: Metric, team: ThreadTeam | None = None) -> Metric | None:
    """Learn a linear map of the features, if it is much better than a diagonal metric.

    Each round takes a power of the average gradient outer product of the last fit as the metric
    (Radhakrishnan, Beaglehole, Pandit & Belkin 2024), and searches for a length scale and a ridge
    with a smaller exact leave-one-out error.  A full matrix has many entries, which adapt to the
    noise of these rows, so that it must have fewer entries than rows to learn from, and the
    leave-one-out error of the other two fifths of the rows decides.  The cost is that of two
    inversions of m × m matrices, or of about 15 if the first round gains.
    """
    q = len(metric.axes)
    learned, judged = Problem.divided(rows, team)
    if min(len(learned.Z), len(judged.Z)) < PARTS or len(learned.Z) < q * (q + 1) // 2:
        return None
    start = now = learned.fit_with(np.diag(metric.axes), metric.ridge)
    if not 0 < start.error < np.inf:
        return None
    for k in range(_ROUNDS):
        found = learned.fit_with(_next_axes(learned, now), now.ridge)
        if k == 0 and not found.error < _FIRST_BETTER * start.error:
            return None
        found = _tuned(learned, found)
        if found.error > now.error:
            break
        small, now = found.error > _SMALL_STEP * now.error, found
        if small:
            break
    before, after = (_tuned(judged, judged.fit_with(one.axes, one.ridge)) for one in (start, now))
    is_better = after.error < _BETTER_MAP * before.error
    return Metric(after.axes, after.ridge, after.error) if is_better else None


def _next_axes(problem: Problem, now: Fit) -> Floats:
    """Return the axes of the average gradient outer product, at the same mean distance."""
    points = problem.Z @ now.axes

    def outer_products(rows: slice) -> Floats:
        total = np.zeros((len(now.axes),) * 2)
        for pull in problem.pulls(now, points, rows):
            gradients = pull @ now.axes.T
            total += (gradients.T * problem.weight[rows]) @ gradients
        return total

    total = np.sum(problem.in_blocks(outer_products), axis=0)
    values, vectors = np.linalg.eigh(total)
    kept = values > _DROPPED * values[-1]
    if not kept.any():
        return now.axes
    axes = vectors[:, kept] * (values[kept] / values[-1]) ** (_POWER / 2)
    size = np.sqrt((points.var(axis=0)).sum() / (problem.Z @ axes).var(axis=0).sum())
    return axes * size


def _tuned(problem: Problem, found: Fit) -> Fit:
    """Compare neighboring length scales and ridges."""
    found = while_better(
        found,
        ((1 / _STEP,), (_STEP,)),
        lambda by: problem.fit_with(found.axes * by, found.ridge, found.squares * by**2),
    )
    ridges = [found.ridge * by for by in (_SMALLER_RIDGE, 1 / _SMALLER_RIDGE)]
    return while_better(
        found,
        ((ridge,) for ridge in ridges if ridge >= SMALLEST_RIDGE),
        lambda ridge: problem.fit_with(found.axes, ridge, found.squares),
    )


def additive_metric(
    rows: Rows,  # X are features
    metric: Metric,  # the diagonal metric; features that it leaves out are left out here, too
    stationary: Metric,  # the same one, or a better linear map
    team: ThreadTeam | None = None,  # threads that share matrices
) -> Metric | None:
    """Learn an additive kernel, if it is clearly better than the stationary one.

    Length scales, shares and the ridge maximize the marginal likelihood of three fifths of the
    rows.  The leave-one-out error of the other rows decides.  A first look at few rows ends the
    search on most tables.

    The cost is that of about 15 inversions of 120 × 120 matrices, and if the first look is good, of
    25 inversions of 300 × 300 matrices and six of 600 × 600 matrices.
    """
    learned, judged = Problem.divided(rows, team)
    used = np.flatnonzero(metric.axes)
    if min(len(learned.Z), len(judged.Z)) < _FEWEST_OF_A_PART or len(used) < 2:
        return None
    for n_rows, n_judged, n_steps, enough in _LOOKS:
        some = judged.first(n_judged)
        points = some.Z[:, used]
        found = _likeliest(learned.first(n_rows), used, n_steps)
        if found is None:
            return None
        kernel, noise = found
        K = kernel.block(points, points)
        errors = _errors(some, K, noise)
        usual = _errors(some, some.kernel_values(some.squares(stationary.axes)), stationary.ridge)
        if not errors @ some.weight < enough * (usual @ some.weight) < np.inf:
            return None
    gain, error = mean_and_standard_error(usual - errors, some.weight)
    if not gain > _ERRORS * error:
        return None
    # Divided by its variance over the rows, so that ridges of different kernels are comparable.
    variance = float(np.diag(K).mean() - K.mean())
    scales = np.zeros(len(metric.axes))
    scales[used] = 1 / kernel.length_scale
    shares = np.array([kernel.main, kernel.pairs]) / variance
    return Metric(scales, max(noise / variance, SMALLEST_RIDGE), shares=shares)


def _likeliest(
    problem: Problem, used: NDArray[np.intp], n_steps: int
) -> tuple[Additive, float] | None:
    """Maximize the marginal likelihood; return the kernel and the ridge."""
    spread = float(np.sqrt(np.average(problem.Y**2, axis=0, weights=problem.weight).mean()))
    if not 0 < spread < np.inf:
        return None
    some = replace(problem, Z=problem.Z[:, used], Y=problem.Y / spread)
    effort = Effort(n_steps, team=problem.team)
    found = some.maximized(Additive(np.ones(len(used))), effort, _SPREAD)
    return None if found.value == np.inf else (found.kernel, found.noise)


def _errors(problem: Problem, K: NDArray, ridge: float) -> Floats:
    """Squared leave-one-out errors (m,) with the best of some ridges."""
    residuals = problem.team.map(lambda by: problem.residuals(K, ridge * by)[0], _RIDGES)
    found = [(left**2).sum(axis=1) for left in residuals]
    return min(found, key=lambda errors: float(errors @ problem.weight))


def by_gradients(columns: Columns, sampled: Rows, team: ThreadTeam) -> list[Candidate[TableKernel]]:
    """Kernels of the numeric columns along which a fitted function varies most.

    The first has length scales from the gradients of fits to some hundred rows.  These fits start
    from equal scales, and from the dependence of the targets on single columns, which shows on more
    rows.  Unlike the likelihood, they need no model of the noise.  A linear map and an
    additive kernel follow if they are clearly better.  The list is empty if no column varies, or
    if there are very few rows.
    """
    X, numeric = np.asarray(sampled.X, dtype=np.float64), np.array(columns.numeric)
    numeric = numeric[X[:, numeric].std(axis=0) > 0]
    if len(X) < _FEWEST_ROWS or not len(numeric):
        return []
    Z, spread = standardized(X[:, numeric]), X[:, numeric].std(axis=0)
    strength = dependence(Z, sampled.Y)
    kept, table = np.sort(strongest(strength, _MOST_COLUMNS)), replace(sampled, X=Z)
    metric = learned_metric(table.first(_ROWS).of_columns(kept), strength[kept], team)
    places = np.flatnonzero(metric.axes)
    kept, metric = kept[places], replace(metric, axes=metric.axes[places])
    spread, rows = spread[kept], table.first(_ROWS_OF_MAP).of_columns(kept)
    kernel = columns.part(tuple(numeric[kept].tolist())).kernel(USUAL_FAMILY, 1.0)
    metrics = [metric, *refined_metrics(rows, metric, _MOST_ADDITIVE, team)]
    return [Candidate(_with_metric(kernel, one, spread), one.ridge) for one in metrics]


def _with_metric(kernel: TableKernel, metric: Metric, spread: Floats) -> TableKernel:
    """The kernel with a metric of columns that were divided by their spreads (d,)."""
    if metric.axes.ndim > 1:
        return kernel.mapped(metric.axes / spread[:, None])
    scales = spread / metric.axes
    if metric.shares is None:
        return kernel.with_scales(scales)
    numbers = Additive(scales, *metric.shares.tolist())
    return replace(kernel, family="additive", numeric=numbers)


def strongest(strength: Floats, n: int) -> NDArray[np.intp]:
    """Positions of up to ``n`` of the largest numbers, in descending order."""
    return np.argsort(-strength, kind="stable")[:n]


def dependence(Z: Floats, Y: Floats) -> Floats:
    """How much targets (m, r) depend on each of some standardized columns (m, d), as (d,) floats.

    It is the largest squared correlation of a column or its square with a target or its size, in
    units of its standard error, less what the largest of so many correlations is by chance.  An
    interaction of two columns without main effects shows in the sizes.
    """
    outputs = standardized(np.hstack([Y, np.abs(Y)]))
    largest = np.zeros(Z.shape[1])
    for inputs in (Z, standardized(Z * Z)):
        correlation = inputs.T @ outputs / len(Z)
        largest = np.maximum(largest, len(Z) * (correlation**2).max(axis=1))
    by_chance = 2 * np.log(2 * Z.shape[1] * outputs.shape[1])
    return np.maximum(largest - by_chance, 0.0)


def standardized(X: Floats) -> Floats:
    """Columns of mean zero and variance one; constant columns become zero."""
    X = X - X.mean(axis=0)
    spread = X.std(axis=0)
    return X / np.where(spread > 0, spread, 1.0)
