"""Length scales from the gradients of fitted functions, and the columns that matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.kernels import Additive
from hilboost.learners.kernel_machine.tuning.metric import Metric, learned_metric
from hilboost.learners.kernel_machine.tuning.refined_metrics import refined_metrics
from hilboost.learners.kernel_machine.tuning.scoring import Candidate, Rows
from hilboost.learners.kernel_machine.tuning.table_kernel import USUAL_FAMILY, Columns, TableKernel

_FEWEST_ROWS, _ROWS, _ROWS_OF_MAP = 20, 400, 1000
_MOST_COLUMNS, _MOST_ADDITIVE = 256, 24


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
