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
from hilboost.engine.ops.cpu.histogram import STRIDE, accumulate

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
    # (d,) int64: the bin of a column is ``code // stride % size``.  A bin beyond the values of the
    # column is that of missing values.
    strides: NDArray[np.int64]
    # (d,) int64: the bin of a column is ``code // stride % size``.  A bin beyond the values of the
    # column is that of missing values.
    sizes: NDArray[np.int64]
    sums: NDArray[np.int64]  # (n_threads, n_groups * STRIDE) int64: working memory


@inner
def _sum_codes(sums, first, n_codes, stride, size, histogram, slab):
    """Add up the sums of codes to sums of the bins of one column."""
    for b in range(size):
        histogram[uint64(slab + b)] = 0
    for begin in range(first, first + n_codes, stride * size):
        if stride == 1:
            for b in range(size):
                histogram[uint64(slab + b)] += sums[uint64(begin + b)]
            continue
        for b in range(size):
            total, here = np.int64(0), begin + b * stride
            for i in range(stride):
                total += sums[uint64(here + i)]
            histogram[uint64(slab + b)] += total


@compiled
def accumulate_joint(joint, thread, table, ordered, compact, part, histogram):
    """:func:`~hilboost.engine.ops.cpu.histogram.accumulate` by the groups of some words.

    ``thread``: whose working memory is used. ``part``: with words of ``joint``.
    """
    keep_apart()
    sums, n_codes, n_bins = joint.sums[thread], joint.n_codes, table.n_bins
    codes = BinTable(joint.words, table.flat, n_codes, np.int64(STRIDE))
    accumulate(codes, ordered, compact, part, sums)
    for group in range(8 * part.first_word, min(8 * part.last_word, n_codes.shape[0])):
        for k in range(joint.starts[group], joint.starts[group + 1]):
            column, size = joint.columns[k], joint.sizes[k]
            slab, present = column * STRIDE, table.n_values[column]
            _sum_codes(
                sums,
                group * STRIDE,
                joint.n_codes[group],
                joint.strides[k],
                size,
                histogram,
                slab,
            )
            missing = np.int64(0)
            if size > present:
                missing = histogram[slab + present]
                histogram[slab + present] = 0
            histogram[slab + n_bins - 1] = missing
