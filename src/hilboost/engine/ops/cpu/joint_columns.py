"""Histograms of columns of few values, several of which share a table of sums.

Columns whose numbers of bins have a product of at most 256 form a group.  The bins of a row in all
of them are one code, so that one addition serves the whole group.  The histogram of each column
then results from sums over the codes::

    columns          a (3 bins), b (2 bins)
    code             a + 3 b, from 0 to 5
    bin 0 of a       codes 0 and 3
    bin 0 of b       codes 0, 1 and 2
"""

from typing import NamedTuple

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.histogram import STRIDE, accumulate, cells_of

FEWEST_ROWS = 512
"""In nodes of fewer rows, the sums over the codes take longer than they save."""


class JointColumns(NamedTuple):
    """Groups of columns."""

    # (n_words, n) uint64: the codes of the rows, eight groups to a word, lowest byte first
    words: NDArray[np.uint64]
    n_codes: NDArray[np.int64]  # (n_groups,) int64
    # (n_groups + 1,) int64: where the columns of a group begin in the following arrays
    starts: NDArray[np.int64]
    # (d,) int64: the bin of a column is ``code // stride % size``.  A bin beyond the values of the
    # column is that of missing values.
    columns: NDArray[np.int64]
    strides: NDArray[np.int64]
    sizes: NDArray[np.int64]
    # (d,) int64: the group of a column of the table, and its place in the arrays above
    groups: NDArray[np.int64]
    places: NDArray[np.int64]
    sums: NDArray[np.int64]  # (n_threads, k, n_groups * STRIDE) int64: working memory for k nodes


_NONE = np.empty(0, dtype=np.int64)
NO_GROUPS = JointColumns(
    words=np.empty((0, 0), dtype=np.uint64),
    n_codes=_NONE,
    starts=_NONE,
    columns=_NONE,
    strides=_NONE,
    sizes=_NONE,
    groups=_NONE,
    places=_NONE,
    sums=np.empty((0, 0, 0), dtype=np.int64),
)
"""Columns of which each has sums of its own."""


@inner
def add_codes(joint, column, table, sums, histogram):
    """Add the sums of the codes of a group to the sums of the bins of one of its columns.

    ``sums``: (n_groups * STRIDE,) int64. ``histogram``: (d * STRIDE,) int64.
    """
    place, group = joint.places[column], joint.groups[column]
    stride, size, first = joint.strides[place], joint.sizes[place], group * STRIDE
    slab, present = column * STRIDE, table.n_values[column]
    for begin in range(first, first + joint.n_codes[group], stride * size):
        for b in range(size):
            total, here = np.int64(0), begin + b * stride
            for i in range(stride):
                total += sums[uint64(here + i)]
            bin_number = b if b < present else table.n_bins - 1
            histogram[uint64(slab + bin_number)] += total


@compiled
def accumulate_joint(joint, table, ordered, compact, part, is_first, sums, histogram):
    """:func:`~hilboost.engine.ops.cpu.histogram.accumulate` by the groups of some words.

    ``part``: with words of ``joint``. ``sums``: (n_groups * STRIDE,) int64, of the codes.
    ``histogram``: (0,) if only the sums of the codes are wanted.
    """
    keep_apart()
    n_codes = joint.n_codes
    codes = BinTable(joint.words, table.flat, n_codes, np.int64(STRIDE))
    accumulate(codes, ordered, compact, part, is_first, sums)
    if histogram.shape[0] > 0:
        for group in range(8 * part.first_word, min(8 * part.last_word, n_codes.shape[0])):
            for k in range(joint.starts[group], joint.starts[group + 1]):
                column = joint.columns[k]
                begin, end, missing = cells_of(column, table, 1)
                histogram[begin:end] = 0
                histogram[missing] = 0
                add_codes(joint, column, table, sums, histogram)
