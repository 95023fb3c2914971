"""The histogram of a node, filled by all threads of a tree."""

import numpy as np

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.histogram import (
    OrderedRows,
    Part,
    accumulate,
    accumulate_channels,
    merge,
    n_channels_of,
    own_cells,
)
from hilboost.engine.ops.cpu.joint_columns import FEWEST_ROWS, accumulate_joint
from hilboost.engine.ops.cpu.nodes import BEGIN, END, SLOT
from hilboost.engine.ops.cpu.partition import ROWS_WORTH_SHARING
from hilboost.engine.ops.cpu.sync import barrier, share


@inner
def fill_histogram(threads, growth, packed, joint, node):
    """Sum a node's rows into its slot; every thread has :func:`own_cells` complete in the end.

    All threads call.  They share out the rows of large nodes, and the words or groups of columns
    of small ones.  ``packed`` and ``joint`` are parts of the growth: for arguments that are
    ``None``, the compiler leaves out the code that reads them.
    """
    keep_apart()
    thread, n_threads = threads.number, threads.n_threads
    table, histograms = growth.table, growth.histograms
    fields, buffers = growth.nodes.fields, growth.buffers
    begin, end, slot = fields[node, BEGIN], fields[node, END], fields[node, SLOT]
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
    part, n_channels = Part(first_word, last_word, begin, end), n_channels_of(growth)
    if packed is None:
        ordered = OrderedRows(buffers.rows, buffers.ordered)
        if joint is not None and joins:
            accumulate_joint(joint, thread, table, ordered, buffers.compact, part, target)
        else:
            accumulate(table, ordered, buffers.compact, part, target)
    else:
        accumulate_channels(table, buffers.rows, packed, part, n_channels, target)
    barrier(threads)
    low, high = own_cells(threads, table, n_channels)
    merge(histograms.slots[slot], histograms.private, n_parts, low, high)
