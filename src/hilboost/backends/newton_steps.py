"""Lengths of Newton steps in logarithms of means, odds and hazards."""

from hilboost.backends.compiled import tiny

LONGEST_STEP = 10.0
_LEAST = 1.0 / LONGEST_STEP


@tiny
def bounded_curvature(size, factor):
    """Hessian ``size * factor`` of a gradient of this size, or more for a step within the bound."""
    return size * (factor if factor > _LEAST else _LEAST)
