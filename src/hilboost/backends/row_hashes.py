"""64-bit hashes of rows, by which equal rows are found.

The hash of a row is the sum of hashes of its cells. That of a zero, which sparse tables do not
store, is 0. Equal numbers of float32 and float64 have the same hash, as do all NaN.
"""

from numba import float64, uint64

from hilboost.backends.compiled import compiled, tiny
from hilboost.backends.intrinsics import float_bits

_NAN = 0x7FF8000000000000
_OF_VALUES, _OF_COLUMNS = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


@tiny
def _hash_of_cell(value, column):
    if value == 0.0:
        return uint64(0)
    bits = uint64(_NAN) if value != value else uint64(float_bits(float64(value)))
    mixed = ((bits >> uint64(32)) ^ bits) * uint64(_OF_VALUES)
    mixed += uint64(column + 1) * uint64(_OF_COLUMNS)
    return (mixed ^ (mixed >> uint64(29))) * uint64(_OF_COLUMNS)


@compiled
def add_hashes(values, columns, hashes):
    """Add the hashes of the cells of some columns.

    values : (n, d) float64 or float32; columns : (d,) int64; hashes : (n,) uint64
    """
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            hashes[i] += _hash_of_cell(values[i, k], columns[k])


@compiled
def add_sparse_hashes(values, columns, starts, hashes):
    """Add the hashes of the stored cells.

    values : (m,) float64 or float32; columns : (m,); starts : (n + 1,); hashes : (n,) uint64
    """
    for i in range(hashes.shape[0]):
        for t in range(starts[i], starts[i + 1]):
            hashes[i] += _hash_of_cell(values[t], columns[t])
