"""The histogram of the root from the leaves of the tree before.

With squared error, the gradients of all rows of a leaf decrease by what is added to their
predictions.  In fixed point, the sums of the next root follow from those of the leaves::

    sum of the root  =  sum over leaves of (sum of gradients - step * number of rows)

Rows whose gradients turn out otherwise are found one by one, and corrected in the histogram.  It is
therefore the sum over all rows, exactly, whatever the gradients are.
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.sync import share
from hilboost.backends.trees.binning import offset_of
from hilboost.backends.trees.histogram import STRIDE


class ExpectedGradients(NamedTuple):
    """What the gradients of a stage will be, in fixed point.

    Attributes
    ----------
    before : (n,) int32
        The gradients of the stage before, at the positions of the rows.
    leaf_at : (n,) uint8
        The leaf of the row at each position.
    steps : (n_leaves,) int32
        By which the gradients of the rows of a leaf decrease.
    """

    before: NDArray[np.int32]
    leaf_at: NDArray[np.uint8]
    steps: NDArray[np.int32]


@compiled
def find_unexpected(expected, ordered, begin, end, found):
    """Compare the gradients of some rows with those expected; returns how many differ.

    Parameters
    ----------
    expected : ExpectedGradients
    ordered : (n,) int32
        The gradients, at the positions of the rows.
    begin, end : int
    found : (k, 2) int64
        The positions of the gradients that differ, and the differences, if there are at most k.
    """
    before, leaf_at, steps = expected
    n_found = np.int64(0)
    for i in range(begin, end):
        j = uint64(i)
        n_found += np.int64(ordered[j] != np.int64(before[j]) - steps[uint64(leaf_at[j])])
    if n_found == 0 or n_found > found.shape[0]:
        return n_found
    place = uint64(0)
    for i in range(begin, end):
        j = uint64(i)
        difference = np.int64(ordered[j]) - (np.int64(before[j]) - steps[uint64(leaf_at[j])])
        if difference != 0:
            found[place, 0], found[place, 1] = i, difference
            place += uint64(1)
    return n_found


@inner
def _add_leaves(steps, packing, slots, begin, end):
    """Turn the cells of the first slot into those of the root."""
    keep_apart()
    mask = packing.count_mask
    for slot in range(steps.shape[0]):
        step = steps[slot] << packing.gradient_shift
        if slot == 0:
            for i in range(begin, end):
                slots[0, uint64(i)] -= step * (slots[0, uint64(i)] & mask)
        else:
            sums = slots[slot]
            for i in range(begin, end):
                value = sums[uint64(i)]
                slots[0, uint64(i)] += value - step * (value & mask)


@compiled
def write_root(thread, n_threads, table, steps, found, packing, slots):
    """Write the histogram of the root to the first slot, in the columns of a thread's share.

    Parameters
    ----------
    thread, n_threads : int
    table : BinTable
    steps : (n_leaves,) int64
        Of the leaf whose histogram is in each slot.
    found : (k, 2) int64
        Positions of the gradients that are not as expected, and the differences.
    packing : Packing
    slots : (n_slots, n_columns * STRIDE) int64
        With one channel.
    """
    first, last = share(table.n_values.shape[0], thread, n_threads)
    for f in range(first, last):
        base = f * STRIDE
        missing = base + table.n_bins - 1
        _add_leaves(steps, packing, slots, base, base + table.n_values[f])
        _add_leaves(steps, packing, slots, missing, missing + 1)
        offset = offset_of(table, f)
        for k in range(found.shape[0]):
            b = table.flat[offset + uint64(8) * uint64(found[k, 0])]
            slots[0, uint64(base) + uint64(b)] += found[k, 1] << packing.gradient_shift
