"""Exponentials and logarithms in arithmetic alone.

Loops over them become vector code, and a number has the same result wherever it is in an array, and
on any processor.  The error is about one unit in the last place.
"""

import math

import numpy as np

from hilboost.backends.compiled import tiny
from hilboost.backends.intrinsics import float_bits, float_of_bits

_ROUNDING = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number, in the last bits
_PER_LOG_2 = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_LOG_2_HIGH, _LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LOWEST = -708.0  # the exponential of less is not a normal number
_E = tuple(1.0 / math.factorial(n) for n in range(14))
_L = tuple(1.0 / (2 * n + 1) for n in range(12))


@tiny
def exp_of(x):
    """``exp(x)`` for ``x`` up to 0; that of -708 if ``x`` is less.

    With ``x = k log(2) + r``, it is ``2**k exp(r)``, the latter by its Taylor series.
    """
    x = _LOWEST if x < _LOWEST else x
    shifted = x * _PER_LOG_2 + _ROUNDING
    k = shifted - _ROUNDING
    r = (x - k * _LOG_2_HIGH) - k * _LOG_2_LOW
    s = _E[8] + r * (_E[9] + r * (_E[10] + r * (_E[11] + r * (_E[12] + r * _E[13]))))
    s = _E[2] + r * (_E[3] + r * (_E[4] + r * (_E[5] + r * (_E[6] + r * (_E[7] + r * s)))))
    power = 1.0 + (r + (r * r) * s)
    return float_of_bits(float_bits(power) + (float_bits(shifted) << np.int64(52)))


@tiny
def log1p_of(x):
    """``log(1 + x)`` for ``x`` from 0 to 1.

    It is ``2 artanh(t)`` with ``t = a / (2 + a)``, where ``1 + a`` is ``1 + x`` or half of it.
    """
    is_far = x > 0.41421356237309503
    a = (x - 1.0) * 0.5 if is_far else x
    t = a / (2.0 + a)
    s = t * t
    q = _L[6] + s * (_L[7] + s * (_L[8] + s * (_L[9] + s * (_L[10] + s * _L[11]))))
    q = _L[1] + s * (_L[2] + s * (_L[3] + s * (_L[4] + s * (_L[5] + s * q))))
    twice = 2.0 * t
    return (twice + twice * (s * q)) + (_LOG_2 if is_far else 0.0)
