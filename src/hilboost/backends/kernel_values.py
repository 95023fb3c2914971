"""Values of kernels from squared distances, in one pass over them."""

import math

from numba import uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.elementary import exp_of

_LOWEST = -708.0  # the exponential of less is not a normal number, and becomes zero


@compiled
def exponentials(x):
    """Replace numbers up to 0 by their exponentials.

    ``x``: (n,) float64, overwritten.
    """
    for i in range(x.shape[0]):
        k = uint64(i)
        value = x[k]
        x[k] = 0.0 if value < _LOWEST else exp_of(value)


@compiled
def matern52(squares, is_slope):
    """Replace ``s²`` by ``(1 + t + t²/3) exp(-t)`` with ``t = sqrt(5) s``, or by its derivative.

    ``squares``: (n,) float64, overwritten. ``is_slope``: whether to compute the derivative with
    respect to ``s²``, ``-5/6 (1 + t) exp(-t)``.
    """
    factor, linear, quadratic = (-5.0 / 6.0, 1.0, 0.0) if is_slope else (1.0, 1.0, 1.0 / 3.0)
    for i in range(squares.shape[0]):
        k = uint64(i)
        t = math.sqrt(5.0 * squares[k])
        decay = 0.0 if -t < _LOWEST else exp_of(-t)
        squares[k] = factor * (1.0 + t * (linear + t * quadratic)) * decay
