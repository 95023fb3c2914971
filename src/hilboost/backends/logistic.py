"""Losses and gradients of the log loss of two classes, and bounds of Newton steps.

Bounded are steps in logarithms of means, odds and hazards.
"""

from numba import uint64

from hilboost.backends.compiled import compiled, tiny
from hilboost.backends.elementary import exp_of, log1p_of

LONGEST_STEP = 10.0
_LEAST = 1.0 / LONGEST_STEP


@tiny
def bounded_curvature(size, factor):
    """Hessian ``size * factor`` of a gradient of this size, or more for a step within the bound."""
    return size * (factor if factor > _LEAST else _LEAST)


@tiny
def curvature(hessian, logistic):
    """The hessian of a row, or that of the log loss of two classes from its gradient.

    The gradient ``g`` is the difference of a probability and 0 or 1, and the hessian
    ``|g| (1 - |g|)``, or ``|g| / 10`` if that is more.
    """
    return bounded_curvature(abs(hessian), 1.0 - abs(hessian)) if logistic else hessian


@compiled
def logistic(y, raw, value, negative, hessian):
    """``log(1 + exp(raw)) - y raw``, its negative gradient ``y - p`` and hessian ``p (1 - p)``.

    ``y``: (n,) float64, 0 or 1. ``raw``: (n,) float64. ``value``: (n,) float64, written.
    ``negative``: (n,) float64, written. ``hessian``: (n,) float64 or None: written from the
    gradients, as :func:`curvature` does.
    """
    for i in range(raw.shape[0]):
        j = uint64(i)
        x = raw[j]
        e = exp_of(-abs(x))
        p = (1.0 if x >= 0.0 else e) / (1.0 + e)
        value[j] = log1p_of(e) + ((x if x > 0.0 else 0.0) - y[j] * x)
        negative[j] = y[j] - p
        if hessian is not None:
            hessian[j] = curvature(negative[j], True)
