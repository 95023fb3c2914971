"""Stable partition of a node's rows, in passes that threads share.

Most rows stay among the rows of the node.  The part of fewer rows comes last, by way of spare
memory for half of all rows::

    rows     [ a b c d e f g h ]          spare [ . . . . ]
    flags      1 0 0 1 1 1 0 1            1 = goes left
    moved    [ a d e f h . . . ]          spare [ b c g . ]
    copied   [ a d e f h b c g ]          both parts in their old order

With several threads, each moves its share of the rows.  The first part of the first share stays,
and so does the second part of the last one, whose thread begins at its end::

    rows     [ a b c d | e f g h ]
    moved    [ a d . . | . . . g ]        spare [ e f h b c ]
    copied   [ a d e f | h b c g ]
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import (
    HAS_AVX512,
    compress_eight,
    count_ones,
    flag_bits,
    keep_apart,
    prefetch,
)
from hilboost.engine.ops.cpu.binning import offset_of
from hilboost.engine.ops.cpu.category_splits import flag_level_rows
from hilboost.engine.ops.cpu.compact_gradients import Compact
from hilboost.engine.ops.cpu.gathers import MOST_ROWS, flag_eight
from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    BIN,
    COLUMN,
    END,
    LEFT_BEGIN,
    MISSING_LEFT,
    N_LEFT_HERE,
)
from hilboost.engine.ops.cpu.sync import barrier, share

ROWS_WORTH_SHARING = 4096
"""The histogram of a node of fewer rows a thread is not shared by rows."""
_ROWS_WORTH_DIVIDING = 768
"""A node of fewer rows a thread is divided by one thread."""


_AHEAD = 256
"""Rows between the one whose bin is read and the one whose bin is asked for."""


class RowBuffers(NamedTuple):
    """The rows that a tree learns from, ordered by node."""

    # (m + k,) uint32: the rows, at first all of them in their order, and spare memory; ``k`` as in
    # :func:`n_spare`
    rows: NDArray[np.uint32]
    # (m + k,) int64 or int32: packed gradients in the order of ``rows``; (0,) where there are none
    # to move along
    ordered: NDArray[np.int64] | NDArray[np.int32]
    flags: NDArray[np.uint8]  # (m,) uint8
    # (8 * n_threads,) int64: rows that go left in every thread's share, a cache line apart
    counts: NDArray[np.int64]
    compact: Compact | None = None  # how the 32 bits of ``ordered`` are read; None with 64


def n_spare(m: int, n_threads: int) -> int:
    """Return how many rows spare memory must hold, if ``m`` rows are divided.

    Two threads need no more than one: the first part is the left or the right one, whichever moves
    fewer rows.
    """
    return m - m // max(2, n_threads)


@compiled
def flag_rows(table, column, split_bin, missing_left, rows, begin, end, flags):
    """Mark the rows that go left and count them.

    ``rows``: (m,) uint32, or more. ``flags``: (m,) uint8, written in ``[begin, end)``.
    """
    keep_apart()
    bins, offset, words = table.flat, offset_of(table, column), table.words[column // 8]
    threshold, missing, other = uint8(split_bin), uint8(table.n_bins - 1), uint8(missing_left)
    count = int64(0)
    if HAS_AVX512 and words.shape[0] <= MOST_ROWS:
        shift, end_of_eights = uint64(8 * (column % 8)), end - (end - begin) % 8
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
def _move_eights(buffers, keeps, begin, end, kept, others, backwards):
    """Eight rows at a time, as many as there are; returns how many are kept."""
    flags, rows, ordered = buffers.flags, buffers.rows, buffers.ordered
    with_gradients = ordered.shape[0] > 0
    back, ahead = uint64(backwards), uint64(not backwards)
    step, j = uint64(8) * (ahead - back), uint64(end - 8 if backwards else begin)
    to_kept, to_others, mask = uint64(kept), uint64(others), uint8(0 if keeps else 255)
    for _ in range((end - begin) // 8):
        chosen = uint8(flag_bits(flags, j) ^ mask)
        rest = uint8(~chosen)
        n_kept = count_ones(chosen)
        to_kept -= back * n_kept
        to_others -= back * (uint64(8) - n_kept)
        # Those that are kept overwrite what was read.
        if with_gradients:
            compress_eight(ordered, j, rest, ordered, to_others)
            compress_eight(ordered, j, chosen, ordered, to_kept)
        compress_eight(rows, j, rest, rows, to_others)
        compress_eight(rows, j, chosen, rows, to_kept)
        to_kept += ahead * n_kept
        to_others += ahead * (uint64(8) - n_kept)
        j += step
    return abs(int64(to_kept) - kept)


@compiled
def move_rows(buffers, keeps, begin, end, kept, others, backwards):
    """Divide some rows (and packed gradients, where there are any) by their flags.

    ``keeps``: the flag of the rows that are written from ``kept`` on; those from ``others`` on have
    the other one. ``kept``: places in ``rows``, which may be ``begin``. ``others``: places in
    ``rows``, which may be ``begin``. ``backwards``: begin with the last row, and write up to
    ``kept`` and ``others``; ``kept`` may be ``end``.
    """
    keep_apart()
    flags, rows, ordered = buffers.flags, buffers.rows, buffers.ordered
    back, ahead = int64(backwards), int64(not backwards)
    if HAS_AVX512:
        n_moved = 8 * ((end - begin) // 8)
        n_kept = _move_eights(buffers, keeps, begin, end, kept, others, backwards)
        kept += (ahead - back) * n_kept
        others += (ahead - back) * (n_moved - n_kept)
        begin, end = begin + ahead * n_moved, end - back * n_moved
    with_gradients = ordered.shape[0] > 0
    for i in range(end - begin):
        j = uint64(end - 1 - i if backwards else begin + i)
        is_kept = int64(flags[j] == keeps)
        kept -= back * is_kept
        others -= back * (1 - is_kept)
        place = uint64(kept if is_kept else others)
        rows[place] = rows[j]
        if with_gradients:
            ordered[place] = ordered[j]
        kept += ahead * is_kept
        others += ahead * (1 - is_kept)


@compiled
def copy_rows(buffers, begin, end, target):
    """Copy rows (and packed gradients, where there are any) from spare memory to ``target`` on.

    buffers : RowBuffers; begin, end : int, beyond ``target`` and what is written there
    """
    rows, ordered = buffers.rows, buffers.ordered
    source, place = uint64(begin), uint64(target)
    for i in range(end - begin):
        rows[place + uint64(i)] = rows[source + uint64(i)]
    if ordered.shape[0] > 0:
        for i in range(end - begin):
            ordered[place + uint64(i)] = ordered[source + uint64(i)]


@inner
def _flag_split(node, table, fields, categories, rows, begin, end, flags):
    column, missing_left = fields[node, COLUMN], fields[node, MISSING_LEFT]
    if (
        categories is not None
        and categories.is_category.shape[0] > 0
        and categories.is_category[column]
    ):
        left_set = categories.left_sets[node]
        return flag_level_rows(table, column, left_set, missing_left, rows, begin, end, flags)
    return flag_rows(table, column, fields[node, BIN], missing_left, rows, begin, end, flags)


@inner
def _move_share(thread, n_parts, begin, end, buffers):
    """Move a thread's share of the rows; returns where the left ones begin, and what is to copy.

    That is the number of rows in spare memory, and the place of the first of them.
    """
    counts, n_spared = buffers.counts, buffers.flags.shape[0]
    n, n_left, before = end - begin, np.int64(0), np.int64(0)
    for t in range(n_parts):
        n_left += counts[8 * t]
        before += counts[8 * t] if t < thread else 0
    low, high = share(n, thread, n_parts)
    _, n_first = share(n, 0, n_parts)
    left_first, n_last, left_last = counts[0], np.int64(0), np.int64(0)
    if n_parts > 1:
        from_last, _ = share(n, n_parts - 1, n_parts)
        n_last, left_last = n - from_last, counts[8 * (n_parts - 1)]
    # The rows that stay if the left rows come first, and if the right rows do.
    stays, others_stay = left_first + n_last - left_last, n_first - left_first + left_last
    leads = int64(stays >= others_stay)  # the flag of the part that comes first
    n_leading, left_here = n_left, counts[8 * thread]
    here, front = left_here, left_first
    if leads == 0:
        n_leading, before, stays = n - n_left, low - before, others_stay
        here, front = high - low - left_here, n_first - left_first
    to_spare = n_spared - (begin + front)
    leading = begin + before  # places in the end
    following = begin + n_leading + low - before
    keeps, kept, others = leads, leading, following + to_spare
    backwards = n_parts > 1 and thread == n_parts - 1
    if backwards:
        keeps, kept, others = 1 - leads, end, leading + here + to_spare
    elif thread > 0:
        kept += to_spare
    move_rows(buffers, keeps, begin + low, begin + high, kept, others, backwards)
    return begin if leads else end - n_left, n - stays, begin + front


@inner
def divide_rows(threads, node, table, nodes, categories, buffers):
    """Divide a node's rows by its split; notes how many go left, and where these begin.

    ``threads``: all of them call; they must meet before the rows are read. ``nodes``:
    ``control[N_LEFT_HERE]`` and ``control[LEFT_BEGIN]`` are written by thread 0.
    """
    fields, counts = nodes.fields, buffers.counts
    begin, end = fields[node, BEGIN], fields[node, END]
    thread, n_parts = threads.number, np.int64(1)
    if end - begin >= _ROWS_WORTH_DIVIDING * threads.n_threads:
        n_parts = threads.n_threads
    if thread >= n_parts:
        return
    low, high = share(end - begin, thread, n_parts)
    counts[8 * thread] = _flag_split(
        node, table, fields, categories, buffers.rows, begin + low, begin + high, buffers.flags
    )
    if n_parts > 1 and not barrier(threads):
        return
    left_begin, n_copied, target = _move_share(thread, n_parts, begin, end, buffers)
    if thread == 0:
        nodes.control[LEFT_BEGIN] = left_begin
        nodes.control[N_LEFT_HERE] = 0
        for t in range(n_parts):
            nodes.control[N_LEFT_HERE] += counts[8 * t]
    if n_parts > 1 and not barrier(threads):
        return
    low, high = share(n_copied, thread, n_parts)
    spare = buffers.flags.shape[0]
    copy_rows(buffers, spare + low, spare + high, target + low)
