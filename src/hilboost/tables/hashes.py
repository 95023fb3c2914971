"""Hashes of cells, whose sums are hashes of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

_OF_VALUES, _OF_COLUMNS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_HALF, _SOME = np.uint64(32), np.uint64(29)


def cell_hashes(values: Floats, columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Hash values of some columns; the hash of zeros, which sparse tables do not store, is 0.

    ``values``: equal numbers of float32 and float64 have the same hash, as do 0 and -0, and all
    NaN. ``columns``: number of the column of each value.
    """
    numbers = np.add(values, 0.0, dtype=np.float64)
    missing = np.isnan(numbers)
    if missing.any():
        numbers[missing] = np.nan
    bits = numbers.view(np.uint64)
    mixed = bits >> _HALF
    mixed ^= bits
    mixed *= _OF_VALUES
    mixed += (columns.astype(np.uint64) + np.uint64(1)) * _OF_COLUMNS
    mixed ^= mixed >> _SOME
    mixed *= _OF_COLUMNS
    mixed *= bits != 0
    return mixed
