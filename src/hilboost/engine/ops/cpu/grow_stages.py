"""Growth of the trees of one or several stages, in steps whose tasks a team of threads shares.

If a stage has as many trees as there are threads, each tree is a task.  Fewer trees grow one after
the other, each on all threads.  The work between trees is divided into tasks, too, and whoever
completes the last task of a step begins the next one alone, see
:mod:`hilboost.engine.ops.cpu.sync`::

    stage     evaluate the outputs -> draw rows -> trees -> add their values and evaluate -> …
    tree      measure and pack the gradients -> grow -> mark the rows -> sum the leaves
"""

from hilboost.backends.compiled import compiled, inner, tiny
from hilboost.backends.intrinsics import keep_apart
from hilboost.backends.references import by_reference
from hilboost.engine.ops.cpu.batch import (
    DONE,
    EVALUATE,
    LEAVES,
    MEASURE,
    NEW_TREE,
    ONE_TREE,
    PACK,
    STEP,
    TREES,
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
from hilboost.engine.ops.cpu.stage_series import add_outputs, draw_rows, evaluate_rows, evaluates
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish, share

_ROWS_PER_TASK = 2**13
_NANOSECONDS_PER_ROW, _NANOSECONDS_PER_CELL = 2, 10
"""That a step between trees takes for a row, and a tree for a bin of a row, roughly."""


@tiny
def _rows_per_pack(stage):
    """Rows whose gradients are packed in one task: those of a sorted table, block by block."""
    return ROWS_PER_BLOCK if stage.offsets.shape[0] > 0 else _ROWS_PER_TASK


@inner
def _cut(step, n_rows, n_tasks, batch):
    """Begin a step between the steps of growth."""
    batch.first_task[1] = n_tasks
    start_step(step, 1, _NANOSECONDS_PER_ROW * n_rows, batch)


@inner
def _do_task_of_tree(task, threads, place, stage, memory, grown, leaf_of_row):
    """Do a task of the current step of a tree."""
    batch, m = memory.growth.batch, memory.growth.buffers.flags.shape[0]
    step, n_tasks, thread = batch.state[STEP], n_tasks_of(batch), threads.number
    tree = place % leaf_of_row.shape[0]
    if step == MEASURE:
        begin, end = share(m, task, n_tasks)
        measure(tree, begin, end, thread, stage, memory.scratch)
    elif step == PACK:
        n_rows = _rows_per_pack(stage)
        end = min((task + 1) * n_rows, m)
        pack(tree, place, task * n_rows, end, thread, stage, memory)
    elif step == LEAVES:
        mark_rows(place, task, n_tasks, stage, memory, grown, leaf_of_row)
    elif step == VALUES:
        value_leaves(tree, place, task, n_tasks, stage, memory, grown)
    else:
        do_task(task, threads, by_reference(memory.growth), memory.summed)


@inner
def _follow(threads, place, stage, memory, grown, leaf_of_row):
    """Begin what follows the growth of a tree or a step beside it; False at the end of the tree."""
    batch, m = memory.growth.batch, memory.growth.buffers.flags.shape[0]
    step, tree = batch.state[STEP], place % leaf_of_row.shape[0]
    if step == NEW_TREE:
        clear_sums(memory.scratch)
        _cut(MEASURE, m, 1 + m // _ROWS_PER_TASK, batch)
    elif step == MEASURE:
        choose_steps(stage, memory)
        _cut(PACK, m, 1 + (m - 1) // _rows_per_pack(stage), batch)
    elif step == PACK:
        open_tree(place, stage, memory)
    elif step == DONE:
        write_nodes(tree, place, stage, memory, grown, leaf_of_row)
        _cut(LEAVES, m, threads.n_threads, batch)
    elif step == LEAVES and not values_are_known(place, stage, memory, grown):
        _cut(VALUES, m, threads.n_threads, batch)
    else:
        end_tree(place, stage, memory, grown)
        return False
    return True


@inner
def _continue_tree(threads, place, stage, memory, grown, leaf_of_row):
    """Go on alone with a tree, up to a step that is worth sharing; False at the end of the tree."""
    keep_apart()
    batch = memory.growth.batch
    while True:
        growth = by_reference(memory.growth)
        if batch.state[STEP] < DONE and take_steps(threads, growth, memory.summed):
            return True
        if not _follow(threads, place, stage, memory, grown, leaf_of_row):
            return False
        if batch.state[STEP] < DONE:
            continue
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return True
        for task in range(n_tasks_of(batch)):
            _do_task_of_tree(task, threads, place, stage, memory, grown, leaf_of_row)


@inner
def _do_task(task, threads, series, stage, memory, grown, leaf_of_row):
    """Do a task of the current step, of a tree or between trees."""
    batch, n_outputs, n = stage.batch, leaf_of_row.shape[0], leaf_of_row.shape[1]
    step, place = batch.state[STEP], stage.n_begun[0] - 1
    if step == EVALUATE:
        begin, end = share(n, task, n_tasks_of(batch))
        if place >= 0:
            for k in range(n_outputs):
                values = grown.values[place + 1 - n_outputs + k]
                add_outputs(k, series, values, leaf_of_row[k], begin, end)
        number, weights, whole = place // n_outputs, stage.learned.weights, stage.learned.whole
        evaluate_rows(begin, end, threads.number, number, series, weights, whole)
    elif step == TREES:
        memory.growth.batch.state[STEP] = NEW_TREE
        place += 1 + task - n_outputs
        _continue_tree(memory.alone, place, stage, memory, grown, leaf_of_row)
    elif step == ONE_TREE:
        _do_task_of_tree(task, threads, place, stage, memory, grown, leaf_of_row)


@inner
def _begin_trees(stage, memory, n_outputs):
    """Begin all trees of a stage, one a task, or the next one on all threads."""
    growth, batch = memory.growth, stage.batch
    if stage.in_turn:
        stage.n_begun[0] += 1
        batch.state[STEP], growth.batch.state[STEP] = ONE_TREE, NEW_TREE
        return
    stage.n_begun[0] += n_outputs
    batch.first_task[1] = n_outputs
    n_cells = growth.buffers.flags.shape[0] * growth.rules.n_values.shape[0] * n_outputs
    start_step(TREES, 1, _NANOSECONDS_PER_CELL * n_cells, batch)


@inner
def _next_of_stage(series, stage, memory, leaf_of_row):
    """Begin what follows a tree or a step between trees; False at the end of the series."""
    batch, n_outputs, n = stage.batch, leaf_of_row.shape[0], leaf_of_row.shape[1]
    number = stage.n_begun[0] // n_outputs
    if stage.n_begun[0] % n_outputs == 0:  # at the end of a stage, or before the first one
        if evaluates(series) and batch.state[STEP] != EVALUATE:
            _cut(EVALUATE, n * n_outputs, 1 + n * n_outputs // _ROWS_PER_TASK, batch)
            return True
        if number >= series.n_fitted[0]:
            return False
        draw_rows(number, series.draws, stage.learned.rows)
    _begin_trees(stage, memory, n_outputs)
    return True


@inner
def _next_steps(threads, series, stage, memory, grown, leaf_of_row):
    """Go on alone, from step to step and tree to tree, up to a step that is worth sharing."""
    batch = stage.batch
    while True:
        if batch.state[STEP] == ONE_TREE:
            place = stage.n_begun[0] - 1
            if _continue_tree(threads, place, stage, memory, grown, leaf_of_row):
                return
        if not _next_of_stage(series, stage, memory, leaf_of_row):
            finish(threads)
            return
        if batch.state[STEP] == ONE_TREE:
            continue
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return
        for task in range(n_tasks_of(batch)):
            _do_task(task, threads, series, stage, memory, grown, leaf_of_row)


@compiled
def grow_stages(threads, series, stage, memory, grown, leaf_of_row):
    """Grow the trees of a series of stages.

    ``threads``: those that claim tasks. ``memory``: TreeMemory of this thread, which grows trees
    alone, or of all threads. ``leaf_of_row``: (n_outputs, n) int32: written.

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
