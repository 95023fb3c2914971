"""The one table of dtypes."""

import numpy as np

RAW = np.float64  # link-space sums, gradients, leaf values
ROW = np.uint32  # row numbers
CELL = np.int32  # leaf numbers
WORD = np.uint64  # eight bins
PACKED = np.int64  # fixed-point gradients
MAX_ROWS = 2**31 - 1
