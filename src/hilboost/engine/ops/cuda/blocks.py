"""Blocks of threads that work on the rows of nodes, on processors and on GPUs.

A kernel is a sequence of phases.  A phase is a function of the numbers of a block and of a thread,
the memory that the threads of the block share, and the arrays of the device.  The threads of a
block wait for each other between two phases and never within one::

    GPU         all threads: phase 1 | all threads: phase 2 | …        blocks at the same time
    processor   thread 0, thread 1, … of phase 1, then of phase 2, …   one block after the other

Other threads may add to the same memory at the same time, in any order, which changes no sum of
integers.  The order of the rows of a node is arbitrary.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint32, uint64

from hilboost.backends.compiled import inner, tiny


class Kernel(NamedTuple):
    """The phases of what a device does in one launch."""

    phases: tuple[Any, ...]
    n_shared: int  # numbers of 32 bits that the threads of a block share


THREADS = 256
"""Threads of a block."""

PART = 8
"""Rows that a thread divides."""

# Fields of a step: the rows of a node in one of two arrays, the first block that works on them, the
# split of the node, and how many of its rows went left and right so far.
BEGIN, END, SIDE, FIRST_BLOCK, COLUMN, CUT, MISSING_LEFT, BY_LEVEL, N_LEFT, N_RIGHT = range(10)

LEFT_SET, N_FIELDS = 10, 14

# In place of rows, for all nodes of a tree: the left child, and the leaf (-1: none).
CHILD, LEAF = 0, 1


# What GPUs have instructions of their own for.
@tiny
def add_to(array, place, number):
    """Add to an element, and return what it was before."""
    before = array[place]
    array[place] = before + number
    return before


@tiny
def raise_to(array, place, number):
    """Replace an element by a larger number."""
    if number > array[place]:
        array[place] = number


@tiny
def nearest(number):
    """The nearest integer, the even one of two."""
    return np.rint(number)


@tiny
def integer_below(number):
    """The largest integer that is not above a number."""
    return np.floor(number)


@tiny
def product(one, other):
    """A product, which is rounded before anything is added to it."""
    return one * other


@tiny
def add_word(shared, cell, number):
    """Add to 64 bits, as two additions of 32 bits with carry."""
    low, high = uint64(number) & uint64(0xFFFFFFFF), uint64(number) >> uint64(32)
    before = uint64(add_to(shared, 2 * cell, uint32(low)))
    high = (high + ((before + low) >> uint64(32))) & uint64(0xFFFFFFFF)
    if high != uint64(0):
        add_to(shared, 2 * cell + 1, uint32(high))


@tiny
def word_of(shared, cell):
    """64 bits of the shared memory."""
    return int64(uint64(shared[2 * cell]) | (uint64(shared[2 * cell + 1]) << uint64(32)))


@tiny
def item_of(block, steps):
    """The node on which a block works."""
    item = int64(0)
    while steps[item + 1, FIRST_BLOCK] <= block:
        item += 1
    return item


@tiny
def _bin_of(words, column, row):
    word = words[column // 8, row]
    return int64((word >> uint64(8 * (column % 8))) & uint64(255))


@tiny
def goes_left(words, row, steps, item, missing_bin):
    """Whether the split of a node sends a row to the left."""
    b = _bin_of(words, steps[item, COLUMN], row)
    if b == missing_bin:
        return steps[item, MISSING_LEFT] != 0
    if steps[item, BY_LEVEL] != 0:
        members = uint64(steps[item, LEFT_SET + b // 64])
        return (members >> uint64(b % 64)) & uint64(1) != uint64(0)
    return b <= steps[item, CUT]


@inner
def clear(block, thread, shared, work):
    """Set the shared memory to zero."""
    for i in range(thread, shared.shape[0], THREADS):
        shared[i] = 0
