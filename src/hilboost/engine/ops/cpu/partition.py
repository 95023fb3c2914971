"""Stable partition of the rows of nodes, in tasks that threads share.

There are two arrays of rows.  A node has its rows in one of them, and its children in the other
(where a split is certain to remain and one task divides the node, the left rows stay)::

    rows[0]   [ a b c d | e f g h ]
    flags       1 0 0 1 | 1 1 0 1          1 = goes left
    rows[1]   [ a d e f h | b c g ]        both children in the old order

Large nodes are cut into parts.  When the rows that go left in each part have been counted, each
part knows where its rows go.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import HAS_AVX512, compress_eight, flag_bits, keep_apart, prefetch
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    FLAG,
    MOVE,
    N_DIVIDED,
    ROWS_PER_PART,
    STEP,
    item_of,
    n_tasks_of,
    n_threads_worth,
    start_step,
)
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import flag_level_rows
from hilboost.engine.ops.cpu.fixed_point import Compact
from hilboost.engine.ops.cpu.gathers import MOST_ROWS, flag_eight
from hilboost.engine.ops.cpu.nodes import ARRAY, BEGIN, BIN, COLUMN, END, LEFT_ARRAY, MISSING_LEFT
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish, share

_AHEAD = 256
"""Rows between the one whose bin is read and the one whose bin is asked for."""
NANOSECONDS_PER_ROW = 2
"""That dividing a node takes on one thread, roughly."""


class RowBuffers(NamedTuple):
    """The rows that a tree learns from, ordered by node."""

    # (2, m) uint32, or wider: the rows, at first all of them in their order in the first array
    rows: NDArray[np.uint32]
    # (2, m) int64 or int32: packed gradients in the order of ``rows``; (2, 0) where there are none
    # to move along
    ordered: NDArray[np.int64] | NDArray[np.int32]
    flags: NDArray[np.uint8]  # (m,) uint8
    compact: Compact | None = None  # how the 32 bits of ``ordered`` are read; None with 64


@compiled
def flag_rows(table, column, split_bin, missing_left, rows, flags):
    """Mark the rows that go left and count them.

    ``rows``: (m,) uint32, or more. ``flags``: (m,) uint8, written.
    """
    keep_apart()
    bins, offset, words = table.flat, offset_of(table, column), table.words[column // 8]
    threshold, missing, other = uint8(split_bin), uint8(table.n_bins - 1), uint8(missing_left)
    begin, end, count = int64(0), rows.shape[0], int64(0)
    if HAS_AVX512 and words.shape[0] <= MOST_ROWS:
        shift, end_of_eights = uint64(8 * (column % 8)), end - end % 8
        for first in range(begin, end_of_eights, 8):
            if first + _AHEAD < end:
                prefetch(words, int64(rows[uint64(first + _AHEAD)]))
            here = uint64(first)
            n_left = flag_eight(words, rows, here, shift, threshold, missing, other, flags)
            count += int64(n_left)
        begin = end_of_eights
    # Loads that nothing depends on overlap; the rest is vector code.  Rows that follow each other
    # share cache lines.
    for first in range(begin, end, 8):
        if first + _AHEAD < end:
            prefetch(words, int64(rows[uint64(first + _AHEAD)]))
        for i in range(first, min(first + 8, end)):
            j = uint64(i)
            flags[j] = bins[offset + uint64(8) * uint64(rows[j])]
    for i in range(begin, end):
        j = uint64(i)
        b = flags[j]
        left = uint8(b <= threshold) | (other & uint8(b == missing))
        flags[j] = left
        count += int64(left)
    return count


@inner
def _move_eights(buffers, side, left_side, begin, end, left, right):
    """Eight rows at a time, as many as there are; returns how many go left."""
    flags, rows, with_gradients = buffers.flags, buffers.rows[side], buffers.ordered.shape[1] > 0
    left_rows, right_rows = buffers.rows[left_side], buffers.rows[1 - side]
    gradients = buffers.ordered[side]
    of_left, of_right = buffers.ordered[left_side], buffers.ordered[1 - side]
    to_left, to_right, j = uint64(left), uint64(right), uint64(begin)
    for _ in range((end - begin) // 8):
        chosen = uint8(flag_bits(flags, j))
        rest = uint8(~chosen)
        if with_gradients:
            compress_eight(gradients, j, rest, of_right, to_right)
            compress_eight(gradients, j, chosen, of_left, to_left)
        to_right += compress_eight(rows, j, rest, right_rows, to_right)
        to_left += compress_eight(rows, j, chosen, left_rows, to_left)
        j += uint64(8)
    return int64(to_left) - left


@compiled
def move_rows(buffers, side, left_side, begin, end, left, right):
    """Divide some rows (and packed gradients, where there are any) by their flags.

    ``side``: of the arrays that hold the rows.  Those that go left are written to the arrays
    ``left_side`` from ``left`` on, the others to ``1 - side`` from ``right`` on.
    """
    keep_apart()
    if HAS_AVX512:
        n_moved = 8 * ((end - begin) // 8)
        n_left = _move_eights(buffers, side, left_side, begin, end, left, right)
        left, right, begin = left + n_left, right + n_moved - n_left, begin + n_moved
    flags, rows, ordered = buffers.flags, buffers.rows, buffers.ordered
    for i in range(begin, end):
        j = uint64(i)
        goes_left = int64(flags[j])
        array = uint64(left_side if goes_left else 1 - side)
        place = uint64(left if goes_left else right)
        rows[array, place] = rows[uint64(side), j]
        if ordered.shape[1] > 0:
            ordered[array, place] = ordered[uint64(side), j]
        left += goes_left
        right += 1 - goes_left


@inner
def flag_split(node, table, fields, categories, rows, flags):
    """Mark the rows that go left at the split of a node, and count them."""
    column, missing_left = fields[node, COLUMN], fields[node, MISSING_LEFT]
    if (
        categories is not None
        and categories.is_category.shape[0] > 0
        and categories.is_category[column]
    ):
        left_set = categories.left_sets[node]
        return flag_level_rows(table, column, left_set, missing_left, rows, flags)
    return flag_rows(table, column, fields[node, BIN], missing_left, rows, flags)


@inner
def cut_rows(n_threads, nodes, batch):
    """Cut the rows of the nodes to be divided into tasks."""
    fields, work = nodes.fields, int64(0)
    for i in range(batch.state[N_DIVIDED]):
        node = batch.divided[i]
        n_rows = fields[node, END] - fields[node, BEGIN]
        batch.n_parts[i] = 1 if n_threads == 1 else 1 + n_rows // ROWS_PER_PART
        batch.first_task[i + 1] = batch.first_task[i] + batch.n_parts[i]
        work += NANOSECONDS_PER_ROW * n_rows
    start_step(FLAG, batch.state[N_DIVIDED], work, batch)


@inner
def flag_part(task, table, nodes, categories, buffers, batch):
    """Mark which rows of a part go left, and move them if the node is not cut."""
    item, fields = item_of(task, batch), nodes.fields
    node, part = batch.divided[item], task - batch.first_task[item]
    begin, n_rows = fields[node, BEGIN], fields[node, END] - fields[node, BEGIN]
    low, high = share(n_rows, part, batch.n_parts[item])
    low, high, side = begin + low, begin + high, fields[node, ARRAY]
    rows, flags = buffers.rows[side, low:high], buffers.flags[low:high]
    n_left = flag_split(node, table, fields, categories, rows, flags)
    batch.counts[task] = n_left
    if batch.n_parts[item] == 1:
        stays = batch.divided.shape[0] == 1  # splits of larger batches may be undone
        fields[node, LEFT_ARRAY] = side if stays else 1 - side
        end, left_side = begin + n_rows, fields[node, LEFT_ARRAY]
        move_rows(buffers, side, left_side, begin, end, begin, begin + n_left)


@inner
def count_left(batch):
    """Count the rows that go left in each node and before each part; whether any is to be moved."""
    is_cut = False
    for i in range(batch.state[N_DIVIDED]):
        n_left, first = int64(0), batch.first_task[i]
        for task in range(first, first + batch.n_parts[i]):
            n_here = batch.counts[task]
            batch.counts[task] = n_left
            n_left += n_here
        batch.n_left_here[i] = batch.n_left[i] = n_left
        is_cut |= batch.n_parts[i] > 1
    batch.state[STEP] = MOVE
    return is_cut


@inner
def move_part(task, nodes, buffers, batch):
    """Move the rows of a part of a node that is cut."""
    item, fields = item_of(task, batch), nodes.fields
    node, part = batch.divided[item], task - batch.first_task[item]
    begin, n_rows = fields[node, BEGIN], fields[node, END] - fields[node, BEGIN]
    if batch.n_parts[item] > 1:
        low, high = share(n_rows, part, batch.n_parts[item])
        left = batch.counts[task]
        right = batch.n_left_here[item] + low - left
        side = fields[node, ARRAY]
        fields[node, LEFT_ARRAY] = 1 - side
        low, high, left, right = begin + low, begin + high, begin + left, begin + right
        move_rows(buffers, side, 1 - side, low, high, left, right)


@inner
def _divide(task, table, nodes, categories, buffers, batch):
    if batch.state[STEP] == FLAG:
        flag_part(task, table, nodes, categories, buffers, batch)
    elif batch.state[STEP] == MOVE:
        move_part(task, nodes, buffers, batch)


@inner
def _next_of_partition(threads, nodes, batch):
    """Begin the step that follows, if any."""
    step = batch.state[STEP]
    if step == BEGIN_TREE:
        cut_rows(threads.n_threads, nodes, batch)
    elif step == MOVE or not count_left(batch):
        batch.state[STEP] = DONE
        finish(threads)
        return
    publish(threads, n_tasks_of(batch), n_threads_worth(batch, threads.n_threads)[1])


@compiled
def partition_nodes(threads, table, nodes, categories, buffers, batch):
    """Divide the rows of the nodes of a batch by their splits; ``n_left_here`` is written.

    threads : Threads; table : BinTable; nodes : NodeStore; categories : CategorySplits or None
    buffers : RowBuffers; batch : Batch
    """
    task = claim(threads)
    while task >= 0:
        _divide(task, table, nodes, categories, buffers, batch)
        if is_last(threads):
            _next_of_partition(threads, nodes, batch)
        task = claim(threads)
