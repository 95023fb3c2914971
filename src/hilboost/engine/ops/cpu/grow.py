"""Growth of one tree, in steps whose tasks a team of threads shares.

Nodes are taken in batches.  Each step takes all nodes of a batch::

    flag, move    which rows of the nodes go left; divide them
    sum           histograms of the smaller children, or of the root
    search        best splits of both children, or of a level, by columns

Whoever completes the last task of a step decides alone what follows: opens the children, settles
their splits, chooses the next batch.  With one thread, or where a step is short, this thread
executes it, too.  Integer histograms and fixed tie rules make the tree the same for any number of
threads.  Nothing is allocated here: an exception in one thread would leave the others waiting.

Inputs that few trees need are ``None`` in all others: ``constraints``, ``categories``, ``packed``
where there is one channel, and ``summed`` where trees are not symmetric.  The compiler then leaves
out the code that reads them, which shortens the first fit.
"""

from hilboost.backends.compiled import compiled, inner
from hilboost.backends.intrinsics import keep_apart
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
from hilboost.engine.ops.cpu.best_first import next_step, search_part, settle_batch
from hilboost.engine.ops.cpu.growth import cut_columns
from hilboost.engine.ops.cpu.node_histogram import cut_sums, sum_part
from hilboost.engine.ops.cpu.partition import flag_part, move_part
from hilboost.engine.ops.cpu.symmetric import cut_level, next_level, search_levels, settle_level
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish

WHOLE_TREE, DECIDE = -1, -2


@inner
def do_task(task, threads, growth, summed):
    """Do a task of the current step."""
    keep_apart()
    step, batch = growth.batch.state[STEP], growth.batch
    if step == FLAG:
        flag_part(task, growth.table, growth.nodes, growth.categories, growth.buffers, batch)
    elif step == MOVE:
        move_part(task, growth.nodes, growth.buffers, batch)
    elif step == SUM:
        sum_part(task, threads, growth, growth.packed)
    elif step in (SEARCH, MERGE):
        if summed is None:
            search_part(task, threads, growth)
        else:
            search_levels(task, threads, growth, summed)


@inner
def _decide(n_threads, growth, summed):
    if summed is None:
        next_step(n_threads, growth)
    else:
        next_level(n_threads, growth)


@inner
def take_steps(threads, growth, summed):
    """Decide on the next steps and execute them, up to one that is worth sharing, which begins.

    Returns whether there is one; otherwise the tree is complete.
    """
    batch = growth.batch
    while True:
        _decide(threads.n_threads, growth, summed)
        if batch.state[STEP] == DONE:
            return False
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return True
        for task in range(n_tasks_of(batch)):
            do_task(task, threads, growth, summed)


@inner
def _take_step(threads, operation, growth, summed):
    """Begin the step of an operation that follows, if any."""
    batch = growth.batch
    step = batch.state[STEP]
    if step == BEGIN_TREE and operation == SUM:
        cut_sums(threads.n_threads, growth)
    elif step == BEGIN_TREE:
        if summed is None:
            cut_columns(batch.state[N_PAIRS], SEARCH, growth)
        else:
            cut_level(growth)
    elif step == SUM:
        cut_columns(batch.state[N_SUMMED], MERGE, growth)
    else:
        if step == SEARCH:
            if summed is None:
                settle_batch(growth)
            else:
                settle_level(growth)
        batch.state[STEP] = DONE
        finish(threads)
        return
    publish(threads, n_tasks_of(batch), n_threads_worth(batch, threads.n_threads)[1])


@compiled
def grow(threads, operation, growth, summed):
    """Grow one tree; ``batch.tree`` lists its nodes in the order in which they were split.

    threads : Threads; growth : Growth
    operation : int, ``WHOLE_TREE``; or ``SUM``: sum the rows of the nodes of a batch into their
    slots; or ``SEARCH``: note the best splits of nodes that have been summed; or ``DECIDE``: what
    the next step is, which is executed elsewhere
    summed : (n_threads, 512) float64, working memory of symmetric trees, or None: best first

    Notes
    -----
    Cost O(m d log(leaves)) for balanced trees, the smaller child of each split only.
    """
    growth = by_reference(growth)
    if operation == DECIDE:
        _decide(threads.n_threads, growth, summed)
        return
    task = claim(threads)
    while task >= 0:
        do_task(task, threads, growth, summed)
        if is_last(threads):
            if operation != WHOLE_TREE:
                _take_step(threads, operation, growth, summed)
            elif not take_steps(threads, growth, summed):
                finish(threads)
        task = claim(threads)
