"""Values that differ by rounding alone, as different formulas for the same number do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, Ints

ROUNDING = 2.0**-46  # difference of two results for the same number, relative to its size
_MOST_ROUNDING = 2.0**-44  # range of many results for it
_ONE_SCALE = 2.0**-24  # least size in a column of one scale, relative to the typical size
_BEYOND_INTEGERS = 2.0**64


def without_rounding(values: Floats) -> Floats:
    """Replace finite values (n,) that differ by rounding alone by the least of them."""
    distinct, place = np.unique(values, return_inverse=True)
    finite = np.flatnonzero(np.isfinite(distinct))
    if len(finite) < 2:
        return values
    ends = ends_of_equals(distinct[finite], None)
    least = distinct[finite][np.append(0, ends[:-1] + 1)]
    distinct[finite] = np.repeat(least, np.diff(ends, prepend=-1))
    return distinct[place]


def are_close(low: Floats, high: Floats, tolerance: Floats | float) -> NDArray[np.bool_]:
    """Whether ascending numbers differ by no more than a tolerance."""
    with np.errstate(over="ignore"):
        return high - low <= tolerance


def ends_of_equals(distinct: Floats, mass: Floats | None) -> Ints:
    """Find the last value of each run of values that differ by rounding alone.

    Integers are exact, and so are values so dense that a run exceeds the rounding of one number.
    """
    size, n = np.abs(distinct), len(distinct)
    if size.max() < _BEYOND_INTEGERS and (distinct == np.rint(distinct)).all():
        return np.arange(n)
    size = np.maximum(size, _size_of_one_scale(size, mass))
    apart = ~are_close(distinct[:-1], distinct[1:], ROUNDING * np.maximum(size[:-1], size[1:]))
    first = np.flatnonzero(np.append(True, apart))
    last = np.append(first[1:] - 1, n - 1)
    most = _MOST_ROUNDING * np.maximum(size[first], size[last])
    apart |= ~are_close(distinct[first], distinct[last], most)[np.cumsum(apart)]
    return np.append(np.flatnonzero(apart), n - 1)


def _size_of_one_scale(size: Floats, mass: Floats | None) -> float:
    """Size that a quarter of the nonzero values reach; 0 if sizes between it and zero occur."""
    order = np.argsort(-size, kind="stable")[: np.count_nonzero(size)]
    masses = np.cumsum(np.ones(len(order)) if mass is None else mass[order])
    typical = size[order][np.searchsorted(masses, 0.25 * masses[-1])]
    smallest = size[size > ROUNDING * typical].min()
    return float(typical) if smallest >= _ONE_SCALE * typical else 0.0
