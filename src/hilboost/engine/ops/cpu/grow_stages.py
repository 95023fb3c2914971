"""Series of stages with fewer trees than there are threads: all of these grow one after the other.

The work between trees is divided into tasks, too, and whoever completes the last task of a step
begins the next one alone, see :mod:`hilboost.engine.ops.cpu.sync`::

    stage     evaluate the outputs -> draw rows -> trees -> add their values and evaluate -> …
    tree      measure and pack the gradients -> grow -> mark the rows -> sum the leaves
"""

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.references import by_reference
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    EVALUATE,
    LEAVES,
    MEASURE,
    PACK,
    STEP,
    VALUES,
    n_tasks_of,
    n_threads_worth,
    start_step,
)
from hilboost.engine.ops.cpu.grow import do_task, take_steps
from hilboost.engine.ops.cpu.row_order import ROWS_PER_BLOCK
from hilboost.engine.ops.cpu.separate_trees import (
    choose_steps,
    clear_sums,
    end_tree,
    mark_rows,
    measure,
    open_tree,
    pack,
    value_leaves,
    values_are_known,
    write_nodes,
)
from hilboost.engine.ops.cpu.stage_series import add_outputs, draw_rows, evaluate_rows
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish, share

_ROWS_PER_TASK = 2**13
_NANOSECONDS_PER_ROW = 2
"""That a step between trees takes, roughly."""


@tiny
def _rows_per_pack(stage):
    """Rows whose gradients are packed in one task: those of a sorted table, block by block."""
    return ROWS_PER_BLOCK if stage.offsets.shape[0] > 0 else _ROWS_PER_TASK


@inner
def _do_task(task, threads, series, stage, memory, grown, leaf_of_row):
    """Do a task of the current step, of a tree or between trees."""
    batch, n_outputs, n = memory.growth.batch, leaf_of_row.shape[0], leaf_of_row.shape[1]
    step, n_tasks, place = batch.state[STEP], n_tasks_of(batch), stage.next_tree[0] - 1
    tree, thread = place % n_outputs, threads.number
    if step == EVALUATE:
        begin, end = share(n, task, n_tasks)
        if place >= 0:
            for k in range(n_outputs):
                values = grown.values[place + 1 - n_outputs + k]
                add_outputs(k, series, values, leaf_of_row[k], begin, end)
        number, weights, whole = place // n_outputs, stage.learned.weights, stage.learned.whole
        evaluate_rows(begin, end, thread, number, series, weights, whole)
    elif step == MEASURE:
        begin, end = share(memory.growth.buffers.flags.shape[0], task, n_tasks)
        measure(tree, begin, end, thread, stage, memory.scratch)
    elif step == PACK:
        n_rows = _rows_per_pack(stage)
        end = min((task + 1) * n_rows, memory.growth.buffers.flags.shape[0])
        pack(tree, place, task * n_rows, end, thread, stage, memory)
    elif step == LEAVES:
        mark_rows(place, task, n_tasks, stage, memory, grown, leaf_of_row)
    elif step == VALUES:
        value_leaves(tree, place, task, n_tasks, stage, memory, grown)
    else:
        do_task(task, threads, by_reference(memory.growth), memory.summed)


@inner
def _cut(step, n_rows, n_tasks, batch):
    """Begin a step between trees."""
    batch.first_task[1] = n_tasks
    start_step(step, 1, _NANOSECONDS_PER_ROW * n_rows, batch)


@inner
def _follow(threads, series, stage, memory, grown, leaf_of_row):
    """Begin what follows a tree or a step between trees; False at the end of the series."""
    growth, n_outputs, n = memory.growth, leaf_of_row.shape[0], leaf_of_row.shape[1]
    batch, m, place = growth.batch, growth.buffers.flags.shape[0], stage.next_tree[0] - 1
    tree, step = place % n_outputs, batch.state[STEP]
    if step == DONE and place >= 0:
        write_nodes(tree, place, stage, memory, grown, leaf_of_row)
        _cut(LEAVES, m, threads.n_threads, batch)
    elif step == LEAVES and not values_are_known(place, stage, memory, grown):
        _cut(VALUES, m, threads.n_threads, batch)
    elif step == MEASURE:
        choose_steps(stage, memory)
        _cut(PACK, m, 1 + (m - 1) // _rows_per_pack(stage), batch)
    elif step == PACK:
        open_tree(place, stage, memory)
    else:
        if step in (LEAVES, VALUES):
            end_tree(tree, place, stage, memory, grown, leaf_of_row)
        if step != EVALUATE and tree == n_outputs - 1:
            _cut(EVALUATE, n, 1 + n // _ROWS_PER_TASK, batch)
            return True
        if step == EVALUATE:
            number = (place + 1) // n_outputs
            if number >= series.n_fitted[0]:
                return False
            draw_rows(number, series.draws, stage.learned.rows)
        stage.next_tree[0] += 1
        clear_sums(memory.scratch)
        _cut(MEASURE, m, 1 + m // _ROWS_PER_TASK, batch)
    return True


@inner
def _next_steps(threads, series, stage, memory, grown, leaf_of_row):
    """Go on alone, from step to step and tree to tree, up to a step that is worth sharing."""
    batch = memory.growth.batch
    while True:
        growth = by_reference(memory.growth)
        if batch.state[STEP] < DONE and take_steps(threads, growth, memory.summed):
            return
        if not _follow(threads, series, stage, memory, grown, leaf_of_row):
            finish(threads)
            return
        if batch.state[STEP] == BEGIN_TREE:
            continue
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return
        for task in range(n_tasks_of(batch)):
            _do_task(task, threads, series, stage, memory, grown, leaf_of_row)


@compiled
def grow_one_by_one(threads, series, stage, memory, grown, leaf_of_row):
    """Grow the trees of a series of stages one after the other, each on all threads.

    ``threads``: those that claim tasks. ``memory``: TreeMemory for all of them. ``leaf_of_row``:
    (n_outputs, n) int32: written.

    Notes
    -----
    Cost O(m d log(leaves)) for each tree, as :func:`~hilboost.engine.ops.cpu.grow.grow`.
    """
    stage, memory, grown = by_reference(stage), by_reference(memory), by_reference(grown)
    task = claim(threads)
    while task >= 0:
        _do_task(task, threads, series, stage, memory, grown, leaf_of_row)
        if is_last(threads):
            _next_steps(threads, series, stage, memory, grown, leaf_of_row)
        task = claim(threads)
