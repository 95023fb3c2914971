"""The histogram of a node, filled by all threads of a tree."""

import numpy as np

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.histogram import accumulate, accumulate_channels, merge, own_cells
from hilboost.engine.ops.cpu.joint_columns import FEWEST_ROWS, accumulate_joint
from hilboost.engine.ops.cpu.nodes import BEGIN, END
from hilboost.engine.ops.cpu.partition import ROWS_WORTH_SHARING
from hilboost.engine.ops.cpu.sync import barrier, share


@inner
def fill_histogram(
    threads, table, packed, n_channels, nodes, node, buffers, histograms, slot, joint
):
    """Sum a node's rows into a slot; every thread has :func:`own_cells` complete in the end.

    ``threads``: all of them call. ``packed``: (n, width) int64, in the table's row order, or None
    with one channel.

    Notes
    -----
    Threads share out the rows of large nodes, and the words or groups of columns of small ones.
    """
    keep_apart()
    thread, n_threads = threads.number, threads.n_threads
    begin, end = nodes.fields[node, BEGIN], nodes.fields[node, END]
    n_columns = table.n_values.shape[0]
    joins, n_words, n_parts = False, table.words.shape[0], np.int64(1)
    if joint is not None:
        joins = end - begin >= FEWEST_ROWS
        n_words = joint.words.shape[0] if joins else n_words
    first_word, last_word = np.int64(0), n_words
    target = histograms.slots[slot]
    if n_threads > 1 and end - begin >= ROWS_WORTH_SHARING * n_threads:
        n_parts = n_threads
        low, high = share(end - begin, thread, n_threads)
        begin, end = begin + low, begin + high
        if thread > 0:
            target = histograms.private[thread]
    elif n_threads > 1:
        first_word, last_word = share(n_words, thread, n_threads)
    rows, ordered = buffers.rows, buffers.ordered
    if packed is None:
        own, n_values, n_bins = (first_word, last_word), table.n_values, table.n_bins
        given = n_values, n_bins, rows, ordered, buffers.compact, begin, end, target
        if joint is not None and joins:
            accumulate_joint(joint, thread, *own, *given)
        else:
            accumulate(table.words, *own, *given)
    else:
        own = table.words, first_word, last_word, n_columns, table.n_bins
        accumulate_channels(*own, rows, packed, begin, end, n_channels, target)
    barrier(threads)
    low, high = own_cells(threads, table, n_channels)
    merge(histograms.slots[slot], histograms.private, n_parts, low, high)
