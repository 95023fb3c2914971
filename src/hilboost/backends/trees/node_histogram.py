"""The histogram of a node, filled by all threads of a tree."""

import numpy as np

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.sync import barrier, share
from hilboost.backends.trees.histogram import (
    accumulate,
    accumulate_channels,
    merge,
    n_channels_of,
    own_cells,
)
from hilboost.backends.trees.joint_columns import FEWEST_ROWS, accumulate_joint
from hilboost.backends.trees.nodes import BEGIN, BUFFER, END
from hilboost.backends.trees.partition import ROWS_WORTH_SHARING


@inner
def fill_histogram(threads, table, packed, nodes, node, buffers, histograms, slot, joint):
    """Sum a node's rows into a slot; every thread has :func:`own_cells` complete in the end.

    Parameters
    ----------
    threads : Threads
        All of them call.
    table : BinTable
    packed : (n, n_channels) int64, in the table's row order, or None with one channel
    nodes : NodeStore
    buffers : RowBuffers
    histograms : Histograms
    joint : JointColumns or None

    Notes
    -----
    Threads share out the rows of large nodes and the words of small ones.
    """
    keep_apart()
    thread, n_threads, n_channels = threads.number, threads.n_threads, n_channels_of(packed)
    begin, end = nodes.fields[node, BEGIN], nodes.fields[node, END]
    source, n_columns = nodes.fields[node, BUFFER], table.n_values.shape[0]
    first_word, last_word, n_parts = np.int64(0), table.words.shape[0], np.int64(1)
    target = histograms.slots[slot]
    if n_threads > 1 and end - begin >= ROWS_WORTH_SHARING * n_threads:
        n_parts = n_threads
        low, high = share(end - begin, thread, n_threads)
        begin, end = begin + low, begin + high
        if thread > 0:
            target = histograms.private[thread]
    elif n_threads > 1:
        first_word, last_word = share(table.words.shape[0], thread, n_threads)
    rows, ordered = buffers.rows[source], buffers.ordered[source]
    if packed is None:
        words, n_values, n_bins = table.words, table.n_values, table.n_bins
        all_words = last_word - first_word == words.shape[0]
        if joint is not None and all_words and end - begin >= FEWEST_ROWS:
            accumulate_joint(joint, thread, n_values, n_bins, rows, ordered, begin, end, target)
        else:
            accumulate(
                words, first_word, last_word, n_values, n_bins, rows, ordered, begin, end, target
            )
    else:
        words, n_bins = table.words, table.n_bins
        accumulate_channels(
            words, first_word, last_word, n_columns, n_bins, rows, packed, begin, end, target
        )
    barrier(threads)
    low, high = own_cells(threads, table, n_channels)
    merge(histograms.slots[slot], histograms.private, n_parts, low, high)
