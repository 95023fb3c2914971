"""Naive twin of :mod:`hilboost.engine.ops.cpu.criterion`; that of a single sum is in NumPy."""

from hilboost.engine.ops.reference.criterion import leaf_value


def leaf_values(gradients, hessians, l2, values):
    values[:] = leaf_value(gradients, hessians, l2)
