"""The histogram of the root from what is known of the tree before.

It is the sum of the gradients that are expected, plus the differences of the others, which are
found by comparison.  It is therefore the sum over all rows, exactly, whatever the gradients are.

With squared error, the gradients of all rows of a leaf decrease by what is added to their
predictions.  In fixed point, the expected sums follow from the sums of the leaves::

    sum of the root  =  sum over leaves of (sum of gradients - step * number of rows)

With other losses, gradients are expected to remain as they are: the coarse integers of many rows
do, since the random number by which a row is rounded differs little from stage to stage.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.fixed_point import in_64_bits
from hilboost.engine.ops.cpu.histogram import STRIDE, Part, accumulate
from hilboost.engine.ops.cpu.sync import share

_ROWS_AT_A_TIME = 64


class LeafSteps(NamedTuple):
    """By how much gradients decrease."""

    leaf_at: NDArray[np.uint8]  # (n,) uint8: the leaf of the row at each position
    steps: NDArray[np.int32]  # (n_leaves,) int32: for the rows of each leaf, in fixed point


@tiny
def _expected_at(position, before, leaves):
    """The gradient that is expected of the row at a position, int64."""
    if leaves is None:
        return np.int64(before[position])
    return np.int64(before[position]) - leaves.steps[uint64(leaves.leaf_at[position])]


@compiled
def find_unexpected(before, leaves, compact, ordered, begin, end, unexpected):
    """Find the gradients of some rows that are not as expected.

    ``before``: (n,) int32: the gradients of the stage before, at the positions of the rows.
    ``leaves``: what changes them; ``None`` if they are expected to stay as they are. ``ordered``:
    (n,) int32: the gradients of this stage. ``unexpected``: OrderedRows, written: the positions,
    (k,) uint32, and the differences from the expected gradients, in 64 bits, (k,) int64.

    Returns
    -------
    int
        How many there are, less than ``k``; or -1 if there are more.
    """
    positions, differences = unexpected
    place, room = uint64(0), uint64(positions.shape[0])
    for first in range(begin, end, _ROWS_AT_A_TIME):
        last, n_here = min(first + _ROWS_AT_A_TIME, end), uint64(0)
        for i in range(first, last):
            j = uint64(i)
            n_here += uint64(ordered[j] != _expected_at(j, before, leaves))
        if n_here == uint64(0):
            continue
        if place + n_here >= room:
            return np.int64(-1)
        for i in range(first, last):
            j = uint64(i)
            now, then = np.int64(ordered[j]), _expected_at(j, before, leaves)
            positions[place] = i
            differences[place] = in_64_bits(now, compact) - in_64_bits(then, compact)
            place += uint64(now != then)
    return np.int64(place)


@inner
def _add_leaves(steps, packing, slots, begin, end):
    """Turn the cells of the first slot into those expected of the root."""
    keep_apart()
    mask = packing.count_mask
    for leaf in range(steps.shape[0]):
        slot, step = steps[leaf, 0], steps[leaf, 1] << packing.gradient_shift
        if slot == 0:
            for i in range(begin, end):
                slots[0, uint64(i)] -= step * (slots[0, uint64(i)] & mask)
        else:
            sums = slots[slot]
            for i in range(begin, end):
                value = sums[uint64(i)]
                slots[0, uint64(i)] += value - step * (value & mask)


@inner
def _write_cells(steps, packing, histograms, differences, begin, end):
    """Write some cells of the root to the first slot."""
    keep_apart()
    slots, kept = histograms.slots, histograms.kept
    if steps is None:
        for i in range(begin, end):
            kept[uint64(i)] += differences[uint64(i)]
            slots[0, uint64(i)] = kept[uint64(i)]
    else:
        _add_leaves(steps, packing, slots, begin, end)
        for i in range(begin, end):
            slots[0, uint64(i)] += differences[uint64(i)]


@compiled
def write_root(part, n_parts, table, steps, packing, unexpected, histograms):
    """Write the histogram of the root to the first slot, in some of the words.

    ``steps``: (n_leaves, 2) int64 or None: the slots of the leaves, from 0 on, and their steps;
    with ``None``, the kept root is expected, and replaced by this one.
    ``unexpected``: OrderedRows: the positions of gradients that are not as expected, and their
    differences from those expected.
    ``histograms``: with one channel.
    """
    n_columns = table.n_values.shape[0]
    first_word, last_word = share(table.words.shape[0], part, n_parts)
    changes, n_changes = histograms.private[part, 0], np.int64(unexpected.rows.shape[0])
    here = Part(first_word, last_word, np.int64(0), n_changes)
    accumulate(table, unexpected, None, here, True, changes)
    for f in range(8 * first_word, min(8 * last_word, n_columns)):
        begin = f * STRIDE
        missing = begin + table.n_bins - 1
        _write_cells(steps, packing, histograms, changes, begin, begin + table.n_values[f])
        _write_cells(steps, packing, histograms, changes, missing, missing + 1)
