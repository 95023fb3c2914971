"""The compiled grower against best-first growth by exhaustive search, on one and two threads."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.reference.grow import Limits, Numbers, grow
from tests.reference.histogram import table_of
from tests.reference.isotonic import pairs_in_order

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine.ops.cpu import nodes
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.learners.tree import TreeLearner


@dataclass
class Before:
    """What growth overwrites."""

    rows: np.ndarray
    ordered: np.ndarray
    packed: np.ndarray | None


def fit_and_record(monkeypatch, parts, X, gradients, sample, n_threads, seed=0):
    """Grow one tree with the learner; returns what was there before, and all there is after."""
    before: list[Before] = []
    after: list[Growth] = []

    grow_it = CpuOperations.grow

    def recording(operations, growth, symmetric):
        m = len(growth.buffers.flags)
        rows, ordered = (array[0, :m].copy() for array in growth.buffers[:2])
        packed = None if growth.packed is None else growth.packed.copy()
        before.append(Before(rows, ordered, packed))
        grow_it(operations, growth, symmetric)
        after.append(growth)

    with monkeypatch.context() as context:
        context.setattr(CpuOperations, "grow", recording)
        data = parts.prepare(X, sample.weight, 0, n_threads)
        data.plan = replace(data.plan, fewest_separate=None)
        fitted = parts.fit(data, gradients, sample, np.random.default_rng(seed))
    parts.close(data)
    return before[0], after[0], fitted


def numbers_of(before, after):
    """The packed gradients as integers, in the table's row order."""
    packing, r = after.rules.packing, after.rules.n_outputs or 1
    packed = before.packed
    if packed is None:
        packed = np.zeros((after.table.words.shape[1], 1), dtype=np.int64)
        packed[before.rows, 0] = before.ordered
    counts = packed[:, r] if packed.shape[1] > r else np.ones(len(packed), dtype=np.int64)
    curved = packing.hessian_of_count == 0
    hessian = (packed[:, :r] >> packing.hessian_shift) & packing.hessian_mask
    of_hessian = packing.hessian_step if curved else packing.hessian_of_count
    return Numbers(
        gradient=packed[:, :r] >> packing.gradient_shift,
        hessian=hessian if curved else None,
        count=packed[:, 0] & packing.count_mask if packing.count_mask else counts,
        scales=(packing.gradient_step, of_hessian, packing.count_step),
        together=r == 1,
    )


def limits_of(after):
    split, limits, constraints = after.rules.limits, after.limits, after.constraints
    start = [] if constraints is None else constraints.group_start
    return Limits(
        limits.max_leaves,
        limits.max_depth,
        split.min_count,
        split.min_hessian,
        split.min_gain,
        split.l2,
        limits.columns_per_node,
        int(after.nodes.seeds[0]),
        tuple(after.rules.monotonic.tolist()),
        tuple(
            tuple(constraints.group_columns[begin:end].tolist())
            for begin, end in zip(start[:-1], start[1:], strict=True)
        ),
    )


def assert_same_tree(before, after, search=grow, **given):
    naive = search(
        table_of(after.table.words, len(after.table.n_values)),
        after.table.n_values,
        after.table.n_bins - 1,
        before.rows,
        numbers_of(before, after),
        limits_of(after),
        after.scratch.permitted if after.constraints is None else after.constraints.allowed,
        **given,
    )
    n_nodes = int(after.nodes.control[nodes.N_NODES])
    assert n_nodes == len(naive)
    for number, expected in enumerate(naive):
        found = after.nodes.fields[number]
        here = after.buffers.rows[found[nodes.ARRAY], found[nodes.BEGIN] : found[nodes.END]]
        assert found[nodes.DEPTH] == expected.depth
        if expected.left is None:
            assert found[nodes.LEFT] == -1
            np.testing.assert_array_equal(here, expected.rows)
            continue
        assert (found[nodes.LEFT], found[nodes.RIGHT]) == (expected.left, expected.right)
        column, cut, missing_left = expected.split
        assert found[[nodes.COLUMN, nodes.BIN]].tolist() == [column, cut]
        assert bool(found[nodes.MISSING_LEFT]) == missing_left
        assert after.nodes.gains[number] == expected.gain
    return n_nodes


def draw_table(rng, n, d, missing):
    """Columns of few and of many values."""
    X = rng.normal(size=(n, d))
    X[:, ::2] = np.round(X[:, ::2])
    if missing:
        X[rng.uniform(size=(n, d)) < 0.2] = np.nan
    return X


def draw_gradients(rng, n, r, kind):
    if kind == "signs":  # many equal gains
        return Gradients(np.sign(rng.normal(size=(n, r))))
    hessian = rng.uniform(0.05, 1, size=(n, r)) if kind == "curved" else None
    return Gradients(rng.normal(size=(n, r)), hessian)


def draw_sample(rng, n, weights, sampled):
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=n).astype(float),
        "fractions": rng.uniform(1e-4, 2, size=n),
    }[weights]
    rows = np.sort(rng.choice(n, n // 2, replace=False)).astype(np.uint32) if sampled else None
    return RowSample(rows, weight)


@pytest.mark.parametrize("kind", ["signs", "plain", "curved"])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_trees_are_those_of_an_exhaustive_search(monkeypatch, kind, r, weights):
    missing = (len(kind) + len(weights)) % 2
    rng = np.random.default_rng([len(kind), r, len(weights), missing])
    sizes = []
    for sampled in (False, True):
        n, d = int(rng.integers(20, 90)), int(rng.integers(1, 12))
        parts = TreeLearner(
            max_leaf_nodes=int(rng.integers(2, 10)),
            min_samples_leaf=float(rng.choice([1, 1, 4])),
            l2_regularization=float(rng.choice([0, 1])),
            min_gain=float(rng.choice([0, 0.1])),
            max_bins=int(rng.choice([8, 255])),
            shared=True,
        )
        X = draw_table(rng, n, d, missing)
        gradients, sample = draw_gradients(rng, n, r, kind), draw_sample(rng, n, weights, sampled)
        n_threads = 1 + (sampled + len(weights)) % 2
        before, after, _ = fit_and_record(monkeypatch, parts, X, gradients, sample, n_threads)
        sizes.append(assert_same_tree(before, after))
    assert max(sizes) > 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2},
        {"max_depth": 1},
        {"min_hessian": 5.0},
        {"min_gain": 3.0},
        {"max_features": 0.3},
        {"max_features_per_tree": 0.5},
        {"max_features": 0.5, "max_features_per_tree": 0.5},
        {"max_leaf_nodes": 200, "min_samples_leaf": 1},
        {"min_samples_leaf": 0.5},
        {"min_samples_leaf": 70},
        {"monotonic": (1, -1, 0, 0, 1, 1, -1, 0, 0)},
        {"monotonic": (-1,) * 9, "l2_regularization": 2.0},
        {"groups": tuple((k,) for k in range(9))},
        {"groups": ((0, 1, 2), (2, 3, 4), (5, 6, 7, 8)), "max_features": 0.5},
        {"groups": ((0, 1), (1, 2), (2, 3), (4, 5, 6, 7, 8)), "max_features_per_tree": 0.8},
        {"monotonic": (1,) * 9, "groups": ((0, 1, 2, 3, 4), (4, 5, 6, 7, 8))},
    ],
    ids=str,
)
def test_limits_are_those_of_an_exhaustive_search(monkeypatch, parameters):
    rng = np.random.default_rng(5)
    parts = TreeLearner(**{"max_leaf_nodes": 12, "min_samples_leaf": 2} | parameters)
    X, gradients = draw_table(rng, 80, 9, True), draw_gradients(rng, 80, 1, "curved")
    sample, n_threads = RowSample(None, None), 1 + len(parameters) % 2
    before, after, _ = fit_and_record(monkeypatch, parts, X, gradients, sample, n_threads)
    n_nodes = assert_same_tree(before, after)
    assert (n_nodes == 1) == (parameters.get("min_samples_leaf") == 70)


@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("kind", ["signs", "plain", "curved"])
def test_directions_are_kept_in_growth(monkeypatch, r, kind):
    sizes = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 6))
        parts = TreeLearner(
            max_leaf_nodes=int(rng.integers(2, 20)),
            min_samples_leaf=1,
            l2_regularization=float(rng.choice([0, 1])),
            monotonic=tuple(rng.integers(-1, 2, size=d).tolist()),
            shared=True,
        )
        X, sample = draw_table(rng, 80, d, True), draw_sample(rng, 80, "whole", seed % 2 == 0)
        gradients = draw_gradients(rng, 80, r, kind)
        before, after, (fitted,) = fit_and_record(
            monkeypatch, parts, X, gradients, sample, n_threads=1 + seed // 2 % 2
        )
        sizes.append(assert_same_tree(before, after))
        tree, directions = fitted.term.model, fitted.order.directions
        for low, high in pairs_in_order(tree.child, tree.leaf_number, directions):
            assert (tree.values[low] <= tree.values[high]).all()
    assert max(sizes) > 5


@pytest.mark.parametrize("r", [1, 2])
def test_two_histograms_do_where_memory_is_short(little_memory, monkeypatch, r):
    rng = np.random.default_rng(r)
    parts = TreeLearner(max_leaf_nodes=10, min_samples_leaf=1, shared=True)
    X, gradients = draw_table(rng, 80, 5, True), draw_gradients(rng, 80, r, "plain")
    before, after, _ = fit_and_record(monkeypatch, parts, X, gradients, RowSample(None, None), r)
    assert len(after.histograms.slots) == 2
    assert assert_same_tree(before, after) > 9


@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("fixtures", [(), ("little_memory",)])
def test_large_nodes_are_shared_out_by_rows(r, fixtures, monkeypatch, request):
    for name in fixtures:
        request.getfixturevalue(name)
    rng = np.random.default_rng(r)
    n = 40_000
    X = np.round(rng.normal(size=(n, 3)) * 2)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    gradients = draw_gradients(rng, n, r, "plain")
    parts = TreeLearner(max_leaf_nodes=6, min_samples_leaf=1, shared=True)
    sample, n_threads = RowSample(None, None), 1 + r
    before, after, _ = fit_and_record(monkeypatch, parts, X, gradients, sample, n_threads)
    assert assert_same_tree(before, after) == 11


def test_many_rows_with_hessians_count_in_a_channel_of_their_own(count_channel, monkeypatch):
    rng = np.random.default_rng(0)
    parts = TreeLearner(max_leaf_nodes=9, min_samples_leaf=3)
    X, gradients = draw_table(rng, 200, 4, True), draw_gradients(rng, 200, 1, "curved")
    before, after, _ = fit_and_record(monkeypatch, parts, X, gradients, RowSample(None, None), 2)
    assert after.sums.totals.shape[1] == 2
    assert assert_same_tree(before, after) == 17
