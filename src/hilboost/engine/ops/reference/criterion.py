"""The value of a leaf and the gain of a split in plain NumPy."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.criterion import LeafLimits

Pair = tuple[Floats, Floats]  # sums of gradients and of hessians

_quietly = np.errstate(divide="ignore", invalid="ignore")


@_quietly
def leaf_value(gradient: Floats, hessian: Floats, weight: Floats, limits: LeafLimits) -> Floats:
    """The Newton step, 0 where the hessians vanish, or the bound; the weight does not matter."""
    l2, lower, upper = limits
    step = np.where(hessian + l2 > 0, np.divide(gradient, hessian + l2), 0.0)
    return np.minimum(np.maximum(step, lower), upper)


def score_of_value(value: Floats, gradient: Floats, hessian: Floats, l2: float) -> Floats:
    """By how much any value reduces twice the quadratic loss."""
    return value * (2.0 * gradient - (hessian + l2) * value)


@_quietly
def leaf_score(gradient: Floats, hessian: Floats, l2: float) -> Floats:
    """By how much the Newton step does; 0 without hessians."""
    return np.where(hessian > 0, np.divide(gradient * gradient, hessian + l2), 0.0)


@_quietly
def score_of_sides(left: Pair, right: Pair, l2: float) -> Floats:
    """The sum of two scores by one division, or ``NO_GAIN`` where the hessians of a side vanish."""
    a, c = left[1] + l2, right[1] + l2
    top = left[0] * left[0] * c + right[0] * right[0] * a
    return np.where(a * c > 0, np.divide(top, a * c), NO_GAIN)


@_quietly
def split_gain(sides: Floats, parent: Floats, left_weight: Floats, right_weight: Floats) -> Floats:
    """The gain of a split, to which the weights of the rows of both sides do not matter."""
    return sides - parent
