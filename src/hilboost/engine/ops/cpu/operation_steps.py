"""Operations on batches of nodes, one at a time, whose tasks the threads of a fit share."""

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.references import by_reference
from hilboost.engine.ops.cpu.batch import (
    BEGIN_TREE,
    DONE,
    FLAG,
    MERGE,
    MOVE,
    N_PAIRS,
    N_SUMMED,
    SEARCH,
    STEP,
    SUM,
    n_tasks_of,
    n_threads_worth,
)
from hilboost.engine.ops.cpu.best_first import settle_batch
from hilboost.engine.ops.cpu.grow import do_task
from hilboost.engine.ops.cpu.growth import cut_columns
from hilboost.engine.ops.cpu.node_histogram import cut_sums
from hilboost.engine.ops.cpu.partition import count_left, cut_rows, flag_part, move_part
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish


@inner
def _divide(task, table, nodes, categories, buffers, batch):
    if batch.state[STEP] == FLAG:
        flag_part(task, table, nodes, categories, buffers, batch)
    elif batch.state[STEP] == MOVE:
        move_part(task, nodes, buffers, batch)


@inner
def _next_of_partition(threads, nodes, batch):
    """Begin the step that follows, if any."""
    step = batch.state[STEP]
    if step == BEGIN_TREE:
        cut_rows(threads.n_threads, nodes, batch)
    elif step == MOVE or not count_left(batch):
        batch.state[STEP] = DONE
        finish(threads)
        return
    publish(threads, n_tasks_of(batch), n_threads_worth(batch, threads.n_threads)[1])


@compiled
def partition_nodes(threads, table, nodes, categories, buffers, batch):
    """Divide the rows of the nodes of a batch by their splits; ``batch.n_left`` is written.

    threads : Threads; table : BinTable; nodes : NodeStore; categories : CategorySplits or None
    buffers : RowBuffers; batch : Batch
    """
    task = claim(threads)
    while task >= 0:
        _divide(task, table, nodes, categories, buffers, batch)
        if is_last(threads):
            _next_of_partition(threads, nodes, batch)
        task = claim(threads)


@inner
def _next_of_operation(threads, operation, growth):
    """Begin the step that follows, if any."""
    batch = growth.batch
    step = batch.state[STEP]
    if step == SEARCH:
        settle_batch(growth)
    if step == BEGIN_TREE and operation == SUM:
        cut_sums(threads.n_threads, growth, growth.joint)
    elif step == SUM:
        cut_columns(batch.state[N_SUMMED], MERGE, growth)
    elif step == BEGIN_TREE:
        cut_columns(batch.state[N_PAIRS], SEARCH, growth)
    else:
        batch.state[STEP] = DONE
        finish(threads)
        return
    publish(threads, n_tasks_of(batch), n_threads_worth(batch, threads.n_threads)[1])


@compiled
def run_operation(threads, operation, growth):
    """Sum the rows of some nodes into their slots, or search nodes that have been summed.

    threads : Threads; operation : int, SUM or SEARCH; growth : Growth
    """
    growth, task = by_reference(growth), claim(threads)
    while task >= 0:
        do_task(task, threads, growth, None)
        if is_last(threads):
            _next_of_operation(threads, operation, growth)
        task = claim(threads)
