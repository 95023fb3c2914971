"""Losses and gradients of the log loss of two classes."""

from numba import uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.elementary import exp_of, log1p_of
from hilboost.backends.fixed_point import curvature


@compiled
def logistic(y, raw, value, negative, hessian):
    """``log(1 + exp(raw)) - y raw``, its negative gradient ``y - p`` and hessian ``p (1 - p)``.

    ``y``: (n,) float64, 0 or 1. ``raw``: (n,) float64. ``value``: (n,) float64, written.
    ``negative``: (n,) float64, written. ``hessian``: (n,) float64 or None: written from the
    gradients, as :func:`~hilboost.backends.fixed_point.curvature` does.
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
