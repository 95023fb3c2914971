"""Data types of arrays that are passed between packages, and of arguments of users."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PerRow = ArrayLike | None
"""An argument with one entry for each row, such as a weight."""
Seed = int | np.random.RandomState | None
"""An argument ``random_state``, as in scikit-learn."""

NO_NUMBER = (TypeError, ValueError, OverflowError)
"""Errors of conversions to float64, with that for integers beyond its range."""

RAW = np.float64  # link-space sums, gradients, leaf values
ROW = np.uint32  # row numbers
LEAF = np.int32  # leaf numbers
WORD = np.uint64  # eight bins
PACKED = np.int64  # fixed-point gradients
COMPACT = np.int32  # gradients of large tables
MAX_ROWS = 2**31 - 1
