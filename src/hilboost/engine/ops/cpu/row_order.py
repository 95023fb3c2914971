"""Tables whose rows are sorted within blocks.

``offsets[i]`` is the place, within its block as given, of the row that is now at position ``i``::

    positions    0 1 2 3 | 4 5 6 7        blocks of four
    offsets      2 0 3 1 | 0 2 1 3
    rows         2 0 3 1 | 4 6 5 7
"""

from numba import uint32, uint64

from hilboost.backends.compiled import compiled, inner

ROWS_PER_BLOCK = 2**16
_BLOCK_BITS = 0xFFFF0000


@inner
def row_at(position, offsets):
    """The number of the row at a position, uint32.

    position : uint32; offsets : (n,) uint16
    """
    return (uint32(position) & uint32(_BLOCK_BITS)) | uint32(offsets[uint64(position)])


@compiled
def arrange(values, offsets, begin, scratch):
    """Bring the values of the rows of one block in the order of the table.

    ``values``: (n, k) int32 or int64. ``offsets``: (n,) uint16. ``begin``: A multiple of the rows
    of a block, all of which are arranged. ``scratch``: (ROWS_PER_BLOCK, k), of the same type.
    """
    end = min(begin + ROWS_PER_BLOCK, values.shape[0])
    for c in range(values.shape[1]):
        channel = uint64(c)
        for i in range(end - begin):
            scratch[i, channel] = values[uint64(begin + i), channel]
        for i in range(begin, end):
            j = uint64(i)
            values[j, channel] = scratch[uint64(offsets[j]), channel]


@inner
def arrange_blocks(begin, end, offsets, packed, ordered, scratch):
    """Bring the packed gradients of some blocks in the order of a sorted table."""
    for block in range(begin, end, ROWS_PER_BLOCK):
        if packed is None:
            arrange(ordered.reshape((ordered.shape[0], 1)), offsets, block, scratch)
        else:
            arrange(packed, offsets, block, scratch)
