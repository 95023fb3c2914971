"""The nodes that are divided, summed and searched together, and the tasks of these steps.

A step takes some of the nodes.  Each of them is cut into parts, which threads claim as tasks::

    nodes     a (2 parts)    b (1 part)   c (3 parts)
    tasks     0 1            2            3 4 5
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.compiled import inner, tiny

# Entries of ``Batch.state``: the current step, how many nodes it takes and how long it lasts on one
# thread, in nanoseconds; how many nodes are divided, pairs are searched, and nodes are summed;
# splits, nodes and levels of the tree so far; how often nodes were summed.
STEP, N_ITEMS, WORK, N_DIVIDED, N_PAIRS, N_SUMMED, N_SPLITS, N_TREE, N_LEVELS, N_SUMS = range(10)
_STATE_SIZE = 10
# Steps.
BEGIN_TREE, FLAG, MOVE, SUM, MERGE, SEARCH, SEARCHED, CANDIDATES, DONE = range(9)
# Steps of a series of stages, and of a tree besides its growth.
EVALUATE, TREES, ONE_TREE = range(9, 12)
NEW_TREE, MEASURE, PACK, LEAVES, VALUES = range(12, 17)
# Whether the children of a split are summed and searched.
NEITHER, BOTH, ONLY_SUMMED = range(3)

ROWS_PER_PART = 2**14
"""Rows of a node that are flagged and moved in one task."""
_WORTH_SHARING = 20_000
_WORTH_WAKING = 100_000
"""Nanoseconds of work from which on a step is shared, and sleeping threads are waked for it."""
_WORTH_A_THREAD = 50_000
"""Nanoseconds of work for each thread that is waked."""


class Batch(NamedTuple):
    """Nodes that are taken together."""

    state: NDArray[np.int64]  # (10,) int64
    divided: NDArray[np.int64]  # (b,) int64: nodes
    n_left_here: NDArray[np.int64]  # (b,) int64: how many of their rows here go left
    n_left: NDArray[np.int64]  # (b,) int64: how many of all workers
    pairs: NDArray[np.int64]  # (2 b, 2) int64: the smaller and the larger child; one node twice
    modes: NDArray[np.int64]  # (2 b,) int64: what is done with the children
    summed: NDArray[np.int64]  # (2 b,) int64: nodes
    first_sum: NDArray[np.int64]  # (2 b + 1,) int64: the first of the summed nodes of each pair
    first_task: NDArray[np.int64]  # (2 b + 1,) int64: of each node of the step
    # (2 b,) int64: parts of the rows of the nodes of the step
    n_parts: NDArray[np.int64]
    # (n,) int64: rows that go left in each part of the rows, and then in the parts before
    counts: NDArray[np.int64]
    # (n_threads, 2 b, n_words) int64: when a thread has last summed some words of a node
    used: NDArray[np.int64]
    gains: NDArray[np.float64]  # (n_tasks, 2) float64: the best gain of both children
    splits: NDArray[np.int64]  # (n_tasks, 2, 3) int64: its column, cut and side of missing values
    tree: NDArray[np.int64]  # (n_nodes,) int64: nodes in the order in which the tree was split
    is_split: NDArray[np.uint8]  # (n_nodes,) uint8: nodes whose split is part of the tree
    moves: NDArray[np.int64]  # (2, n_nodes) int64: memory to renumber nodes


def empty_batch(size: int, n_rows: int, n_threads: int, n_columns: int, n_nodes: int) -> Batch:
    """Return room for so many nodes at a time."""
    n_words, n_groups = -(-n_columns // 8), n_column_groups(n_columns, n_threads)
    return Batch(
        state=np.zeros(_STATE_SIZE, dtype=np.int64),
        divided=np.empty(size, dtype=np.int64),
        n_left_here=np.empty(size, dtype=np.int64),
        n_left=np.empty(size, dtype=np.int64),
        pairs=np.empty((2 * size, 2), dtype=np.int64),
        modes=np.empty(2 * size, dtype=np.int64),
        summed=np.empty(2 * size, dtype=np.int64),
        first_sum=np.zeros(2 * size + 1, dtype=np.int64),
        first_task=np.zeros(2 * size + 1, dtype=np.int64),
        n_parts=np.empty(2 * size, dtype=np.int64),
        counts=np.empty(n_rows // ROWS_PER_PART + 2 * size, dtype=np.int64),
        used=np.zeros((n_threads, 2 * size, n_words), dtype=np.int64),
        gains=np.empty((2 * size * n_groups, 2)),
        splits=np.empty((2 * size * n_groups, 2, 3), dtype=np.int64),
        tree=np.empty(n_nodes, dtype=np.int64),
        is_split=np.zeros(n_nodes, dtype=np.uint8),
        moves=np.empty((2, n_nodes), dtype=np.int64),
    )


def n_column_groups(n_columns: int, n_threads: int) -> int:
    """Return into how many tasks the columns of a node are divided."""
    return 1 if n_threads == 1 else min(n_columns, 4 * n_threads)


@inner
def item_of(task, batch):
    """Which node of the step a task belongs to."""
    item = 0
    while batch.first_task[item + 1] <= task:
        item += 1
    return item


@tiny
def n_tasks_of(batch):
    """How many tasks the step has."""
    return batch.first_task[batch.state[N_ITEMS]]


@inner
def start_step(step, n_items, work, batch):
    """Begin a step, whose nodes have been cut into tasks."""
    state = batch.state
    state[STEP], state[N_ITEMS], state[WORK] = step, n_items, work


@tiny
def n_threads_worth(batch, n_threads):
    """Return one or all threads for a step, and how many that sleep are woken for it."""
    work = batch.state[WORK]
    if n_threads == 1 or work < _WORTH_SHARING or n_tasks_of(batch) < 2:
        return 1, 0
    n_worth = 1 + work // _WORTH_A_THREAD
    return n_threads, min(n_threads, n_tasks_of(batch), n_worth) - 1 if work >= _WORTH_WAKING else 0
