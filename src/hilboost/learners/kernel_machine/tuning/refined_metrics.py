"""Metrics in place of the diagonal one, where held-out rows show that they suit.

These are linear maps of the features, and additive kernels.  The gradients of fitted functions also
give length scales of a kernel of a table, and the columns that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Additive, Mapped
from hilboost.kernels.marginal_likelihood import AnyKernel, Effort, Evidence, LogScalePrior
from hilboost.learners.kernel_machine.tuning.metric import (
    FIRST_NOISE,
    KERNEL,
    PARTS,
    SMALLEST_RIDGE,
    Metric,
    Problem,
    learned_metric,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    Candidate,
    Rows,
    mean_and_standard_error,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import USUAL_FAMILY, Columns, TableKernel

_FEWEST_OF_A_PART = 60  # rows, for additive kernels
_SPREAD = 3.0  # of the logarithms of their length scales
_RIDGES = (0.3, 1.0, 3.0)  # factors of the ridge that are compared

# Of length scales:
_FEWEST_ROWS, _ROWS, _ROWS_OF_MAP = 20, 400, 1000
_MOST_COLUMNS, _MOST_ADDITIVE = 256, 24


@dataclass(frozen=True)
class _Look:
    """A comparison of the most likely kernel of some rows with the usual one on other rows."""

    n_learned: int
    n_judged: int
    n_steps: int  # of the likelihood
    n_errors: float  # standard errors that the decrease of the error must exceed
    # or else, by how much the likelihood of the rows that judge must be larger, too
    nats: float = np.inf


_LOOKS_AT_MAPS = _Look(300, 300, 8, 1.0), _Look(450, 600, 6, 1.5), _Look(900, 600, 8, 2.0)
_LOOKS_AT_SUMS = _Look(200, 400, 15, -1.0), _Look(300, 600, 10, -0.5), _Look(600, 600, 15, 2.0, 5.0)


def refined_metrics(
    rows: Rows,  # X are features
    metric: Metric,  # the diagonal metric
    most_additive: int,  # number of features of an additive kernel
    team: ThreadTeam | None = None,  # threads that share the searches and their matrices
    rotates: bool = True,  # whether linear maps are tried
) -> list[Metric]:
    """Learn a linear map, and an additive kernel that is better than it; neither without gain."""
    searches: list[Callable[..., Metric | None]] = [rotated_metric] if rotates else []
    if np.count_nonzero(metric.axes) <= most_additive:
        searches.insert(0, additive_metric)  # in most tables the longer one
    team = team or ThreadTeam()
    results = team.map(lambda search: search(rows, metric, team), searches)
    found = [better for better in reversed(results) if better is not None]
    if len(found) == 2:
        used = np.flatnonzero(metric.axes)
        judged = Problem.divided(rows.of_columns(used), team)[1]
        usual, additive = (_model_of(better, used) for better in found)
        if not _is_better(additive, usual, _LOOKS_AT_SUMS[-1], judged):
            found.pop()
    return found


def rotated_metric(rows: Rows, metric: Metric, team: ThreadTeam | None = None) -> Metric | None:
    """Learn a linear map of the features, if it is clearly better than a diagonal metric.

    The map and the ridge maximize the marginal likelihood of three fifths of the rows, beginning
    at the metric.  A map has many entries, which adapt to the noise of these rows, so that they
    must be fewer than twice the rows, and the leave-one-out error of the other rows decides.
    """
    used = np.flatnonzero(metric.axes)
    q, scales = len(used), metric.axes[used]
    some = rows.of_columns(used)
    learned, judged = Problem.divided(replace(some, X=some.X * scales), team)
    if min(len(learned.Z), len(judged.Z)) < PARTS or len(learned.Z) < q * (q + 1) // 2:
        return None
    start = Evidence(Mapped(KERNEL, np.eye(q)), metric.ridge, np.inf)
    usual = Evidence(KERNEL, metric.ridge, np.inf)
    found = _clearly_better(usual, start, _LOOKS_AT_MAPS, learned, judged)
    if found is None:
        return None
    axes = np.zeros((len(metric.axes), q))
    axes[used] = scales[:, None] * found.kernel.matrix / found.kernel.length_scale
    return Metric(axes, found.noise)


def additive_metric(
    rows: Rows,  # X are features
    metric: Metric,  # the diagonal metric; features that it leaves out are left out here, too
    team: ThreadTeam | None = None,  # threads that share matrices
) -> Metric | None:
    """Learn an additive kernel, if it is clearly better than a diagonal metric.

    Length scales, shares and the ridge maximize the marginal likelihood of three fifths of the
    rows.  The leave-one-out error of the other rows decides.
    """
    used = np.flatnonzero(metric.axes)
    learned, judged = Problem.divided(rows.of_columns(used), team)
    if min(len(learned.Z), len(judged.Z)) < _FEWEST_OF_A_PART or len(used) < 2:
        return None
    start = Evidence(Additive(np.ones(len(used))), FIRST_NOISE, np.inf)
    usual = _model_of(metric, used)
    prior = LogScalePrior((slice(0, len(used)),), _SPREAD)
    found = _clearly_better(usual, start, _LOOKS_AT_SUMS, learned, judged, prior)
    if found is None:
        return None
    # Divided by its variance over the rows, so that ridges of different kernels are comparable.
    kernel, K = found.kernel, found.kernel.block(judged.Z, judged.Z)
    variance = float(np.diag(K).mean() - K.mean())
    scales = np.zeros(len(metric.axes))
    scales[used] = 1 / kernel.length_scale
    shares = np.array([kernel.main, kernel.pairs]) / variance
    return Metric(scales, max(found.noise / variance, SMALLEST_RIDGE), shares=shares)


def _clearly_better(
    usual: Evidence[Any],
    start: Evidence[AnyKernel],
    looks: Iterable[_Look],
    learned: Problem,
    judged: Problem,
    prior: LogScalePrior | None = None,
) -> Evidence[AnyKernel] | None:
    """Return the most likely kernel, if it is better than the usual one.

    The likelihood is that of more and more rows, and most searches end with the first ones.
    """
    found = start
    for look in looks:
        effort = Effort(look.n_steps, team=judged.team, any_amplitude=True)
        found = learned.first(look.n_learned).maximized(found.kernel, found.noise, effort, prior)
        if found.value == np.inf or not _is_better(found, usual, look, judged):
            return None
    return found


def _is_better(found: Evidence[Any], usual: Evidence[Any], look: _Look, judged: Problem) -> bool:
    some = judged.first(look.n_judged)
    before, after = _errors(some, usual), _errors(some, found)
    if not max(before.max(), after.max()) < np.inf:
        return False
    gain, error = mean_and_standard_error(before - after, some.weight)
    if gain > look.n_errors * error:
        return True
    is_judged = gain > 0 and look.nats < np.inf
    return is_judged and _surprise(some, usual) - _surprise(some, found) >= look.nats


def _model_of(metric: Metric, used: NDArray[np.intp]) -> Evidence[Any]:
    """The kernel of the features in use that a metric stands for, and the noise."""
    axes = metric.axes[used]
    if metric.shares is not None:
        return Evidence(Additive(1 / axes, *metric.shares.tolist()), metric.ridge, np.inf)
    mapped = Mapped(KERNEL, np.diag(axes) if axes.ndim == 1 else axes)
    return Evidence(mapped, metric.ridge, np.inf)


def _errors(problem: Problem, model: Evidence[Any]) -> Floats:
    """Squared leave-one-out errors (m,) with the best of some ridges."""
    K = model.kernel.block(problem.Z, problem.Z)
    unit = float(K[0, 0])  # of a kernel with any amplitude
    K, ridges = K / unit, [max(model.noise / unit * by, SMALLEST_RIDGE) for by in _RIDGES]
    residuals = problem.team.map(lambda ridge: problem.residuals(K, ridge)[0], ridges)
    found = [(left**2).sum(axis=1) for left in residuals]
    return min(found, key=lambda errors: float(errors @ problem.weight))


def _surprise(problem: Problem, model: Evidence[Any]) -> float:
    """Negative log likelihood of the rows with the best of some ridges."""
    ridges = [max(model.noise * by, SMALLEST_RIDGE) for by in _RIDGES]
    return min(problem.surprise(model.kernel, ridge) for ridge in ridges)


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
