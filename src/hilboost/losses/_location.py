"""Weighted means and quantiles, by column or by leaf."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import mass_of, quotient, sum_of
from hilboost.backends.trees.leaves import leaf_quantiles, weighted_quantile
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Loss, TargetUnits
from hilboost.core.target import Target

_LARGEST_EXPONENT = 256
"""Targets with an absolute value between 2^-256 and 2^256 are not scaled."""
_LARGEST_VALUE = 1016
"""Logarithm to base 2 of the largest loss of a row, with some room for several columns."""


def mean(target: Target) -> Floats:
    """Compute the weighted mean of every column of ``y``, (c,), from exact sums."""
    mass = mass_of(target.weight, len(target.y))
    return np.array([quotient(sum_of(y, target.weight), mass) for y in target.y.T])


def extreme_units(
    loss: Loss, target: Target, scaled: Callable[[float], Loss]
) -> TargetUnits | None:
    """Find units for a location loss when targets are too large or too small to be squared.

    Parameters
    ----------
    loss : Loss
        Its own class must declare its ``degree``; a derived class may compute anything.
    target : Target
    scaled : callable
        Maps the unit, a power of two, to the loss of ``y / unit``.

    Returns
    -------
    TargetUnits or None

    Raises
    ------
    InvalidData
        Values of the loss exceed the range of float64.
    """
    if "degree" not in vars(type(loss)) or loss.degree is None:
        return None
    largest = float(np.abs(target.y).max())
    exponent = int(np.frexp(largest)[1])
    if largest == 0 or abs(exponent) <= _LARGEST_EXPONENT:
        return None
    if loss.degree * exponent > _LARGEST_VALUE:
        raise InvalidData(
            f"y contains absolute values up to {largest:.3g}, for which {type(loss).__name__} "
            "exceeds the range of float64. Divide y by a constant."
        )
    unit = 2.0**exponent
    size = np.full(target.y.shape[1], unit)
    return TargetUnits(loss, scaled(unit), size, factor=unit, value=unit**loss.degree)


def quantile(values: Floats, weight: Floats | None, level: float) -> float:
    """Compute the weighted quantile of ``values`` (n,); equal weights and level 1/2: the median."""
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
    """Compute the weighted quantile of the residuals (n,) in every leaf, (n_leaves,)."""
    weights = np.empty(0) if weight is None else weight
    return leaf_quantiles(np.ascontiguousarray(residual), weights, leaves, n_leaves, level)
