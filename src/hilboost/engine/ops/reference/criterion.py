"""The value of a leaf and the gain of a split in plain NumPy."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.engine.ops.cpu.column_splits import NO_GAIN
from hilboost.engine.ops.cpu.criterion import Criterion, LeafLimits, LeafSums

Numbers = float | Floats

_quietly = np.errstate(divide="ignore", invalid="ignore")


@_quietly
def leaf_value(sums: LeafSums, criterion: Criterion) -> Floats:
    """The Newton step, 0 where the hessians vanish."""
    bottom = np.asarray(sums.hessian + criterion.l2)
    return np.where(bottom > 0, np.divide(sums.gradient, bottom), 0.0)


def value_within(sums: LeafSums, limits: LeafLimits) -> Floats:
    """The value of a leaf, or the bound that it exceeds."""
    return np.minimum(np.maximum(leaf_value(sums, limits.criterion), limits.lower), limits.upper)


def score_of_value(value: Floats, sums: LeafSums, criterion: Criterion) -> Floats:
    """By how much any value reduces twice the quadratic loss."""
    return value * (2.0 * sums.gradient - (sums.hessian + criterion.l2) * value)


@_quietly
def leaf_score(sums: LeafSums, criterion: Criterion) -> Floats:
    """By how much the value of a leaf does; 0 without hessians."""
    gradient, hessian, _ = map(np.asarray, sums)
    return np.where(hessian > 0, np.divide(gradient * gradient, hessian + criterion.l2), 0.0)


@_quietly
def score_of_sides(left: LeafSums, right: LeafSums, criterion: Criterion) -> Floats:
    """The sum of two scores by one division, or ``NO_GAIN`` where the hessians of a side vanish."""
    a, c = np.asarray(left.hessian + criterion.l2), np.asarray(right.hessian + criterion.l2)
    top = left.gradient * left.gradient * c + right.gradient * right.gradient * a
    return np.where(a * c > 0, np.divide(top, a * c), NO_GAIN)


@_quietly
def split_gain(
    sides: Floats, parent: Floats, left_weight: Numbers, right_weight: Numbers, criterion: Criterion
) -> Floats:
    """The gain of a split from the sum of both sides' scores and the score of the node."""
    return sides - parent
