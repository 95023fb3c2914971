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
    DONE,
    FLAG,
    MERGE,
    MOVE,
    SEARCH,
    STEP,
    SUM,
    n_tasks_of,
    n_threads_worth,
)
from hilboost.engine.ops.cpu.best_first import next_step, search_part
from hilboost.engine.ops.cpu.node_histogram import sum_part
from hilboost.engine.ops.cpu.partition import flag_part, move_part
from hilboost.engine.ops.cpu.symmetric import next_level, search_levels
from hilboost.engine.ops.cpu.sync import claim, finish, is_last, publish


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
        sum_part(task, threads, growth, growth.packed, growth.joint)
    elif step in (SEARCH, MERGE):
        if summed is None:
            search_part(task, threads, growth)
        else:
            search_levels(task, threads, growth, summed)


@inner
def take_steps(threads, growth, summed):
    """Decide on the next steps and execute them, up to one that is worth sharing, which begins.

    Returns whether there is one; otherwise the tree is complete.
    """
    batch = growth.batch
    while True:
        if summed is None:
            next_step(threads.n_threads, growth)
        else:
            next_level(threads.n_threads, growth)
        if batch.state[STEP] == DONE:
            return False
        n_threads, n_waked = n_threads_worth(batch, threads.n_threads)
        if n_threads > 1:
            publish(threads, n_tasks_of(batch), n_waked)
            return True
        for task in range(n_tasks_of(batch)):
            do_task(task, threads, growth, summed)


@compiled
def grow(threads, growth, summed):
    """Grow one tree; ``batch.tree`` lists its nodes in the order in which they were split.

    threads : Threads, growth : Growth
    summed : (n_threads, 512) float64, working memory of symmetric trees, or None: best first

    Notes
    -----
    Cost O(m d log(leaves)) for balanced trees, the smaller child of each split only.
    """
    growth, task = by_reference(growth), claim(threads)
    while task >= 0:
        do_task(task, threads, growth, summed)
        if is_last(threads) and not take_steps(threads, growth, summed):
            finish(threads)
        task = claim(threads)
