"""Naive twins of :mod:`hilboost.engine.ops.cpu.column_splits`, in Python integers."""

from hilboost.engine.ops.cpu.criterion import LeafSums
from hilboost.engine.ops.reference.criterion import score_of_value, value_within


def unpack(value, packing):
    """Gradient, hessian and count of a packed sum."""
    value = int(value)
    count = value & packing.count_mask
    hessian = ((value >> packing.hessian_shift) & packing.hessian_mask) * packing.steps[1]
    hessian += count * packing.hessian_of_count
    return (value >> packing.gradient_shift) * packing.steps[0], hessian, count


def bounded_score(value, weight, packing, limits):
    gradient, hessian, _ = unpack(value, packing)
    if hessian <= 0:
        return value_within(LeafSums(0.0, 0.0, weight), limits), 0.0
    sums = LeafSums(gradient, hessian, weight)
    step = value_within(sums, limits)
    return step, score_of_value(step, sums, limits.criterion)
