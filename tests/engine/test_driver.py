"""The driver grows the tree of the compiled grower: on every device, in batches, among workers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workers.together import run_together

from hilboost.backends.exact_sums import is_whole
from hilboost.backends.threads import ThreadTeam
from hilboost.core.exchange import RowShare
from hilboost.core.gradients import Gradients, Structure
from hilboost.core.row_sample import RowSample
from hilboost.engine import buffers, driver, prepare_trees
from hilboost.engine import gradients as packing
from hilboost.engine.gradients import pack
from hilboost.engine.growth_inputs import growth_of
from hilboost.engine.ops import reference
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.ops.cpu.nodes import (
    ARRAY,
    BEGIN,
    BIN,
    COLUMN,
    END,
    LEFT,
    LEFT_ARRAY,
    MISSING_LEFT,
    N_NODES,
    RIGHT,
    SLOT,
)
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.ops.cuda import DeviceOperations
from hilboost.engine.ops.cuda.processor import Processor
from hilboost.engine.settings import TreeSettings
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
    {"categorical": ((8, 12),), "monotonic": (1, -1, 0, 0, 1, 0, 0, 0, 0)},
    {
        "categorical": ((8, 12),),
        "max_features": 0.8,
        "level_smoothing": 2.0,
        "min_samples_leaf": 12,
        "min_samples_level": 1,
        "l2_regularization": 1.0,
        "min_gain": 0.1,
        "min_hessian": 2.0,
    },
    {"groups": tuple((k,) for k in range(9)), "monotonic": (-1,) * 9},
    {"max_depth": 2},
    {"max_depth": 1, "min_samples_leaf": 0.5},
    {"min_gain": 1e9},
    {"shared": True},
    {"shared": True, "monotonic": (1, -1, 0, 0, 1, 0, 0, 0, 0)},
    {"l2_regularization": 1.0, "min_gain": 0.1, "min_hessian": 2.0},
    {"symmetric": True},
    {"symmetric": True, "max_features": 0.5, "max_features_per_tree": 0.8},
    {"symmetric": True, "l2_regularization": 1.0, "min_gain": 0.1, "min_hessian": 2.0},
    {"symmetric": True, "shared": True, "max_depth": 2},
    {"symmetric": True, "min_gain": 1e9},
]
LIMITS = None, "_MOST_ROWS_EXACT", "_FEWEST_STEPS"  # of layouts
SMALL = {"max_leaf_nodes": 8, "min_samples_leaf": 3}
parametrized = pytest.mark.parametrize("parameters", PARAMETERS, ids=str)


TEAMS = {1: ThreadTeam(1), 2: ThreadTeam(2)}


def cpu(n_threads=1):
    """The operations on some threads, which are those of the fit and share any work."""
    return CpuOperations(TEAMS[n_threads], n_threads, worth_asking=1)


def buffers_for(settings, table, n_rows, max_leaves=8, spare_leaves=4, n_threads=1, batch_size=1):
    """Memory for some rows of a table, filled with their numbers."""
    space = buffers.TreeBuffers(
        {},
        (),
        n_rows=n_rows,
        n_columns=D,
        n_bins=table.n_bins,
        n_threads=n_threads,
        max_leaves=max_leaves,
        spare_leaves=spare_leaves,
        has_sets=bool(settings.categorical),
        keeps_all=settings.symmetric,
        batch_size=max_leaves // 2 if settings.symmetric else batch_size,
    )
    space.write_rows(None, ThreadTeam())
    return space


def draw(settings, seed):
    """A table, and gradients of one output (three for shared trees) packed for all rows.

    In a half of the tables, every second row is a mirror image of the one before it: of gradients
    only (but for one column), or of inputs too, so that many nodes or splits have equal gains.
    """
    rng, r = np.random.default_rng(seed), 3 if settings.shared else 1
    X, negative = draw_inputs(rng), rng.normal(size=(N, r))
    hessian = rng.uniform(0.1, 1, size=(N, r)) if seed // 4 % 2 else np.empty((N, 0))
    weight = rng.uniform(0.1, 3, size=N) if seed // 8 % 3 == 0 else np.empty(0)
    kind = seed % 4
    if kind > 1:
        hessian[1::2], weight[1::2], X[1::2] = hessian[::2], weight[::2], X[::2]
        negative[:] = np.sign(negative) / 2
        negative[1::2] = -negative[::2]
    if kind == 2:
        X[:, 0] = np.arange(N) % 2
        negative += 1 - 2 * X[:, :1]
    if kind == 3:
        X[1::2] *= -1
        X[1::2, 8] += 11
        X[:, :7] = np.round(X[:, :7])
        X[:, 5:8] = X[:, 2:5]
    table = bin_table(X, None, 20, 0, ThreadTeam(), dict(settings.categorical))
    space, salt = buffers_for(settings, table, N), np.uint64(1)
    learned = WeightedGradients(negative, hessian, weight, space.rows[:0], is_whole(weight))
    return table, space, pack(space, learned, False, salt, TreeData(table, ThreadTeam(), {}))


def draw_inputs(rng):
    """Inputs of few values, some of which are missing; the last column is of levels."""
    X = np.round(rng.normal(size=(N, D)), 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 8] = rng.integers(12, size=N)
    return X


def growth_with(settings, table, space, packed, rows, seed, **sizes):
    """The open root of a tree of some rows, with sums over all of them."""
    own = replace(table, words=np.ascontiguousarray(table.words[:, rows]))
    mine = buffers_for(settings, table, len(rows), **sizes)
    values = packed.values
    if values is None:
        mine.ordered(1)[:] = space.ordered(1)[rows]
    else:
        values = values[rows]
    rng = np.random.default_rng(seed)
    data = TreeData(own, ThreadTeam(), {})
    return growth_of(settings, data, mine, replace(packed, values=values), rng)


def tree_of(growth, with_rows=True):
    """What a tree consists of; the rows of its leaves are ascending, where these are compared."""
    n_nodes, fields = int(growth.nodes.control[N_NODES]), growth.nodes.fields
    inner = fields[:n_nodes, LEFT] >= 0
    of_device = [BEGIN, END, ARRAY, LEFT_ARRAY, SLOT]  # where its rows and sums lie
    compared = np.delete(fields[:n_nodes], of_device, axis=1)[inner]
    by_level = growth.categories is not None and len(growth.categories.left_sets)
    sets = growth.categories.left_sets[:n_nodes] if by_level else np.empty((n_nodes, 0))
    places = fields[:n_nodes, [ARRAY, BEGIN, END]][~inner]
    rows = [growth.buffers.rows[array, begin:end] for array, begin, end in places]
    leaves = np.concatenate(rows) if with_rows else []
    gains, totals = growth.nodes.gains[:n_nodes][inner], growth.sums.totals[:n_nodes]
    bounds = [] if growth.constraints is None else growth.constraints.bounds[:n_nodes][~inner]
    is_set = inner & (fields[:n_nodes, COLUMN] == 8)
    return n_nodes, compared, gains, totals, sets[is_set], leaves, bounds


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


class Trace:
    """A toy device: the reference, which notes what it is asked for."""

    in_order = True

    def __init__(self):
        self.names = []

    def __getattr__(self, name):
        self.names.append(name)
        return getattr(reference, name)


@parametrized
@given(
    seed=st.integers(0, 2**20),
    budget=st.sampled_from([0, 2**29]),
    batch=st.integers(1, 5),
    n_threads=st.integers(1, 2),
    few_rows=st.sampled_from([0, N // 3, N]),
)
def test_every_device_grows_the_same_tree(parameters, seed, budget, batch, n_threads, few_rows):
    settings = TreeSettings(**SMALL | parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "HISTOGRAM_BUDGET", budget)
        given_ = settings, *draw(settings, seed), np.arange(N), seed
        whole = growth_with(*given_)
        if whole.limits.few_rows:
            whole = whole._replace(limits=whole.limits._replace(few_rows=few_rows))
        cpu().grow(whole, settings.symmetric)
        trace = Trace()
        phases = [] if settings.shared else [DeviceOperations(Processor())]
        for device in (cpu(n_threads), trace, *phases):
            growth = growth_with(*given_, n_threads=n_threads, batch_size=batch)
            driver.grow_tree(growth, device)
            with_rows = device.in_order
            assert_same(tree_of(growth, with_rows), tree_of(whole, with_rows))
    names = trace.names
    assert names[:2] == ["histogram", "search"]
    assert names.count("partition") <= int(whole.nodes.control[N_NODES]) // 2 + 1


@parametrized
@given(seed=st.integers(0, 2**20), batch=st.integers(1, 5), n_workers=st.integers(1, 4))
def test_workers_with_some_rows_each_grow_the_tree_of_one(parameters, seed, batch, n_workers):
    settings = TreeSettings(**SMALL | parameters)
    table, space, packed = draw(settings, seed)
    owner = np.random.default_rng(seed).integers(n_workers + 1, size=N) % n_workers
    owner[owner == seed % n_workers] = 0  # a worker may have no rows
    whole = growth_with(settings, table, space, packed, np.arange(N), seed)
    cpu().grow(whole, settings.symmetric)

    def work(exchange):
        rows = np.flatnonzero(owner == exchange.rank)
        growth = growth_with(settings, table, space, packed, rows, seed, batch_size=batch)
        share = RowShare(exchange, N, rows.astype(np.uint32))
        driver.grow_tree(growth, cpu(), share, counted=seed // 8 % 3 > 0)
        return tree_of(growth, with_rows=False)

    for found in run_together(n_workers, work):
        assert_same(found, tree_of(whole, with_rows=False))


def fit(learner, seed, n_threads, operations):
    """The trees of a stage of drawn gradients, and the leaf of each row."""
    rng = np.random.default_rng(seed)
    X, negative = draw_inputs(rng), rng.uniform(-1, 1, size=(N, 2))
    hessian = rng.uniform(0.1, 1, size=(N, 2)) if seed % 3 == 1 else None
    gradients = Gradients(negative, hessian, Structure(logistic=seed % 3 == 2))
    weight = (None, rng.integers(1, 4, N).astype(float), rng.uniform(0.1, 3, N))[seed // 3 % 3]
    rows = np.flatnonzero(rng.uniform(size=N) < 0.7).astype(np.uint32) if seed % 2 else None
    data = prepare_trees(learner, X, weight, 0, n_threads, operations=operations)
    data.plan = replace(data.plan, fewest_separate=None)
    fitted = learner.fit(data, gradients, RowSample(rows, weight), np.random.default_rng(seed))
    learner.close(data)
    return [(one.term.model, one.leaves) for one in fitted]


@parametrized
@given(limit=st.sampled_from(LIMITS), seed=st.integers(0, 2**20))
def test_every_device_fits_the_same_trees(parameters, limit, seed):
    """Also with gradients that are rounded at random, and with counts in a channel of their own."""
    learner, trace = TreeLearner(**SMALL | parameters), Trace()
    with pytest.MonkeyPatch.context() as patch:
        if limit is not None:
            patch.setattr(packing, limit, 10 if limit == "_MOST_ROWS_EXACT" else 2**40)
        packing.layout_of.cache_clear()
        expected = fit(learner, seed, 1, None)
        devices = [(2, None), (1, cpu(1)), (2, cpu(2)), (1, trace)]
        devices += [] if learner.shared else [(1, DeviceOperations(Processor()))]
        found = [fit(learner, seed, n_threads, device) for n_threads, device in devices]
        packing.layout_of.cache_clear()
    for trees in found:
        for (tree, leaves), (other, other_leaves) in zip(trees, expected, strict=True):
            for name in ("column", "threshold", "gain", "values"):
                np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))
            np.testing.assert_array_equal(leaves, other_leaves)
    names = set(trace.names)
    assert names - {"partition", "walk"} == {"quantize", "histogram", "search", "leaves"}
    assert "partition" in names or len(expected[0][0].column) == 1
    assert ("walk" in names) == (seed % 2 == 1)


def test_batches_take_fewer_steps():
    settings = TreeSettings(min_samples_leaf=3)
    given_ = settings, *draw(settings, 1), np.arange(N), 1
    n_steps = {}
    for batch in (1, 2, 4):
        sizes = {"max_leaves": 31, "spare_leaves": 6, "batch_size": batch}
        growth, trace = growth_with(*given_, **sizes), Trace()
        driver.grow_tree(growth, trace)
        n_steps[batch] = trace.names.count("partition")
        n_splits = int(growth.nodes.control[N_NODES]) // 2
    assert n_steps[1] == n_splits > 20
    assert n_steps[2] < 0.65 * n_splits
    assert n_steps[4] < n_steps[2]


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


@given(seed=st.integers(0, 2**20).map(lambda number: 24 * number))  # no mirror images
def test_column_draws_do_not_depend_on_the_order_in_which_nodes_are_opened(seed):
    settings = TreeSettings(min_samples_leaf=3, max_features=0.4)
    given_, trees = (settings, *draw(settings, seed), np.arange(N), seed), []
    for max_leaves in (N, 8):
        growth = growth_with(*given_, max_leaves=max_leaves)
        cpu().grow(growth, symmetric=False)
        trees.append(splits_by_path(growth))
    growth = growth_with(*given_, max_leaves=N, spare_leaves=N, batch_size=32)
    driver.grow_tree(growth, cpu())
    large, small = trees
    assert splits_by_path(growth) == large
    assert small.items() <= large.items()
    assert len(small) == 7 < len(large)
