"""Histograms of nodes, in tasks that threads share.

The words of a node are divided among tasks, and the rows of large nodes, too.  Each thread then
sums into memory of its own, and the sums of all threads are added when a column is searched::

    rows      | part 0 | part 1 |
    word 0      task 0   task 1         columns 0 … 7
    word 1      task 2   task 3         columns 8 … 15
"""

from numba import int64, uint64

from hilboost.backends.compiled import inner
from hilboost.backends.intrinsics import keep_apart
from hilboost.engine.ops.cpu.batch import N_SUMMED, N_SUMS, SUM, item_of, start_step
from hilboost.engine.ops.cpu.histogram import (
    OrderedRows,
    Part,
    accumulate,
    accumulate_channels,
    add,
    cells_of,
    n_channels_of,
    subtract,
)
from hilboost.engine.ops.cpu.joint_columns import FEWEST_ROWS, accumulate_joint, add_codes
from hilboost.engine.ops.cpu.nodes import ARRAY, BEGIN, END, ROOT_GIVEN, SLOT
from hilboost.engine.ops.cpu.sync import share

_ROWS_PER_TASK = 2**14
"""Rows whose bins of one word are summed in one task, or as many of more words."""
NANOSECONDS_PER_WORD = 3
"""That the sums of eight columns of one row take, roughly."""


@inner
def _joins(n_rows, joint):
    """Whether the columns of a node are summed in groups."""
    return joint.words.shape[0] > 0 and n_rows >= FEWEST_ROWS


@inner
def cut_sums(n_threads, growth):
    """Cut the words and rows of the nodes to be summed into tasks."""
    batch, fields, work = growth.batch, growth.nodes.fields, int64(0)
    for i in range(batch.state[N_SUMMED]):
        node = batch.summed[i]
        n_rows, n_words = fields[node, END] - fields[node, BEGIN], growth.table.words.shape[0]
        if _joins(n_rows, growth.joint):
            n_words = growth.joint.words.shape[0]
        of_words, of_rows = int64(1), int64(1)
        if n_threads > 1:
            of_words = max(1, min(n_words, n_rows * n_words // _ROWS_PER_TASK))
            if i < growth.histograms.private.shape[1]:
                of_rows = max(1, n_rows * n_words // (of_words * _ROWS_PER_TASK))
        batch.n_parts[i] = of_rows
        batch.first_task[i + 1] = batch.first_task[i] + of_words * of_rows
        work += NANOSECONDS_PER_WORD * n_words * n_rows
    batch.state[N_SUMS] += 1
    start_step(SUM, batch.state[N_SUMMED], work, batch)


@inner
def sum_part(task, threads, growth, packed):
    """Sum some words of some rows of a node: into its slot, or into memory of the thread.

    ``packed`` is a part of the growth: for an argument that is ``None``, the compiler leaves out
    the code that reads it.
    """
    keep_apart()
    table, joint, batch, fields = growth.table, growth.joint, growth.batch, growth.nodes.fields
    item, thread = item_of(task, batch), threads.number
    node, of_rows = batch.summed[item], batch.n_parts[item]
    begin, end, side = fields[node, BEGIN], fields[node, END], fields[node, ARRAY]
    joins = _joins(end - begin, joint)
    n_words = joint.words.shape[0] if joins else table.words.shape[0]
    first, n_tasks = batch.first_task[item], batch.first_task[item + 1] - batch.first_task[item]
    word, row = (task - first) // of_rows, (task - first) % of_rows
    first_word, last_word = share(n_words, word, n_tasks // of_rows)
    low, high = share(end - begin, row, of_rows)
    part, is_first = Part(first_word, last_word, begin + low, begin + high), True
    target = growth.histograms.slots[fields[node, SLOT]]
    if of_rows > 1:
        target = growth.histograms.private[thread, item]
        is_first = batch.used[thread, item, first_word] != batch.state[N_SUMS]
        batch.used[thread, item, first_word:last_word] = batch.state[N_SUMS]
    rows, ordered = growth.buffers.rows[side], growth.buffers.ordered[side]
    if packed is not None:
        accumulate_channels(table, rows, packed, part, n_channels_of(growth), is_first, target)
    elif joins:
        accumulate_joint(
            joint,
            table,
            OrderedRows(rows, ordered),
            growth.buffers.compact,
            part,
            is_first,
            joint.sums[thread, item],
            target[:0] if of_rows > 1 else target,
        )
    else:
        compact = growth.buffers.compact
        accumulate(table, OrderedRows(rows, ordered), compact, part, is_first, target)


@inner
def _merge_column(column, item, growth, packed):
    """Add up the sums of all threads of a column of a node whose rows are cut."""
    table, joint, batch, fields = growth.table, growth.joint, growth.batch, growth.nodes.fields
    node, word = batch.summed[item], column // 8
    histogram = growth.histograms.slots[fields[node, SLOT]]
    joins = _joins(fields[node, END] - fields[node, BEGIN], joint)
    if joins:
        word = joint.groups[column] // 8
    begin, end, missing = cells_of(column, table, n_channels_of(growth))
    histogram[begin:end] = 0
    if packed is None:
        histogram[missing] = 0
    for thread in range(batch.used.shape[0]):
        if batch.used[thread, item, word] != batch.state[N_SUMS]:
            continue
        if joins:
            add_codes(joint, column, table, joint.sums[thread, item], histogram)
            continue
        private = growth.histograms.private[thread, item]
        add(histogram, private, begin, end)
        if packed is None:
            add(histogram, private, missing, missing + 1)


@inner
def complete_columns(first, last, item, growth, packed):
    """Complete the histograms of the children of a split, or of the root, in some columns.

    ``packed`` is a part of the growth.
    """
    keep_apart()
    table, batch, histograms = growth.table, growth.batch, growth.histograms
    small, big = batch.pairs[item, 0], batch.pairs[item, 1]
    fields, slots = growth.nodes.fields, histograms.slots
    first_sum, last_sum = batch.first_sum[item], batch.first_sum[item + 1]
    for f in range(first, last):
        begin, end, missing = cells_of(f, table, n_channels_of(growth))
        for summed in range(first_sum, last_sum):
            if batch.n_parts[summed] > 1:
                _merge_column(f, summed, growth, packed)
        if small != big and last_sum - first_sum == 1:
            of_small, of_big = slots[fields[small, SLOT]], slots[fields[big, SLOT]]
            subtract(of_big, of_small, begin, end)
            if packed is None:
                subtract(of_big, of_small, missing, missing + 1)
        if small == big and histograms.kept.shape[0] > 0 and growth.nodes.control[ROOT_GIVEN] == 0:
            of_root = slots[fields[small, SLOT]]
            for i in range(begin, end):
                histograms.kept[uint64(i)] = of_root[uint64(i)]
            if packed is None:
                histograms.kept[missing] = of_root[missing]
