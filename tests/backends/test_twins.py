"""Every compiled kernel against its naive twin."""

import importlib
import inspect
import itertools
import pkgutil
from dataclasses import replace

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from tests.backends.random_arguments import (
    LEVEL_LIMITS,
    LIMITS,
    draw_bounds,
    draw_histogram,
    draw_layout,
    draw_rows,
    draw_words,
)
from tests.reference import binning as binning_twin
from tests.reference import fixed_point as fixed_point_twin
from tests.reference import histogram as histogram_twin
from tests.reference import leaves as leaves_twin
from tests.reference import levels as levels_twin
from tests.reference import order as order_twin
from tests.reference import partition as partition_twin
from tests.reference import split as split_twin
from tests.reference import traverse as traverse_twin

import hilboost.backends
from hilboost.backends import (
    binning,
    fixed_point,
    histogram,
    levels,
    order,
    partition,
    split,
    traverse,
)
from hilboost.backends import (
    leaves as compiled_leaves,
)
from hilboost.backends import nodes as fields
from hilboost.core.base_model import Term
from hilboost.learners.tree import Forest, Tree

SEEDS = range(6)
WITHOUT_TWIN = {"barrier"}  # synchronises and computes nothing
seeded = pytest.mark.parametrize("seed", SEEDS)


def test_every_kernel_has_a_twin():
    for info in pkgutil.iter_modules(hilboost.backends.__path__):
        module = importlib.import_module(f"hilboost.backends.{info.name}")
        names = {
            name
            for name, value in vars(module).items()
            if isinstance(value, Dispatcher)
            and value.py_func.__module__ == module.__name__
            and not name.startswith("_")
        } - WITHOUT_TWIN
        if names:
            twin = importlib.import_module(f"tests.reference.{info.name}")
            assert names <= set(vars(twin))


@seeded
@pytest.mark.parametrize("d", [1, 8, 13])
def test_accumulate(seed, d):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    words = draw_words(rng, n, d, 256)
    rows, begin, end = draw_rows(rng, n)
    ordered = rng.integers(-(2**40), 2**40, size=len(rows))
    first, last = (0, len(words)) if seed % 2 else (len(words) - 1, len(words))
    results = []
    for module in (histogram, histogram_twin):
        result = np.full(d * 256, -7)
        module.accumulate(words, first, last, d, rows, ordered, begin, end, result)
        results.append(result)
    np.testing.assert_array_equal(*results)


@seeded
@pytest.mark.parametrize(("d", "n_channels"), [(1, 2), (8, 3), (11, 4)])
def test_accumulate_channels(seed, d, n_channels):
    rng = np.random.default_rng(seed)
    n, n_bins = int(rng.integers(1, 60)), int(rng.integers(2, 20))
    words = draw_words(rng, n, d, n_bins)
    rows, begin, end = draw_rows(rng, n)
    packed = rng.integers(-(2**40), 2**40, size=(n, n_channels))
    results = []
    for module in (histogram, histogram_twin):
        result = np.full(d * n_bins * n_channels, -7)
        module.accumulate_channels(
            words, 0, len(words), d, n_bins, rows, packed, begin, end, result
        )
        results.append(result)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_merge_and_subtract(n_parts):
    rng = np.random.default_rng(n_parts)
    whole, private = rng.integers(-99, 99, size=40), rng.integers(-99, 99, size=(3, 40))
    results = []
    for module in (histogram, histogram_twin):
        result = whole.copy()
        module.merge(result, private, n_parts, 5, 33)
        module.subtract(result, private[0], 0, 20)
        results.append(module.global_histogram(result))
    np.testing.assert_array_equal(*results)


@seeded
@pytest.mark.parametrize("missing_left", [0, 1])
def test_flag_rows_and_move_rows(seed, missing_left):
    rng = np.random.default_rng(seed)
    n, d, n_bins = 80, 11, 6
    words = draw_words(rng, n, d, n_bins)
    rows, begin, end = draw_rows(rng, n)
    ordered = rng.integers(99, size=len(rows)) if seed % 2 else np.empty(0, dtype=np.int64)
    column = int(rng.integers(d))
    results = []
    for module in (partition, partition_twin):
        flags = np.full(len(rows), 9, dtype=np.uint8)
        bins = words.reshape(-1).view(np.uint8)
        n_left = module.flag_rows(
            bins, n, column, 2, n_bins - 1, missing_left, rows, begin, end, flags
        )
        target, target_ordered = np.zeros_like(rows), np.zeros_like(ordered)
        module.move_rows(
            flags, rows, ordered, target, target_ordered, begin, end, begin, begin + n_left
        )
        results.append((n_left, flags, target, target_ordered))
    for compiled, naive in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, naive)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
def test_scan(seed, curved, limits):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng, curved)
    column = draw_histogram(rng, 9, 1, layout, curved, False)
    flat = np.concatenate([rng.integers(99, size=4), column[:, 0]])
    n_values = int(rng.integers(1, 9))
    column[n_values:-1] = 0
    flat[4 + n_values : -1] = 0
    total = column.sum()
    scratch = np.empty(512, np.int64), np.empty(512, np.int64), np.empty(512)
    before = (flat, 4, n_values, 8, total, layout, scales, np.array(limits))
    for direction, bounds in draw_bounds(rng, 1):
        arguments = (*before, direction, bounds, *scratch)
        assert split.scan(*arguments) == split_twin.scan(*arguments)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("count_channel", [False, True])
@pytest.mark.parametrize("limits", LEVEL_LIMITS)
def test_levels(seed, curved, count_channel, limits):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng, curved)
    if count_channel:
        layout, curved = np.array([0, 4095, 0, 12]), True
        scales = np.array([0.25, 0.125, 0.0, 1.0])
    n_channels, n_bins = 1 + count_channel, 9
    column = draw_histogram(rng, n_bins, n_channels, layout, curved, count_channel)
    totals = column.sum(axis=0)
    flat = np.concatenate([rng.integers(99, size=n_channels), column.ravel()])
    shared = flat, 1, n_bins, totals, layout, scales, np.array(limits)
    results = []
    for module in (levels, levels_twin):
        order, steps = np.zeros(n_bins, np.int64), np.zeros(n_bins)
        size = module.order_levels(*shared, order, steps)
        results.append([size, order[:size].tolist(), steps[order[:size]].tolist()])
        for _, bounds in draw_bounds(np.random.default_rng(seed), 1):
            scratch = np.zeros(n_channels, np.int64), order, steps
            gain, place = module.scan_levels(*shared, bounds, *scratch)
            results[-1] += [gain, place]
        left_totals, left_set = np.zeros(n_channels, np.int64), np.zeros(4, np.uint64)
        missing = module.settle_levels(*shared, results[-1][4], order, steps, left_totals, left_set)
        results[-1] += [missing, left_totals.tolist(), left_set.tolist()]
    compiled, naive = results
    for found, expected in zip(compiled, naive, strict=True):
        if isinstance(found, float):
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
        else:
            assert found == expected


@seeded
@pytest.mark.parametrize("curved", [False, True])
def test_numbers(seed, curved):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng, curved)
    packed = int(draw_histogram(rng, 9, 1, layout, curved, False)[:, 0].sum())
    arguments = packed, 3, layout, scales
    assert levels.numbers(*arguments) == levels_twin.numbers(*arguments)


@seeded
@pytest.mark.parametrize("missing_left", [0, 1])
def test_flag_level_rows_and_level_goes_left(seed, missing_left):
    rng = np.random.default_rng(seed)
    n, d = 80, 11
    words = draw_words(rng, n, d, 256)
    rows, begin, end = draw_rows(rng, n)
    (left_set,) = draw_sets(rng, 1)
    results = []
    for module in (levels, levels_twin):
        flags = np.full(len(rows), 9, dtype=np.uint8)
        bins = words.reshape(-1).view(np.uint8)
        arguments = bins, n, int(rng.integers(1)), left_set, 255, missing_left, rows, begin, end
        results.append((module.flag_level_rows(*arguments, flags), flags))
    for compiled, naive in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, naive)
    for value in (-1.0, 0.0, 77.0, 254.0, 255.0, 1e300):
        arguments = left_set[None], 0, value
        assert levels.level_goes_left(*arguments) == levels_twin.level_goes_left(*arguments)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("count_channel", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
def test_scan_channels(seed, count_channel, limits):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng)
    if count_channel:
        layout = np.array([0, 4095, 0, 12])
    n_channels = 3 + count_channel
    column = draw_histogram(rng, 9, n_channels, layout, True, count_channel)
    flat = np.concatenate([rng.integers(99, size=n_channels), column.ravel()])
    scratch = np.zeros((2, n_channels), dtype=np.int64)
    totals = column.sum(axis=0)
    before = (flat, 1, 8, 8, totals, 3, layout, scales, np.array(limits))
    for direction, bounds in draw_bounds(rng, 3):
        arguments = (*before, direction, bounds, scratch)
        compiled, naive = split.scan_channels(*arguments), split_twin.scan_channels(*arguments)
        assert compiled[0] == pytest.approx(naive[0], rel=1e-12, abs=1e-12)
        assert compiled[1:] == naive[1:]


@seeded
@pytest.mark.parametrize("curved", [False, True])
def test_bounded_score(seed, curved):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng, curved)
    (packed,) = draw_histogram(rng, 1, 1, layout, curved, False)[0]
    for bounds in [(-np.inf, np.inf), (-1e-3, 1e-3), (0.5, 0.75), (-2.0, -1.0)]:
        arguments = (packed, layout, scales, 1.0, *bounds)
        step, gain = split.bounded_score(*arguments)
        assert (step, gain) == split_twin.bounded_score(*arguments)
        assert bounds[0] <= step <= bounds[1]
        best = split.score(packed, layout, scales, 1.0)[0]
        assert gain <= best * (1 + 1e-12)
        assert bounds[1] < np.inf or gain == pytest.approx(best, rel=1e-12)


@seeded
@pytest.mark.parametrize("n_leaves", [1, 2, 4, 7])
def test_nearest_in_order(seed, n_leaves):
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_leaves, 1, 3)
    children, leaf_number = tree.child, tree.leaf_number
    for values in (rng.normal(size=n_leaves), rng.integers(3, size=n_leaves) + 0.0):
        directions = np.where(leaf_number < 0, rng.integers(-1, 2, size=len(children)), 0)
        weights = rng.uniform(0.1, 3, size=n_leaves)
        compiled, naive = values.copy(), values.copy()
        order.nearest_in_order(children, leaf_number, directions, weights, compiled)
        order_twin.nearest_in_order(children, leaf_number, directions, weights, naive)
        np.testing.assert_allclose(compiled, naive, rtol=1e-10, atol=1e-12)
        pairs = order_twin.pairs_in_order(children, leaf_number, directions)
        assert all(compiled[i] <= compiled[j] for i, j in pairs)


@seeded
@pytest.mark.parametrize("curved", [False, True])
def test_score(seed, curved):
    rng = np.random.default_rng(seed)
    layout, scales = draw_layout(rng, curved)
    value = int(draw_histogram(rng, 9, 1, layout, curved, False)[:, 0].sum())
    assert split.score(value, layout, scales, 0.5) == split_twin.score(value, layout, scales, 0.5)


def draw_gradients(rng, n, r, curved):
    hessians = rng.uniform(0, 1, size=(n, r)) if curved else np.empty((n, 0))
    return rng.normal(size=(n, r)), hessians


@seeded
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_absolute_sums(seed, r, curved, weighted, sampled):
    rng = np.random.default_rng(seed)
    gradients, hessians = draw_gradients(rng, 50, r, curved)
    weights = rng.uniform(size=50) if weighted else np.empty(0)
    rows = draw_rows(rng, 50)[0] if sampled else np.empty(0, np.uint32)
    arguments = gradients, hessians, weights, rows, 0, len(rows) or 50
    compiled = fixed_point.absolute_sums(*arguments)
    np.testing.assert_allclose(compiled, fixed_point_twin.absolute_sums(*arguments), rtol=1e-12)


@seeded
@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("count_channel", [False, True])
def test_pack_gradients_and_packed_sums(seed, r, curved, weights, count_channel):
    rng = np.random.default_rng(seed)
    n = 40
    gradients, hessians = draw_gradients(rng, n, r, curved)
    whole = weights != "fractions"
    weight = {
        "none": np.empty(0),
        "whole": rng.integers(0, 4, size=n).astype(float),
        "fractions": rng.uniform(size=n),
    }[weights]
    rows = draw_rows(rng, n)[0]
    layout = draw_layout(rng, curved)[0]
    if count_channel:
        layout = np.array([0, 4095, 0, 12])
    factors = np.array([256.0, 64.0, 1.0 if whole else 16.0])
    n_channels = r + count_channel
    results = []
    for module in (fixed_point, fixed_point_twin):
        packed = np.zeros((0 if n_channels == 1 else n, n_channels), dtype=np.int64)
        ordered = np.zeros(len(rows) if n_channels == 1 else 0, dtype=np.int64)
        totals = np.empty(n_channels, dtype=np.int64)
        module.pack_gradients(
            gradients,
            hessians,
            weight,
            rows,
            0,
            len(rows),
            layout,
            factors,
            whole,
            np.uint64(0),
            count_channel,
            packed,
            ordered,
        )
        module.packed_sums(packed, ordered, rows, totals)
        results.append((packed, ordered, totals))
    for compiled, naive in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, naive)


@seeded
@pytest.mark.parametrize("curved", [False, True])
def test_pack_one(seed, curved):
    rng = np.random.default_rng(seed)
    gradients, hessians = draw_gradients(rng, 40, 1, curved)
    layout = draw_layout(rng, curved)[0]
    results = []
    for module in (fixed_point, fixed_point_twin):
        ordered = np.zeros(40, dtype=np.int64)
        module.pack_one(
            gradients, hessians, 3, 37, layout, np.array([256.0, 64.0]), np.uint64(0), ordered
        )
        results.append(ordered)
    np.testing.assert_array_equal(*results)


def draw_leaves(rng, n):
    """Rows in two buffers, and nodes of which some are leaves that cover all rows once."""
    bounds = np.unique(np.concatenate([[0, n], rng.integers(0, n, size=4)]))
    nodes = np.full((2 * len(bounds), fields.N_NODE_FIELDS), -1, dtype=np.int64)
    leaves = np.sort(rng.choice(len(nodes), len(bounds) - 1, replace=False))
    for node, begin, end in zip(leaves, bounds[:-1], bounds[1:], strict=True):
        nodes[node, :3] = begin, end, rng.integers(2)
    order = rng.permutation(n).astype(np.uint32)
    return nodes, leaves, np.stack([order, order])


@seeded
@pytest.mark.parametrize("n_threads", [1, 2])
def test_mark_cells(seed, n_threads):
    nodes, leaves, rows = draw_leaves(np.random.default_rng(seed), 50)
    results = []
    for module in (compiled_leaves, leaves_twin):
        result = np.full(50, -1, dtype=np.int32)
        for thread in range(n_threads):
            module.mark_leaves(thread, n_threads, nodes, leaves, rows, result)
        results.append(result)
    np.testing.assert_array_equal(*results)
    assert (results[0] >= 0).all()


@seeded
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_sums(seed, r, curved, weighted):
    rng = np.random.default_rng(seed)
    nodes, leaves, rows = draw_leaves(rng, 50)
    gradients, hessians = draw_gradients(rng, 50, r, curved)
    weights = rng.uniform(size=50) if weighted else np.empty(0)
    results = []
    for module in (compiled_leaves, leaves_twin):
        sums = np.ones((len(leaves), r)), np.ones((len(leaves), r)), np.ones(len(leaves))
        for thread in range(2):
            module.leaf_sums(thread, 2, nodes, leaves, rows, gradients, hessians, weights, *sums)
        results.append(sums)
    for compiled, naive in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, naive, rtol=1e-12, atol=1e-14)


@seeded
@pytest.mark.parametrize("order", ["C", "F"])
def test_add_cell_values(seed, order):
    rng = np.random.default_rng(seed)
    values, leaf = rng.normal(size=(5, 2)), rng.integers(5, size=30).astype(np.int32)
    raw = rng.normal(size=(30, 4))
    results = []
    for module in (compiled_leaves, leaves_twin):
        result = raw.copy(order=order)
        module.add_leaf_values(values, leaf, result, 1, 3, 27)
        results.append(result)
    np.testing.assert_array_equal(*results)


@seeded
@pytest.mark.parametrize("level", [0.05, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("weights", ["ones", "whole", "fractions"])
def test_weighted_quantile(seed, level, weights):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.integers(9, size=int(rng.integers(1, 20))).astype(float))
    weight = {
        "ones": np.ones(len(values)),
        "whole": rng.integers(1, 4, size=len(values)).astype(float),
        "fractions": rng.uniform(0.1, 2, size=len(values)),
    }[weights]
    compiled = compiled_leaves.weighted_quantile(values, weight, level)
    assert compiled == leaves_twin.weighted_quantile(values, weight, level)
    if weights != "fractions":
        repeated = np.repeat(values, weight.astype(int))
        expected = np.quantile(repeated, level, method="averaged_inverted_cdf")
        assert compiled == pytest.approx(expected, rel=1e-14)


@seeded
@pytest.mark.parametrize("level", [0.2, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_cell_quantiles(seed, level, weighted):
    rng = np.random.default_rng(seed)
    residuals = rng.normal(size=60)
    weights = rng.integers(1, 5, size=60).astype(float) if weighted else np.empty(0)
    leaf = rng.integers(-1, 7, size=60).astype(np.int32)
    arguments = residuals, weights, leaf, 8, level
    compiled = compiled_leaves.leaf_quantiles(*arguments)
    np.testing.assert_array_equal(compiled, leaves_twin.leaf_quantiles(*arguments))
    assert compiled[7] == 0


@seeded
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 8, 11])
def test_pack_bins(seed, dtype, d):
    rng = np.random.default_rng(seed)
    n = 70
    values = rng.normal(size=(n, d)).astype(dtype)
    values[rng.uniform(size=(n, d)) < 0.1] = np.nan
    values[0] = np.inf
    n_edges = rng.integers(0, 31, size=d)
    n_steps = np.ceil(np.log2(n_edges + 1)).astype(np.int64)
    edges = np.full((d, 32), np.inf)
    for k in range(d):
        edges[k, : n_edges[k]] = np.sort(rng.normal(size=n_edges[k]))
        if n_edges[k]:
            edges[k, n_edges[k] // 2] = values[k + 1, k]  # a value on its threshold goes left
            edges[k] = np.sort(edges[k])
    results = []
    for module in (binning, binning_twin):
        words = np.full((-(-d // 8), n), 77, dtype=np.uint64)
        module.pack_bins(values, edges, n_steps, 40, 2, 66, words)
        results.append(words)
    np.testing.assert_array_equal(*results)


def draw_nodes(rng, n_leaves, d, n_bins):
    """A random binary tree in the fields that growth fills."""
    nodes = np.full((2 * n_leaves - 1, fields.N_NODE_FIELDS), -1, dtype=np.int64)
    open_nodes, n_nodes = [0], 1
    while n_nodes < len(nodes):
        node = open_nodes.pop(int(rng.integers(len(open_nodes))))
        nodes[node, [fields.COLUMN, fields.BIN]] = rng.integers(d), rng.integers(n_bins - 1)
        nodes[node, fields.MISSING_LEFT] = rng.integers(2)
        nodes[node, [fields.LEFT, fields.RIGHT]] = n_nodes, n_nodes + 1
        open_nodes += [n_nodes, n_nodes + 1]
        n_nodes += 2
    return nodes


@seeded
@pytest.mark.parametrize("with_levels", [False, True])
def test_binned_cells(seed, with_levels):
    rng = np.random.default_rng(seed)
    n, d, n_bins = 60, 10, 7
    words = draw_words(rng, n, d, n_bins)
    nodes = draw_nodes(rng, 6, d, n_bins)
    leaf_of = np.full(len(nodes), -1, dtype=np.int32)
    leaf_of[nodes[:, fields.LEFT] < 0] = np.arange(6)
    rows = rng.permutation(n)
    marked = rng.integers(2, size=d if with_levels else 0).astype(np.uint8)
    left_sets = draw_sets(rng, len(nodes) if with_levels else 0)
    results = []
    for module in (traverse, traverse_twin):
        result = np.full(n, -5, dtype=np.int32)
        bins = words.reshape(-1).view(np.uint8)
        arguments = bins, n, nodes, leaf_of, marked, left_sets, n_bins - 1, rows, 5, 50
        module.binned_leaves(*arguments, result)
        results.append(result)
    np.testing.assert_array_equal(*results)


def draw_sets(rng, n_sets):
    return rng.integers(2**63, size=(n_sets, levels.SET_WORDS)).astype(np.uint64) * np.uint64(3)


def with_sets(rng, tree):
    """The tree, some of its inner nodes splitting on categories."""
    by_level = (tree.leaf_number < 0) & (rng.uniform(size=len(tree.child)) < 0.5)
    return replace(tree, by_level=by_level, left_sets=draw_sets(rng, int(by_level.sum())))


def draw_tree(rng, n_leaves, width, d):
    """A random tree over ``d`` columns."""
    nodes = draw_nodes(rng, n_leaves, d, 3)
    n_nodes, is_leaf = len(nodes), nodes[:, fields.LEFT] < 0
    child = np.where(is_leaf, np.arange(n_nodes), nodes[:, fields.LEFT])
    depth = np.zeros(n_nodes, dtype=int)
    for i in np.flatnonzero(~is_leaf):
        depth[child[i] : child[i] + 2] = depth[i] + 1
    return Tree(
        column=np.where(is_leaf, 0, nodes[:, fields.COLUMN]).astype(np.int32),
        threshold=np.where(is_leaf, np.inf, rng.normal(size=n_nodes)),
        missing_right=~is_leaf & (rng.uniform(size=n_nodes) < 0.5),
        child=child.astype(np.int32),
        gain=np.zeros(n_nodes),
        leaf_number=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        depth=int(depth.max()),
        leaf_values=rng.normal(size=(n_leaves, width)),
    )


def draw_forest(rng, d, sets=False):
    """Trees of all sizes that prediction treats differently, to several columns of ``raw``."""
    sizes = (
        (1, 1, 0),
        (2, 2, 2),
        (9, 1, 3),
        (32, 1, 0),
        (33, 2, 1),
        (64, 1, 1),
        (65, 2, 1),
        (80, 3, 0),
    )
    return Forest.of(
        [
            Term.of(
                with_sets(rng, draw_tree(rng, n_leaves, width, d))
                if sets and i % 2
                else draw_tree(rng, n_leaves, width, d),
                slice(first, first + width),
            )
            for i, (n_leaves, width, first) in enumerate(sizes)
        ]
    )


OTHER_NAMES = {"columns": "column", "thresholds": "threshold", "children": "child"}


def call(kernel, forest, **values):
    """Call with a forest's arrays as arguments, chosen by name."""
    names = list(inspect.signature(kernel.py_func).parameters)
    arguments = {
        name: values[name] if name in values else getattr(forest, OTHER_NAMES.get(name, name))
        for name in names
    }
    kernel(*arguments.values())
    return arguments


def draw_inputs(rng, n, d, dtype, missing, sets=False):
    X = rng.normal(size=(n, d)).astype(dtype)
    if sets:
        X = rng.integers(-1, 256, size=(n, d)).astype(dtype)
    if missing:
        X[rng.uniform(size=(n, d)) < 0.3] = np.nan
    return X


many_inputs = pytest.mark.parametrize(
    ("n", "dtype", "missing"),
    list(itertools.product([1, 7, 8, 66, 200], [np.float32, np.float64], [False, True])),
)


@many_inputs
@pytest.mark.parametrize("sets", [False, True])
def test_add_forest(n, dtype, missing, sets):
    rng = np.random.default_rng(n)
    forest, X = draw_forest(rng, 5, sets), draw_inputs(rng, n, 5, dtype, missing, sets)
    compiled = rng.normal(size=(n, 4))
    naive = compiled.copy()
    arguments = call(
        traverse.add_forest, forest, X=X, begin=0, end=n, has_missing=missing, raw=compiled
    )
    traverse_twin.add_forest(**arguments | {"raw": naive})
    np.testing.assert_array_equal(compiled, naive)


@many_inputs
@pytest.mark.parametrize("sets", [False, True])
def test_forest_cells(n, dtype, missing, sets):
    rng = np.random.default_rng(n)
    forest, X = draw_forest(rng, 5, sets), draw_inputs(rng, n, 5, dtype, missing, sets)
    compiled = np.full((n, len(forest.depths)), -1, dtype=np.int32)
    naive = compiled.copy()
    arguments = call(traverse.forest_leaves, forest, X=X, begin=0, end=n, leaf_of_row=compiled)
    traverse_twin.forest_leaves(**arguments | {"leaf_of_row": naive})
    np.testing.assert_array_equal(compiled, naive)


@seeded
def test_mark_left_leaves(seed):
    forest = draw_forest(np.random.default_rng(seed), 5)
    n_nodes = len(forest.child)
    marks = []
    for module in (traverse, traverse_twin):
        order, masks = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.uint64)
        module.mark_left_leaves(forest.roots, forest.child, order, masks)
        marks.append((order, masks))
    is_inner = forest.child != np.arange(n_nodes)
    small = np.repeat(forest.tree_leaves <= 64, 2 * forest.tree_leaves - 1)
    np.testing.assert_array_equal(marks[0][0], marks[1][0])
    np.testing.assert_array_equal(*(masks[is_inner & small] for _, masks in marks))


def test_random_rounding_is_right_on_average_and_a_function_of_the_row():
    n = 20_000
    gradients = np.full((n, 1), 0.3)
    hessians = np.full((n, 1), 0.7)
    layout = np.array([20, (1 << 20) - 1, (1 << 20) - 1, 40], dtype=np.int64)
    packed = []
    for rows in (slice(0, n), slice(5_000, n)):
        ordered = np.zeros(n, dtype=np.int64)
        factors = np.ones(3)
        fixed_point.pack_one(
            gradients, hessians, rows.start, n, layout, factors, np.uint64(7), ordered
        )
        packed.append(ordered)
    np.testing.assert_array_equal(packed[0][5_000:], packed[1][5_000:])
    assert set(packed[0] >> 40) == {0, 1}
    assert abs((packed[0] >> 40).mean() - 0.3) < 0.02
    assert abs(((packed[0] >> 20) & ((1 << 20) - 1)).mean() - 0.7) < 0.02
