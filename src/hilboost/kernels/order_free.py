"""Sums of arrays that do not depend on the order of the terms.

Terms are rounded to a grid so coarse that adding them is exact, and what is cut off to a finer
one::

    term    =  high  +  low  +  less than 2**-80 of the bound
    sum     =  sum of all high  +  sum of all low,    both exact, rounded once

Workers that add up some of the terms each, and then their sums, find the same bits as one process.
"""

from __future__ import annotations

import math

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.exchange import Exchange

_DIGITS = 52
_SMALLEST_EXPONENT = -800


class OrderFreeSum:
    """A sum of float64 arrays.

    ``beside``: An array of the same library and device. ``bound``: Bound of the sum of the absolute
    values; if it is exceeded, rounding depends on the order. ``n_terms``: Maximum number of terms.
    """

    def __init__(self, shape: tuple[int, ...], beside: Array, bound: float, n_terms: int) -> None:
        bound = min(max(bound, 2.0**_SMALLEST_EXPONENT), 2.0**900)
        exponent = math.frexp(bound)[1]
        self._coarse = math.ldexp(1.5, exponent)  # its last digit is the coarse grid
        finer = exponent - _DIGITS + max(n_terms, 1).bit_length()
        self._fine = math.ldexp(1.5, finer)
        self._high = array_api.zeros(shape, beside, "float64")
        self._low = array_api.zeros(shape, beside, "float64")

    def add(self, term: Array, rows: slice = slice(None)) -> None:
        """Add a term, which is overwritten, to the whole sum or to some of its rows."""
        high = term + self._coarse
        high -= self._coarse
        self._high[rows] += high
        term -= high
        term += self._fine
        term -= self._fine
        self._low[rows] += term

    def total(self, exchange: Exchange | None) -> Array:
        """Return the sum over the terms of all workers."""
        if exchange is None:
            return self._high + self._low
        parts = np.stack([array_api.to_numpy(self._high), array_api.to_numpy(self._low)])
        high, low = exchange.added(parts)
        return array_api.like(high + low, self._high, "float64")
