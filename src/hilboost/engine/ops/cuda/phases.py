"""Kernels of tree growth in phases, which processors and GPUs run.

A kernel is a sequence of phases.  A phase is a function of the numbers of a block and of a thread,
the memory that the threads of the block share, and the arrays of the device.  The threads of a
block wait for each other between two phases and never within one::

    GPU         all threads: phase 1 | all threads: phase 2 | …        blocks at the same time
    processor   thread 0, thread 1, … of phase 1, then of phase 2, …   one block after the other

Other threads may add to the same memory at the same time, in any order, which changes no sum of
integers.  The order of the rows of a node is arbitrary.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import int64, uint32, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.exact_sums import limbs_of, top_for
from hilboost.backends.intrinsics import float_bits
from hilboost.backends.logistic import curvature
from hilboost.engine.ops.cpu.column_splits import Packing
from hilboost.engine.ops.cpu.fixed_point import Rounding, row_bits

THREADS = 256
"""Threads of a block."""
PART = 8
"""Rows that a thread divides."""
_GROUP = 16

# Fields of a step: the rows of a node in one of two arrays, the first block that works on them, the
# split of the node, and how many of its rows went left and right so far.
BEGIN, END, SIDE, FIRST_BLOCK, COLUMN, CUT, MISSING_LEFT, BY_LEVEL, N_LEFT, N_RIGHT = range(10)
LEFT_SET, N_FIELDS = 10, 14
# In place of rows, for all nodes of a tree: the left child, and the leaf (-1: none).
CHILD, LEAF = 0, 1

LOWEST_TOP = -33
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF


class QuantizeWork(NamedTuple):
    """Gradients of the learned rows, and where their integers are written."""

    gradients: NDArray[np.float64]  # (n,)
    hessians: NDArray[np.float64]  # (n,), or (0,) where constant
    weights: NDArray[np.float64]  # (n,), or (0,) for ones
    learned: NDArray[np.uint32]  # (m,), or (0,) for all rows
    numbers: NDArray[np.uint32]  # (n,): in the table of all workers, or (0,)
    rows: NDArray[np.uint32]  # (2, m)
    ordered: NDArray[np.int64]  # (2, m), or (2, 0) with two channels
    packed: NDArray[np.int64]  # (n, width), or (0, 1) with one channel
    totals: NDArray[np.int64]  # (2,)
    packing: Packing
    rounding: Rounding
    logistic: bool
    rows_per_block: int


class HistogramWork(NamedTuple):
    """Nodes that are summed, and the memory for their sums."""

    words: NDArray[np.uint64]  # (n_words, n)
    rows: NDArray[np.uint32]  # (2, m)
    ordered: NDArray[np.int64]  # (2, m), or (2, 0) with several channels
    packed: NDArray[np.int64]  # (n, width), or (0, 1) with one channel
    steps: NDArray[np.int64]  # (n_nodes + 1, N_FIELDS)
    sums: NDArray[np.int64]  # (n_nodes * n_cells,): the histograms
    n_cells: int
    stride: int  # bins of a column
    n_channels: int
    rows_per_block: int


class PartitionWork(NamedTuple):
    """Nodes whose rows are divided."""

    words: NDArray[np.uint64]  # (n_words, n)
    rows: NDArray[np.uint32]  # (2, m)
    ordered: NDArray[np.int64]  # (2, m), or (2, 0) with several channels
    steps: NDArray[np.int64]  # (n_nodes + 1, N_FIELDS)
    missing_bin: int


class WalkWork(NamedTuple):
    """A tree, and the leaves of all rows."""

    words: NDArray[np.uint64]  # (n_words, n)
    steps: NDArray[np.int64]  # (n_nodes, N_FIELDS)
    leaf_of_row: NDArray[np.int32]  # (n,)
    missing_bin: int


class LeafWork(NamedTuple):
    """Leaves, and the exact sums of one or two numbers of their rows."""

    rows: NDArray[np.uint32]  # (2, m)
    steps: NDArray[np.int64]  # (n_leaves + 1, N_FIELDS)
    gradients: NDArray[np.float64]  # (n,)
    hessians: NDArray[np.float64]  # (n,), or (0,) for weights or ones
    weights: NDArray[np.float64]  # (n,), or (0,) for ones
    factors: NDArray[np.float64]  # what the numbers are multiplied by for each top
    tops: NDArray[np.uint32]  # (2 n_leaves,): above the lowest one
    sums: NDArray[np.int64]  # (8 n_leaves,): four limbs of both sums
    n_numbers: int
    whole: bool  # see :func:`~hilboost.backends.exact_sums.is_whole`
    logistic: bool
    rows_per_block: int


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
def _add_word(shared, cell, number):
    """Add to 64 bits, as two additions of 32 bits with carry."""
    low, high = uint64(number) & uint64(0xFFFFFFFF), uint64(number) >> uint64(32)
    before = uint64(add_to(shared, 2 * cell, uint32(low)))
    high = (high + ((before + low) >> uint64(32))) & uint64(0xFFFFFFFF)
    if high != uint64(0):
        add_to(shared, 2 * cell + 1, uint32(high))


@tiny
def _word(shared, cell):
    """64 bits of the shared memory."""
    return int64(uint64(shared[2 * cell]) | (uint64(shared[2 * cell + 1]) << uint64(32)))


@tiny
def _item_of(block, steps):
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
def _goes_left(words, row, steps, item, missing_bin):
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


# Gradients to integers.


@tiny
def _in_steps(scaled, weight, bits, rounding):
    """A weighted number in steps, as an integer."""
    if rounding.salt == uint64(0):
        return int64(nearest(product(weight, nearest(scaled) if rounding.whole else scaled)))
    part = product(np.float64(int64(bits & uint64(0xFFFFFF))), 5.9604644775390625e-08)
    return int64(integer_below(product(weight, scaled) + part))


@inner
def _integers(row, work):
    """The packed gradient of a row, and its count."""
    packing, rounding, weight, number = work.packing, work.rounding, 1.0, int64(row)
    if work.weights.shape[0] > 0:
        weight = work.weights[row]
    if work.numbers.shape[0] > 0:
        number = int64(work.numbers[row])
    bits = row_bits(number, rounding)
    scaled = product(work.gradients[row], rounding.of_gradient)
    value = _in_steps(scaled, weight, bits, rounding) << int64(packing.gradient_shift)
    if work.hessians.shape[0] > 0:
        hessian = product(curvature(work.hessians[row], work.logistic), rounding.of_hessian)
        hessian_steps = _in_steps(hessian, weight, bits >> uint64(32), rounding)
        value += hessian_steps << int64(packing.hessian_shift)
    count = int64(nearest(product(weight, rounding.of_count)))
    return value + count if packing.count_mask != 0 else value, count


@inner
def quantize_rows(block, thread, shared, work):
    """Round and pack the gradients of some rows, and add them up."""
    begin = block * work.rows_per_block
    end = min(begin + work.rows_per_block, work.rows.shape[1])
    total, total_count = int64(0), int64(0)
    for i in range(begin + thread, end, THREADS):
        row = int64(i)
        if work.learned.shape[0] > 0:
            row = int64(work.learned[i])
        value, count = _integers(row, work)
        total += value
        total_count += count
        work.rows[0, i] = row
        if work.packed.shape[0] == 0:
            work.ordered[0, i] = value
        else:
            work.packed[row, 0] = value
            if work.packed.shape[1] > 1:
                work.packed[row, 1] = count
    _add_word(shared, 0, total)
    _add_word(shared, 1, total_count)


@inner
def add_totals(block, thread, shared, work):
    """Add the sums of a block to those of all."""
    if thread < 2:
        add_to(work.totals, thread, _word(shared, thread))


# Histograms.


@inner
def clear_sums(block, thread, shared, work):
    """Set some of the histograms to zero."""
    begin = block * work.rows_per_block
    for i in range(begin + thread, min(begin + work.rows_per_block, work.sums.shape[0]), THREADS):
        work.sums[i] = 0


@inner
def sum_rows(block, thread, shared, work):
    """Add some rows of a node to the histograms of eight columns, in shared memory."""
    steps, stride, n_channels = work.steps, work.stride, work.n_channels
    item, n_words = _item_of(block, steps), work.words.shape[0]
    part, word = (block - steps[item, FIRST_BLOCK]) // n_words, block - steps[item, FIRST_BLOCK]
    word -= part * n_words
    side, begin = steps[item, SIDE], steps[item, BEGIN] + part * work.rows_per_block
    end = min(begin + work.rows_per_block, steps[item, END])
    n_here = min(8, work.n_cells // (stride * n_channels) - 8 * word)
    width = work.packed.shape[1]
    for i in range(begin + thread, end, THREADS):
        row = int64(work.rows[side, i])
        bins = work.words[word, row]
        for channel in range(n_channels):
            value = int64(1)
            if n_channels == 1:
                value = work.ordered[side, i]
            elif channel < width:
                value = work.packed[row, channel]
            for k in range(n_here):
                b = int64((bins >> uint64(8 * k)) & uint64(255))
                _add_word(shared, (k * stride + b) * n_channels + channel, value)


@inner
def add_histograms(block, thread, shared, work):
    """Add the histograms of a block to those of its node."""
    steps, n_channels = work.steps, work.n_channels
    item, n_words = _item_of(block, steps), work.words.shape[0]
    word = (block - steps[item, FIRST_BLOCK]) % n_words
    first = word * 8 * work.stride * n_channels
    for cell in range(thread, min(8 * work.stride * n_channels, work.n_cells - first), THREADS):
        value = _word(shared, cell)
        if value != 0:
            add_to(work.sums, item * work.n_cells + first + cell, value)


# Division of rows.  The shared memory holds, for each thread, the rows before its own that go left
# and the flags of its own; then the same for groups of threads, and where the block writes.

_FLAGS, _OF_GROUPS = THREADS, 2 * THREADS
_LEFT_PLACE, _RIGHT_PLACE = _OF_GROUPS + _GROUP, _OF_GROUPS + _GROUP + 1


@tiny
def _rows_of_thread(block, thread, item, steps):
    first = steps[item, BEGIN] + (block - steps[item, FIRST_BLOCK]) * (PART * THREADS)
    begin = first + PART * thread
    return first, begin, min(begin + PART, steps[item, END])


@inner
def flag_rows(block, thread, shared, work):
    """Note which rows of a thread go left."""
    steps, item = work.steps, _item_of(block, work.steps)
    _, begin, end = _rows_of_thread(block, thread, item, steps)
    side, flags, n_left = steps[item, SIDE], int64(0), int64(0)
    for i in range(begin, end):
        row = int64(work.rows[side, i])
        if _goes_left(work.words, row, steps, item, work.missing_bin):
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
        steps, item = work.steps, _item_of(block, work.steps)
        n_left = _sum_before(shared, _OF_GROUPS, _OF_GROUPS + THREADS // _GROUP)
        first, _, _ = _rows_of_thread(block, thread, item, steps)
        n_right = min(PART * THREADS, steps[item, END] - first) - n_left
        shared[_LEFT_PLACE] = steps[item, BEGIN] + add_to(steps, (item, N_LEFT), n_left)
        before = add_to(steps, (item, N_RIGHT), n_right)
        shared[_RIGHT_PLACE] = steps[item, END] - before - n_right


@inner
def move_rows(block, thread, shared, work):
    """Move the rows of a thread to the other array."""
    steps, item = work.steps, _item_of(block, work.steps)
    first, begin, end = _rows_of_thread(block, thread, item, steps)
    side, flags = steps[item, SIDE], int64(shared[_FLAGS + thread])
    before = int64(shared[thread]) + int64(shared[_OF_GROUPS + thread // _GROUP])
    left = int64(shared[_LEFT_PLACE]) + before
    right = int64(shared[_RIGHT_PLACE]) + begin - first - before
    for i in range(begin, end):
        goes_left = (flags >> (i - begin)) & int64(1)
        place = left if goes_left != 0 else right
        work.rows[1 - side, place] = work.rows[side, i]
        if work.ordered.shape[1] > 0:
            work.ordered[1 - side, place] = work.ordered[side, i]
        left += goes_left
        right += 1 - goes_left


# Leaves.


@inner
def walk_rows(block, thread, shared, work):
    """Find the leaves of some rows."""
    begin, steps = block * (PART * THREADS), work.steps
    end = min(begin + PART * THREADS, work.leaf_of_row.shape[0])
    for row in range(begin + thread, end, THREADS):
        node = int64(0)
        while steps[node, LEAF] < 0:
            left = _goes_left(work.words, row, steps, node, work.missing_bin)
            node = steps[node, CHILD] + (int64(0) if left else int64(1))
        work.leaf_of_row[row] = steps[node, LEAF]


@tiny
def _number_of(row, which, work):
    """The gradient of a row, or what it is divided by, and how often it counts."""
    value, times = work.gradients[row], int64(1)
    if which == 1:
        if work.hessians.shape[0] == 0:
            return work.weights[row], times
        value = curvature(work.hessians[row], work.logistic)
    if work.weights.shape[0] > 0:
        if work.whole:
            times = int64(work.weights[row])
        else:
            value = product(value, work.weights[row])
    return value, times


@tiny
def _leaf_rows(block, work):
    item = _item_of(block, work.steps)
    part = block - work.steps[item, FIRST_BLOCK]
    begin = work.steps[item, BEGIN] + part * work.rows_per_block
    return item, begin, min(begin + work.rows_per_block, work.steps[item, END])


@inner
def find_tops(block, thread, shared, work):
    """Find the tops of the exact sums of some rows."""
    item, begin, end = _leaf_rows(block, work)
    side = work.steps[item, SIDE]
    for which in range(work.n_numbers):
        top = int64(LOWEST_TOP)
        for i in range(begin + thread, end, THREADS):
            value, _ = _number_of(int64(work.rows[side, i]), which, work)
            top = max(top, int64(top_for(float_bits(value) & _MAGNITUDE)))
        raise_to(shared, which, uint32(top - LOWEST_TOP))


@inner
def raise_tops(block, thread, shared, work):
    """Raise the tops of a leaf to those of some of its rows."""
    if thread < work.n_numbers:
        raise_to(work.tops, 2 * _item_of(block, work.steps) + thread, shared[thread])


@inner
def sum_limbs(block, thread, shared, work):
    """Add the limbs of the numbers of some rows."""
    item, begin, end = _leaf_rows(block, work)
    side = work.steps[item, SIDE]
    for which in range(work.n_numbers):
        factor = work.factors[int64(work.tops[2 * item + which])]
        a, b, c, d = int64(0), int64(0), int64(0), int64(0)
        for i in range(begin + thread, end, THREADS):
            value, times = _number_of(int64(work.rows[side, i]), which, work)
            first, second, third, fourth = limbs_of(product(value, factor))
            a += times * first
            b += times * second
            c += times * third
            d += times * fourth
        _add_word(shared, 4 * which, a)
        _add_word(shared, 4 * which + 1, b)
        _add_word(shared, 4 * which + 2, c)
        _add_word(shared, 4 * which + 3, d)


@inner
def add_limbs(block, thread, shared, work):
    """Add the limbs of a block to those of its leaf."""
    if thread < 4 * work.n_numbers:
        place = 8 * _item_of(block, work.steps) + thread
        add_to(work.sums, place, _word(shared, thread))


# The same on a processor.


@compiled
def run_quantize(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            clear(block, thread, shared, work)
        for thread in range(THREADS):
            quantize_rows(block, thread, shared, work)
        for thread in range(THREADS):
            add_totals(block, thread, shared, work)


@compiled
def run_clear(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            clear_sums(block, thread, shared, work)


@compiled
def run_histogram(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            clear(block, thread, shared, work)
        for thread in range(THREADS):
            sum_rows(block, thread, shared, work)
        for thread in range(THREADS):
            add_histograms(block, thread, shared, work)


@compiled
def run_partition(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            flag_rows(block, thread, shared, work)
        for thread in range(THREADS):
            count_in_groups(block, thread, shared, work)
        for thread in range(THREADS):
            claim_places(block, thread, shared, work)
        for thread in range(THREADS):
            move_rows(block, thread, shared, work)


@compiled
def run_walk(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            walk_rows(block, thread, shared, work)


@compiled
def run_tops(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            clear(block, thread, shared, work)
        for thread in range(THREADS):
            find_tops(block, thread, shared, work)
        for thread in range(THREADS):
            raise_tops(block, thread, shared, work)


@compiled
def run_limbs(n_blocks, shared, work):
    """All blocks of the kernel, one after the other."""
    for block in range(n_blocks):
        for thread in range(THREADS):
            clear(block, thread, shared, work)
        for thread in range(THREADS):
            sum_limbs(block, thread, shared, work)
        for thread in range(THREADS):
            add_limbs(block, thread, shared, work)


class Kernel(NamedTuple):
    """Phases, and the same in a compiled loop over blocks and threads."""

    run: Callable[..., None]
    phases: tuple[Any, ...]
    n_shared: int  # numbers of 32 bits that the threads of a block share


QUANTIZE = Kernel(run_quantize, (clear, quantize_rows, add_totals), 4)
CLEAR = Kernel(run_clear, (clear_sums,), 1)
HISTOGRAM = tuple(
    Kernel(run_histogram, (clear, sum_rows, add_histograms), 2 * 8 * 256 * n_channels)
    for n_channels in (1, 2)
)
PARTITION = Kernel(
    run_partition, (flag_rows, count_in_groups, claim_places, move_rows), _RIGHT_PLACE + 1
)
WALK = Kernel(run_walk, (walk_rows,), 1)
TOPS = Kernel(run_tops, (clear, find_tops, raise_tops), 2)
LIMBS = Kernel(run_limbs, (clear, sum_limbs, add_limbs), 16)
