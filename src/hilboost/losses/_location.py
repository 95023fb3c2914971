"""Weighted means and quantiles of columns and of leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.leaves import leaf_quantiles, weighted_quantile
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Target


def mean(target: Target) -> Floats:
    """Weighted mean of every column of ``y``, (c,)."""
    return np.average(target.y, axis=0, weights=target.weight)


def quantile(values: Floats, weight: Floats | None, level: float) -> float:
    """Weighted quantile of ``values`` (n,); with equal weights and level 1/2 the median."""
    order = np.argsort(values, kind="stable")
    weights = np.ones(len(values)) if weight is None else weight[order]
    return float(weighted_quantile(values[order], weights, level))


def quantiles_of_leaves(
    residual: Floats,
    weight: Floats | None,
    leaves: NDArray[np.int32],
    n_leaves: int,
    level: float,
) -> Floats:
    """Weighted quantile of the residuals (n,) in every leaf, (n_leaves,)."""
    weights = np.empty(0) if weight is None else weight
    return leaf_quantiles(np.ascontiguousarray(residual), weights, leaves, n_leaves, level)
