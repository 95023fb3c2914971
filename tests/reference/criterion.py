"""Naive twin of :mod:`hilboost.engine.ops.cpu.criterion`; that of a single sum is in NumPy."""

import numpy as np

from hilboost.engine.ops.cpu.criterion import LeafLimits, LeafSums
from hilboost.engine.ops.reference.criterion import value_within


def leaf_values(gradients, hessians, weights, criterion, bounds, values):
    lower, upper = (-np.inf, np.inf) if bounds is None else bounds.swapaxes(0, 1)
    sums = LeafSums(gradients, hessians, weights[:, None])
    values[:] = value_within(sums, LeafLimits(criterion, lower, upper))
