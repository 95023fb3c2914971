"""Stable partition of a node's rows, in two passes that threads share.

Rows and their packed gradients live in two buffers; a split reads one and writes the other::

    source   [ a b c d | e f g h ]        chunks of two threads
    flags      1 0 0 1   0 1 0 1          1 = goes left
    target   [ a d f h | b c e g ]        left rows first, both in their old order
"""

from numba import int64, uint8, uint64

from hilboost.backends.compiled import compiled
from hilboost.backends.sync import keep_apart, prefetch

_AHEAD = 32


@compiled
def flag_rows(bins, n, column, split_bin, missing_bin, missing_left, rows, begin, end, flags):
    """Mark the rows that go left and count them.

    Parameters
    ----------
    bins : (n_words * n * 8,) uint8, the words seen as bytes
    rows : (m,) uint32
    flags : (m,) uint8, written in ``[begin, end)``
    """
    keep_apart()
    offset = uint64((column // 8) * n * 8 + column % 8)
    threshold = uint8(split_bin)
    missing = uint8(missing_bin)
    other = uint8(missing_left)
    count = 0
    for i in range(begin, end):
        j = uint64(i)
        if i + _AHEAD < end:
            prefetch(bins, int64(offset) + 8 * int64(rows[i + _AHEAD]))
        b = bins[offset + uint64(8) * uint64(rows[j])]
        left = uint8(b <= threshold) | (other & uint8(b == missing))
        flags[j] = left
        count += left
    return count


@compiled
def move_rows(flags, rows, ordered, target_rows, target_ordered, begin, end, left, right):
    """Write rows (and packed gradients, where there are any) from ``left`` or ``right`` on."""
    keep_apart()
    if ordered.shape[0] == 0:
        for i in range(begin, end):
            j = uint64(i)
            goes_left = int64(flags[j])
            target_rows[uint64(left if goes_left else right)] = rows[j]
            left += goes_left
            right += 1 - goes_left
        return
    for i in range(begin, end):
        j = uint64(i)
        goes_left = int64(flags[j])
        position = uint64(left if goes_left else right)
        target_rows[position] = rows[j]
        target_ordered[position] = ordered[j]
        left += goes_left
        right += 1 - goes_left
