"""Growth in steps by several pretended workers, each with some rows: the tree of one worker."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.backends.threads import ThreadTeam
from hilboost.engine import buffers
from hilboost.engine.gradients import pack
from hilboost.engine.growth_inputs import growth_of
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.grow import awaited, decide, divide, grow, sum_histograms
from hilboost.engine.ops.cpu.nodes import (
    BEGIN,
    BIN,
    COLUMN,
    END,
    LEFT,
    MISSING_LEFT,
    N_LEFT,
    N_NODES,
    N_ROWS,
    NODE,
    RIGHT,
    SLOT,
    open_root,
)
from hilboost.engine.ops.cpu.sync import SYNC_SIZE, Threads
from hilboost.engine.table import bin_table
from hilboost.engine.tree_data import TreeData
from hilboost.learners.tree import TreeLearner

N, D = 150, 9
PARAMETERS = [
    {},
    {"max_features": 0.5, "max_features_per_tree": 0.8},
    {"monotonic": (1, -1, 0, 0, 1, 0, 0, 0, 0)},
    {"groups": ((0, 1, 2), (2, 3, 4, 5, 6, 7, 8))},
    {"categorical": ((8, 12),)},
    {"max_depth": 2},
    {"shared": True},
]


def buffers_for(learner, table, rows, max_leaves=8):
    """Memory for some rows of a table, filled with their numbers."""
    space = buffers.TreeBuffers(
        {},
        (),
        n_rows=rows,
        n_columns=D,
        n_bins=table.n_bins,
        n_threads=1,
        max_leaves=max_leaves,
        n_sets=2 * max_leaves - 1 if learner.categorical else 0,
    )
    space.learn_from_all(ThreadTeam())
    return space


def draw(learner, seed):
    """A table, and gradients of one output (three for shared trees) packed for all rows."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, D)), 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 8] = rng.integers(12, size=N)
    table = bin_table(X, None, 20, 0, ThreadTeam(), dict(learner.categorical))
    r = 3 if learner.shared else 1
    hessian = rng.uniform(0.1, 1, size=(N, r)) if seed % 2 else np.empty((N, 0))
    weight = rng.uniform(0.1, 3, size=N) if seed % 3 == 0 else np.empty(0)
    space = buffers_for(learner, table, N)
    negative, salt = rng.normal(size=(N, r)), np.uint64(1)
    learned = WeightedGradients(negative, hessian, weight, space.rows[:0])
    packed = pack(space, learned, False, salt, ThreadTeam())
    return table, space, packed


def worker(learner, table, space, packed, rows, seed, max_leaves=8):
    """The growth of a worker that has some of the rows, and sums over all of them."""
    own = replace(table, words=np.ascontiguousarray(table.words[:, rows]))
    mine = buffers_for(learner, table, len(rows), max_leaves)
    values = packed.values
    if values is None:
        mine.ordered(1)[:] = space.ordered(1)[rows]
    else:
        values = values[rows]
    rng = np.random.default_rng(seed)
    data = TreeData(own, ThreadTeam(), {})
    growth = growth_of(learner, data, mine, replace(packed, values=values), rng)
    open_root(growth.nodes, len(rows), int(rng.integers(2**62)))
    growth.nodes.fields[0, N_ROWS] = N
    return growth


def grow_by_steps(workers):
    """Between the steps, replace counts and histograms by their sums over the workers."""
    alone = Threads(0, 1, np.zeros(SYNC_SIZE, dtype=np.int64))
    while True:
        for one in workers:
            divide(alone, one)
        n_left = sum(int(one.nodes.control[N_LEFT]) for one in workers)
        for one in workers:
            one.nodes.control[N_LEFT] = n_left
            sum_histograms(alone, one)
        for local in zip(*(awaited(one) for one in workers), strict=True):
            total = np.sum(local, axis=0)
            for histogram in local:
                histogram[:] = total
        for one in workers:
            decide(alone, one)
        if workers[0].nodes.control[NODE] < 0:
            return


def of_all_workers(growth):
    """What does not depend on which rows are here."""
    n_nodes = int(growth.nodes.control[N_NODES])
    fields = np.delete(growth.nodes.fields[:n_nodes], [BEGIN, END, SLOT], axis=1)
    inner = growth.nodes.fields[:n_nodes, LEFT] >= 0
    categories = growth.categories
    sets = np.empty((0, 4)) if categories is None else categories.left_sets[:n_nodes]
    is_set = inner[: len(sets)]
    gains = growth.nodes.gains[:n_nodes][inner]
    return fields[inner], gains, growth.sums.totals[:n_nodes], sets[is_set], n_nodes


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("budget", [0, 2**29])
@given(seed=st.integers(0, 2**20), n_workers=st.integers(1, 4))
def test_workers_with_some_rows_each_grow_the_tree_of_one(parameters, budget, seed, n_workers):
    learner = TreeLearner(max_leaf_nodes=8, min_samples_leaf=3, **parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "HISTOGRAM_BUDGET", budget)
        table, space, packed = draw(learner, seed)
        owner = np.random.default_rng(seed).integers(n_workers + 1, size=N) % n_workers
        owner[owner == seed % n_workers] = 0  # a worker may have no rows
        whole = worker(learner, table, space, packed, np.arange(N), seed)
        grow(Threads(0, 1, np.zeros(SYNC_SIZE, dtype=np.int64)), whole)
        workers = [
            worker(learner, table, space, packed, np.flatnonzero(owner == k), seed)
            for k in range(n_workers)
        ]
        grow_by_steps(workers)
    for one in workers:
        for found, expected in zip(of_all_workers(one), of_all_workers(whole), strict=True):
            np.testing.assert_array_equal(found, expected)


def splits_by_path(growth):
    """The split of every inner node; a path is a string of L and R."""
    fields, found, waiting = growth.nodes.fields, {}, [(0, "")]
    while waiting:
        node, path = waiting.pop()
        if fields[node, LEFT] >= 0:
            split = fields[node, [COLUMN, BIN, MISSING_LEFT]].tolist()
            found[path] = (*split, float(growth.nodes.gains[node]))
            waiting += [(fields[node, LEFT], path + "L"), (fields[node, RIGHT], path + "R")]
    return found


@given(seed=st.integers(0, 2**20))
def test_column_draws_do_not_depend_on_the_order_in_which_nodes_are_opened(seed):
    learner = TreeLearner(min_samples_leaf=3, max_features=0.4)
    table, space, packed = draw(learner, seed)
    alone, trees = Threads(0, 1, np.zeros(SYNC_SIZE, dtype=np.int64)), []
    for in_turn, max_leaves in ((False, N), (True, N), (False, 8)):
        growth = worker(learner, table, space, packed, np.arange(N), seed, max_leaves)
        limits = growth.limits._replace(in_turn=in_turn, max_leaves=max_leaves)
        grow(alone, growth._replace(limits=limits))
        trees.append(splits_by_path(growth))
    best_first, in_turn, small = trees
    assert best_first == in_turn
    assert small.items() <= best_first.items()
    assert len(small) == 7 < len(best_first)
    assert len({split[0] for split in best_first.values()}) > 3
