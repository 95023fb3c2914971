"""Naive twins of :mod:`hilboost.engine.ops.cpu.column_splits`, in Python integers."""

from hilboost.engine.ops.reference.criterion import leaf_value, score_of_value


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
        return leaf_value(0.0, 0.0, weight, limits), 0.0
    step = leaf_value(gradient, hessian, weight, limits)
    return step, score_of_value(step, gradient, hessian, limits.l2)
