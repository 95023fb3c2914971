"""Histograms of nodes: each block adds some rows to eight columns in shared memory."""

from typing import NamedTuple

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from hilboost.backends.compiled import inner
from hilboost.engine.ops.cuda.blocks import (
    BEGIN,
    END,
    FIRST_BLOCK,
    SIDE,
    THREADS,
    Kernel,
    add_to,
    add_word,
    clear,
    item_of,
    word_of,
)


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
    item, n_words = item_of(block, steps), work.words.shape[0]
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
                add_word(shared, (k * stride + b) * n_channels + channel, value)


@inner
def add_histograms(block, thread, shared, work):
    """Add the histograms of a block to the ones of its node."""
    steps, n_channels = work.steps, work.n_channels
    item, n_words = item_of(block, steps), work.words.shape[0]
    word = (block - steps[item, FIRST_BLOCK]) % n_words
    first = word * 8 * work.stride * n_channels
    for cell in range(thread, min(8 * work.stride * n_channels, work.n_cells - first), THREADS):
        value = word_of(shared, cell)
        if value != 0:
            add_to(work.sums, item * work.n_cells + first + cell, value)


CLEAR = Kernel((clear_sums,), 1)

HISTOGRAM = tuple(
    Kernel((clear, sum_rows, add_histograms), 2 * 8 * 256 * n_channels) for n_channels in (1, 2)
)
