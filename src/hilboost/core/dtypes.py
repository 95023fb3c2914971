"""Data types of arrays that are passed between packages."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RAW = np.float64  # link-space sums, gradients, leaf values
ROW = np.uint32  # row numbers
LEAF = np.int32  # leaf numbers
WORD = np.uint64  # eight bins
PACKED = np.int64  # fixed-point gradients
COMPACT = np.int32  # gradients of large tables
MAX_ROWS = 2**31 - 1
