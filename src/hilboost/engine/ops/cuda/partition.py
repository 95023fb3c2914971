"""Division of the rows of nodes.

The shared memory holds, for each thread, the rows before its own that go left and the flags of its
own; then the same for groups of threads, and where the block writes.
"""

from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny
from hilboost.engine.ops.cuda.blocks import (
    BEGIN,
    END,
    FIRST_BLOCK,
    N_LEFT,
    N_RIGHT,
    PART,
    SIDE,
    THREADS,
    Kernel,
    add_to,
    goes_left,
    item_of,
)

_GROUP = 16

_FLAGS, _OF_GROUPS = THREADS, 2 * THREADS

_LEFT_PLACE, _RIGHT_PLACE = _OF_GROUPS + _GROUP, _OF_GROUPS + _GROUP + 1


class PartitionWork(NamedTuple):
    """Nodes whose rows are divided."""

    words: NDArray[np.uint64]  # (n_words, n)
    rows: NDArray[np.uint32]  # (2, m)
    ordered: NDArray[np.int64]  # (2, m), or (2, 0) with several channels
    steps: NDArray[np.int64]  # (n_nodes + 1, N_FIELDS)
    missing_bin: int


@tiny
def _rows_of_thread(block, thread, item, steps):
    first = steps[item, BEGIN] + (block - steps[item, FIRST_BLOCK]) * (PART * THREADS)
    begin = first + PART * thread
    return first, begin, min(begin + PART, steps[item, END])


@inner
def flag_rows(block, thread, shared, work):
    """Note which rows of a thread go left."""
    steps, item = work.steps, item_of(block, work.steps)
    _, begin, end = _rows_of_thread(block, thread, item, steps)
    side, flags, n_left = steps[item, SIDE], int64(0), int64(0)
    for i in range(begin, end):
        row = int64(work.rows[side, i])
        if goes_left(work.words, row, steps, item, work.missing_bin):
            flags |= int64(1) << (i - begin)
            n_left += 1
    shared[thread], shared[_FLAGS + thread] = n_left, flags


@tiny
def _sum_before(shared, begin, end):
    """Replace numbers by the sums of those before them, and return the sum of all."""
    total = int64(0)
    for i in range(begin, end):
        here = int64(shared[i])
        shared[i] = total
        total += here
    return total


@inner
def count_in_groups(block, thread, shared, work):
    """Count the rows that go left before each thread of a group."""
    if thread < THREADS // _GROUP:
        begin = _GROUP * thread
        shared[_OF_GROUPS + thread] = _sum_before(shared, begin, begin + _GROUP)


@inner
def claim_places(block, thread, shared, work):
    """Find where the rows of the block go: the left ones from the first place of the node on."""
    if thread == 0:
        steps, item = work.steps, item_of(block, work.steps)
        n_left = _sum_before(shared, _OF_GROUPS, _OF_GROUPS + THREADS // _GROUP)
        first, _, _ = _rows_of_thread(block, thread, item, steps)
        n_right = min(PART * THREADS, steps[item, END] - first) - n_left
        shared[_LEFT_PLACE] = steps[item, BEGIN] + add_to(steps, (item, N_LEFT), n_left)
        before = add_to(steps, (item, N_RIGHT), n_right)
        shared[_RIGHT_PLACE] = steps[item, END] - before - n_right


@inner
def move_rows(block, thread, shared, work):
    """Move the rows of a thread to the other array."""
    steps, item = work.steps, item_of(block, work.steps)
    first, begin, end = _rows_of_thread(block, thread, item, steps)
    side, flags = steps[item, SIDE], int64(shared[_FLAGS + thread])
    before = int64(shared[thread]) + int64(shared[_OF_GROUPS + thread // _GROUP])
    left = int64(shared[_LEFT_PLACE]) + before
    right = int64(shared[_RIGHT_PLACE]) + begin - first - before
    for i in range(begin, end):
        is_left = (flags >> (i - begin)) & int64(1)
        place = left if is_left != 0 else right
        work.rows[1 - side, place] = work.rows[side, i]
        if work.ordered.shape[1] > 0:
            work.ordered[1 - side, place] = work.ordered[side, i]
        left += is_left
        right += 1 - is_left


PARTITION = Kernel((flag_rows, count_in_groups, claim_places, move_rows), _RIGHT_PLACE + 1)
