"""Distinct values of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array (n,), ascending.

    NumPy finds distinct integers by hash tables, which takes longer than to sort them.
    """
    if values.dtype.kind not in "biu" or not len(values):
        return np.unique(values)
    values = np.sort(values)
    is_first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values[is_first]
