"""Every compiled kernel against its naive twin."""

import importlib
import itertools
import pkgutil
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from tests.backends.random_arguments import (
    draw_bin_table,
    draw_histogram,
    draw_packing,
    draw_rows,
    draw_words,
)
from tests.reference import binned_leaves as walk_twin
from tests.reference import binning as binning_twin
from tests.reference import category_splits as categories_twin
from tests.reference import column_splits as split_twin
from tests.reference import criterion as criterion_twin
from tests.reference import fixed_point as fixed_point_twin
from tests.reference import histogram as histogram_twin
from tests.reference import isotonic as isotonic_twin
from tests.reference import joint_columns as joint_twin
from tests.reference import leaves as leaves_twin
from tests.reference import nodes as nodes_twin
from tests.reference import quantiles as quantiles_twin
from tests.reference import row_order as row_order_twin
from tests.reference import traverse as traverse_twin
from tests.seeds import seeded
from tests.twins import compared

import hilboost.backends
import hilboost.engine.ops
from hilboost.backends import isotonic, quantiles
from hilboost.backends.exact_sums import CHUNK, empty_sums, exact
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Term
from hilboost.engine import Forest, Tree
from hilboost.engine.ops.cpu import binned_leaves as compiled_walk
from hilboost.engine.ops.cpu import (
    binning,
    category_splits,
    column_splits,
    criterion,
    fixed_point,
    histogram,
    traverse,
)
from hilboost.engine.ops.cpu import joint_columns as compiled_joint
from hilboost.engine.ops.cpu import leaves as compiled_leaves
from hilboost.engine.ops.cpu import nodes as fields
from hilboost.engine.ops.cpu import row_order as compiled_row_order
from hilboost.engine.ops.cpu.binning import BinTable
from hilboost.engine.ops.cpu.fixed_point import Compact
from hilboost.engine.ops.cpu.packing import Packing
from hilboost.engine.ops.reference.criterion import leaf_score
from hilboost.engine.tree_data import joint_columns

SEEDS = range(4)
# Whole trees are compared with `ops/reference` in test_driver.py, those with vector leaves with
# naive growth in test_vector_trees.py, separate ones with single ones in test_separate_trees.py,
# batches there and in workers/test_output_kernels.py.
ELSEWHERE = {
    "grow", "grow_stages", "partition_nodes", "inherit",
    "search_columns", "best_of_parts", "settle_split", "choose_batch",
    "find_unexpected", "find_leaves", "write_root", "add", "subtract",
    "flag_rows", "move_rows", "flag_level_rows", "pack_gradients", "pack_one", "packed_sums",
    "grow_vector", "sum_rows", "set_priority", "value_ranges",
    "draw_candidates", "mark_bins", "sum_bins", "search_sums", "choose_candidate",
}  # fmt: skip
FOLDERS = Path(__file__).parent, Path(__file__).parents[1] / "engine"


def kernels_of(module):
    """Names of the compiled functions of a module that Python can call."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
        and value.py_func.__module__ == module.__name__
        and not name.startswith("_")
        and not value.targetoptions.get("no_cpython_wrapper", False)
    }


def test_every_kernel_has_a_twin_and_a_test_that_calls_both():
    n_kernels, called = 0, set()
    for path in itertools.chain(*(folder.rglob("test_*.py") for folder in FOLDERS)):
        called |= set(re.findall(r"\b\w+(?=\()|(?<=\w\.)\w+", path.read_text()))
    packages = hilboost.backends, hilboost.engine.ops
    found = [pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in packages]
    for info in itertools.chain(*found):
        if ".ops.cuda" in info.name:
            continue  # whole operations of a GPU have twins in ops/reference
        module = importlib.import_module(info.name)
        reference = f"tests.reference.{info.name.rpartition('.')[2]}"
        for name in kernels_of(module) - ELSEWHERE:
            n_kernels += 1
            twin = getattr(importlib.import_module(reference), name)
            assert twin.__module__ == reference, name
            assert twin.__code__ is not getattr(module, name).py_func.__code__
            assert name in called, f"no test calls {name}"
    assert n_kernels > 30


def draw_ordered(rng, m, compact):
    """Packed gradients of so many rows, in 64 or 32 bits."""
    if compact is None:
        return rng.integers(-(2**40), 2**40, size=m)
    return rng.integers(-(2**31), 2**31, size=m).astype(np.int32)


LAYOUTS = None, Compact(0, 0, 20), Compact(16, 20, 41)
in_32_or_64_bits = pytest.mark.parametrize("compact", LAYOUTS)


def table_of_words(words, n_values, n_bins):
    return BinTable(words, words.reshape(-1).view(np.uint8), n_values, n_bins)


@seeded(SEEDS)
@in_32_or_64_bits
@pytest.mark.parametrize("d", [1, 8, 13])
def test_accumulate(seed, compact, d):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    n_bins = int(rng.choice([2, 40, 256]))
    words = draw_words(rng, n, d, n_bins)
    table = table_of_words(words, np.full(d, n_bins - 1), n_bins)
    rows, begin, end = draw_rows(rng, n)
    if seed % 3 == 0:  # rows that follow each other, in a node behind others
        rows[begin:] = np.arange(len(rows) - begin) + rng.integers(n - len(rows) + begin + 1)
    ordered = draw_ordered(rng, len(rows), compact)
    first, last = (0, len(words)) if seed % 2 else (len(words) - 1, len(words))
    for module, keep in compared(histogram, histogram_twin):
        result = np.full(d * 256, -7)
        part = histogram.Part(first, last, begin, end)
        given = table, histogram.OrderedRows(rows, ordered), compact, part
        module.accumulate(*given, True, result)
        module.accumulate(*given, False, result)
        keep(result)


@seeded(SEEDS)
@in_32_or_64_bits
@pytest.mark.parametrize(
    "sizes", [[2] * 20, [15] * 4, [2] * 100, [3, 100, 1, 255, 2, 5, 1, 2, 2, 2]]
)
def test_accumulate_joint(seed, sizes, compact):
    rng = np.random.default_rng(seed)
    n, n_bins, n_values = 1500, max(sizes) + 1, np.array(sizes)
    bins = rng.integers(n_values, size=(n, len(sizes)))
    bins[rng.uniform(size=n) < 0.1, seed % len(sizes)] = n_bins - 1
    words = np.zeros((-(-len(sizes) // 8), n), dtype=np.uint64)
    for k in range(len(sizes)):
        words[k // 8] |= bins[:, k].astype(np.uint64) << np.uint64(8 * (k % 8))
    joint = joint_columns(words, n_values, n_bins, ThreadTeam(1))
    rows, begin, end = draw_rows(rng, n)
    ordered = histogram.OrderedRows(rows, draw_ordered(rng, len(rows), compact))
    table = table_of_words(words, n_values, n_bins)
    for module, keep in compared(compiled_joint, joint_twin):
        result = np.zeros(256 * len(sizes), dtype=np.int64)
        sums = np.full(256 * len(joint.n_codes), -7)
        for ends in itertools.pairwise(sorted({0, len(joint.words) // 2, len(joint.words)})):
            part = histogram.Part(*ends, begin, end)
            module.accumulate_joint(joint, table, ordered, compact, part, True, sums, result)
        keep(result)
    naive = np.zeros_like(result)
    part = histogram.Part(0, len(words), begin, end)
    histogram_twin.accumulate(table, ordered, compact, part, True, naive)
    np.testing.assert_array_equal(result, naive)


@seeded(SEEDS)
@pytest.mark.parametrize(("d", "n_channels"), [(1, 2), (8, 3), (11, 4)])
@pytest.mark.parametrize("counts_one", [False, True])
def test_accumulate_channels(seed, d, n_channels, counts_one):
    rng = np.random.default_rng(seed)
    n, n_bins = int(rng.integers(1, 60)), int(rng.integers(2, 20))
    words = draw_words(rng, n, d, n_bins)
    table = table_of_words(words, np.full(d, n_bins - 1), n_bins)
    rows, begin, end = draw_rows(rng, n)
    part = histogram.Part(0, len(words), begin, end)
    packed = rng.integers(-(2**40), 2**40, size=(n, n_channels - counts_one))
    for module, keep in compared(histogram, histogram_twin):
        result = np.full(d * n_bins * n_channels, -7)
        module.accumulate_channels(table, rows, packed, part, n_channels, True, result)
        module.accumulate_channels(table, rows, packed, part, n_channels, False, result)
        keep(result)


@seeded(SEEDS)
def test_level_goes_left(seed):
    left_sets = draw_sets(np.random.default_rng(seed), 1)
    for value in (-1.0, 0.0, 77.0, 254.0, 255.0, 1e300):
        compiled = category_splits.level_goes_left(left_sets, 0, value)
        assert compiled == categories_twin.level_goes_left(left_sets, 0, value)


@seeded(SEEDS)
@pytest.mark.parametrize("curved", [False, True])
def test_bounded_score(seed, curved):
    rng = np.random.default_rng(seed)
    packing = draw_packing(rng, curved)
    (packed,) = draw_histogram(rng, 1, 1, packing, curved, False)[0]
    for bounds in [(-np.inf, np.inf), (-1e-3, 1e-3), (0.5, 0.75), (-2.0, -1.0)]:
        arguments = packed, 3.0, packing, criterion.LeafLimits(criterion.criterion_of(1.0), *bounds)
        step, gain = column_splits.bounded_score(*arguments)
        assert (step, gain) == split_twin.bounded_score(*arguments)
        assert bounds[0] <= step <= bounds[1]


@seeded(SEEDS)
@pytest.mark.parametrize("n_leaves", [1, 2, 4, 7])
def test_nearest_in_order(seed, n_leaves):
    rng = np.random.default_rng(seed)
    tree = draw_tree(rng, n_leaves, 1, 3)
    children, leaf_number = tree.child, tree.leaf_number
    for values in (rng.normal(size=n_leaves), rng.integers(3, size=n_leaves) + 0.0):
        directions = np.where(leaf_number < 0, rng.integers(-1, 2, size=len(children)), 0)
        weights = rng.uniform(0.1, 3, size=n_leaves)
        compiled, naive = values.copy(), values.copy()
        isotonic.nearest_in_order(children, leaf_number, directions, weights, compiled)
        isotonic_twin.nearest_in_order(children, leaf_number, directions, weights, naive)
        np.testing.assert_allclose(compiled, naive, rtol=1e-10, atol=1e-12)
        pairs = isotonic_twin.pairs_in_order(children, leaf_number, directions)
        assert all(compiled[i] <= compiled[j] for i, j in pairs)


def draw_gradients(rng, n, r, curved):
    hessians = rng.uniform(0, 1, size=(n, r)) if curved else np.empty((n, 0))
    return rng.normal(size=(n, r)), hessians


def draw_weights(rng, n, kind):
    return {
        "none": np.empty(0),
        "whole": rng.integers(0, 4, size=n).astype(float),
        "fractions": rng.uniform(size=n),
    }[kind]


@seeded(SEEDS)
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("sampled", [False, True])
def test_absolute_sums(seed, r, curved, weights, sampled):
    rng = np.random.default_rng(seed)
    gradients, hessians = draw_gradients(rng, 50, r, curved)
    weight = draw_weights(rng, 50, weights)
    rows = draw_rows(rng, 50)[0] if sampled else np.empty(0, np.uint32)
    whole = weights != "fractions"
    learned = fixed_point.WeightedGradients(gradients, hessians, weight, rows, whole)
    for module, keep in compared(fixed_point, fixed_point_twin):
        sums = empty_sums(2 * r + 1)
        module.absolute_sums(learned, 0, len(rows) or 50, np.empty((2, CHUNK)), sums)
        keep(*map(exact, sums))


@seeded(SEEDS)
def test_factor_of(seed):
    rng = np.random.default_rng(seed)
    room = float(2.0 ** rng.uniform(0, 62))
    for total in (
        0.0,
        1e-310,
        float(2.0 ** rng.uniform(-300, 1000)),
        float(2.0 ** rng.integers(90)),
    ):
        factor = fixed_point.factor_of(total, room)
        assert factor == fixed_point_twin.factor_of(total, room)
        assert factor * total <= room


def all_rows(gradients, hessians):
    """Without weights."""
    return fixed_point.WeightedGradients(
        gradients, hessians, np.empty(0), np.empty(0, dtype=np.uint32), True
    )


@seeded(SEEDS)
@pytest.mark.parametrize("curved", [False, True])
def test_pack_compact(seed, curved):
    rng, n = np.random.default_rng(seed), 90
    learned = all_rows(*draw_gradients(rng, n, 1, curved))
    rounding = fixed_point.Rounding(256.0, 64.0, 1.0, True, np.uint64(0), 0)
    compact = Compact(16 if curved else 0, 20 if curved else 0, 41)
    for module, keep in compared(fixed_point, fixed_point_twin):
        ordered, result = np.zeros(n, dtype=np.int32), np.zeros(2, dtype=np.int64)
        module.pack_compact(learned, compact, rounding, 9, 80, ordered, result)
        keep(ordered, result)
    assert result[1] == 0
    one = np.zeros(n, dtype=np.int64)
    shifts = draw_packing(rng, curved)._replace(
        hessian_shift=compact.hessian_shift, gradient_shift=41, count_mask=1
    )
    fixed_point.pack_one(learned, shifts, rounding, 0, n, one)
    assert one[9:80].sum() == result[0]


@pytest.mark.parametrize(("gradient", "hessian"), [(2.0**31, 0), (-(2.0**31) - 1, 0), (1, 2**16)])
def test_pack_compact_notes_what_does_not_fit(gradient, hessian):
    hessians = np.full((9, 1 if hessian else 0), float(hessian))
    learned = all_rows(np.array([[0.0]] * 4 + [[gradient]] + [[1.0]] * 4), hessians)
    compact = Compact(16 if hessian else 0, 20, 41)
    for factor, fits in ((1.0, False), (0.5, True)):
        rounding = fixed_point.Rounding(factor, factor, 1.0, True, np.uint64(0), 0)
        result = np.zeros(2, dtype=np.int64)
        ordered = np.zeros(9, dtype=np.int32)
        fixed_point.pack_compact(learned, compact, rounding, 0, 9, ordered, result)
        assert (result[1] == 0) == fits


@seeded(SEEDS)
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_hessians_of_the_log_loss_follow_from_gradients(seed, weights):
    rng, n = np.random.default_rng(seed), 90
    g, weight = rng.uniform(-1, 1, size=(n, 1)), draw_weights(rng, n, weights)
    g[:4, 0] = -1, 0, 1, 1e-9
    rows, whole, packing = draw_rows(rng, n)[0], weights != "fractions", draw_packing(rng, True)
    salt = np.uint64(rng.integers(1, 2**63))
    rounding = fixed_point.Rounding(256.0, 64.0, 1.0 if whole else 16.0, whole, salt, 0)
    compact, results = Compact(16, 20, 41), []
    for hessians, logistic in ((g, True), (np.abs(g) * np.maximum(1 - np.abs(g), 0.1), False)):
        learned = fixed_point.WeightedGradients(g, hessians, weight, rows, whole, logistic)
        sums, ordered = empty_sums(3), np.zeros(len(rows), dtype=np.int64)
        fixed_point.absolute_sums(learned, 0, len(rows), np.empty((2, CHUNK)), sums)
        fixed_point.pack_gradients(learned, packing, rounding, 0, len(rows), None, ordered)
        straight = learned._replace(weights=weight[:0], rows=rows[:0])
        one, few = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int32)
        total = np.zeros(2, dtype=np.int64)
        fixed_point.pack_one(straight, packing, rounding, 0, n, one)
        fixed_point.pack_compact(straight, compact, rounding, 0, n, few, total)
        results.append((sums, ordered, one, few, total))
    for derived, stored in zip(*results, strict=True):
        np.testing.assert_array_equal(derived, stored)


def draw_leaves(rng, n):
    """Rows, and nodes of which some are leaves that cover all rows once."""
    bounds = np.unique(np.concatenate([[0, n], rng.integers(0, n, size=4)]))
    nodes = np.full((2 * len(bounds), fields.N_NODE_FIELDS), -1, dtype=np.int64)
    nodes[:, fields.ARRAY] = rng.integers(2, size=len(nodes))
    leaves = np.sort(rng.choice(len(nodes), len(bounds) - 1, replace=False))
    for node, begin, end in zip(leaves, bounds[:-1], bounds[1:], strict=True):
        nodes[node, :2] = begin, end
    rows = rng.permutation(n).astype(np.uint32)
    return nodes, leaves, np.stack([rows, rows])


@seeded(SEEDS)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_mark_cells(seed, n_threads, is_sorted):
    rng, size = np.random.default_rng(seed), compiled_row_order.ROWS_PER_BLOCK
    n = size + 50
    nodes, leaves, given = draw_leaves(rng, n)
    for begin, end in nodes[leaves, :2]:
        given[:, begin:end].sort(axis=1)
    offsets = np.empty(0, dtype=np.uint16)
    if is_sorted:
        offsets = np.concatenate([rng.permutation(size), rng.permutation(50)]).astype(np.uint16)
    for module, keep in compared(compiled_leaves, leaves_twin):
        rows, result = given.copy(), np.full(n, -1, dtype=np.int32)
        leaf_at = np.full(n, 255, dtype=np.uint8) if is_sorted else None
        for thread in range(n_threads):
            of_leaves = compiled_leaves.RowsOfLeaves(nodes, leaves, rows)
            module.mark_leaves(thread, n_threads, of_leaves, offsets, result, leaf_at)
        keep(result, rows, leaf_at)
    if is_sorted:
        for leaf, node in enumerate(leaves):
            here = nodes[node, fields.ARRAY], slice(*nodes[node, :2])
            assert (leaf_at[given[here]] == leaf).all()
            assert (result[rows[here]] == leaf).all()
    assert (result >= 0).all()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_arrange(k, dtype):
    rng, size = np.random.default_rng(k), compiled_row_order.ROWS_PER_BLOCK
    given = rng.integers(1000, size=(size + 7, k)).astype(dtype)
    offsets = np.concatenate([rng.permutation(size), rng.permutation(7)]).astype(np.uint16)
    for module, keep in compared(compiled_row_order, row_order_twin):
        values = given.copy()
        for begin in (0, size):
            module.arrange(values, offsets, begin, np.empty((size, k), dtype=dtype))
        keep(values)
    assert (values != given).any()


@seeded(SEEDS)
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
@pytest.mark.parametrize("curved", [False, True, "logistic"])
def test_sum_leaves(seed, r, weights, curved):
    rng = np.random.default_rng(seed)
    more_than_a_block = seed == 0 and r == 1
    n = 50 + more_than_a_block * compiled_row_order.ROWS_PER_BLOCK
    nodes, leaves, rows = draw_leaves(rng, n)
    for begin, end in nodes[leaves, :2]:
        rows[:, begin:end].sort(axis=1)
    values = rng.normal(size=(n, r)) * 2.0 ** rng.integers(-40, 40, size=(n, r))
    values = values.clip(-1, 1) if curved == "logistic" else values
    hessians = {False: values[:, :0], True: rng.uniform(size=(n, r)), "logistic": values}[curved]
    weight, whole = draw_weights(rng, n, weights), weights != "fractions"
    of_leaves = compiled_leaves.RowsOfLeaves(nodes, leaves, rows)
    learned = fixed_point.WeightedGradients(
        values, hessians, weight, rows[0, :0], whole, curved == "logistic"
    )
    n_bottom = r if curved else min(len(weight), 1)
    for module, keep in compared(compiled_leaves, leaves_twin):
        sums = np.full((2, len(leaves), r, 5), 99)
        for thread in range(2):
            scratch = np.empty((2, 2, CHUNK))
            module.sum_leaves(thread, 2, of_leaves, learned, scratch, sums)
        keep(*map(exact, [*sums[0].reshape(-1, 5), *sums[1, :, :n_bottom].reshape(-1, 5)]))


@seeded(SEEDS)
@pytest.mark.parametrize("l2", [0.0, 1.5])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("bounded", [False, True])
def test_leaf_values(seed, l2, n_columns, bounded):
    rng = np.random.default_rng(seed)
    gradients, hessians = rng.normal(size=(7, 3)), rng.exponential(size=(7, n_columns))
    hessians[::2] = 0.0
    weights, bounds = rng.uniform(0.1, 9, size=7), np.sort(rng.normal(size=(7, 2, 3)), axis=1)
    given = gradients, hessians, weights, criterion.criterion_of(l2), bounds if bounded else None
    for module, keep in compared(criterion, criterion_twin):
        values = np.full((7, 3), np.nan)
        module.leaf_values(*given, values)
        keep(values)


@seeded(SEEDS)
@pytest.mark.parametrize("curved", [False, True])
def test_the_leaf_value_reduces_the_loss_most_by_its_score(seed, curved):
    rng = np.random.default_rng(seed)
    packing = draw_packing(rng, curved)
    (packed,) = draw_histogram(rng, 1, 1, packing, curved, False)[0]
    rule = criterion.criterion_of(1.0)
    best = leaf_score(criterion.LeafSums(*split_twin.unpack(packed, packing)), rule)
    unbounded = criterion.LeafLimits(rule, -np.inf, np.inf)
    step, gain = column_splits.bounded_score(packed, 3.0, packing, unbounded)
    assert gain == pytest.approx(best, rel=1e-12)
    for bounds in [(-1e-3, 1e-3), (0.5, 0.75), (-2.0, -1.0)]:
        limits = criterion.LeafLimits(rule, *bounds)
        value, gain = column_splits.bounded_score(packed, 3.0, packing, limits)
        assert value == pytest.approx(np.clip(step, *bounds))
        assert gain <= best * (1 + 1e-12)


@seeded(SEEDS)
@pytest.mark.parametrize("with_levels", [False, True])
@pytest.mark.parametrize("n_leaves", [1, 2, 31])
def test_write_tree(seed, with_levels, n_leaves):
    rng = np.random.default_rng(seed)
    nodes = draw_nodes(rng, n_leaves, 10, 7)
    nodes[:, fields.DEPTH] = rng.integers(9, size=len(nodes))
    is_category = rng.integers(2, size=10 if with_levels else 0).astype(np.uint8)
    gains, thresholds = rng.normal(size=(2, len(nodes)))
    for module, keep in compared(fields, nodes_twin):
        trees, place = fields.empty_trees(3, len(nodes)), np.int64(seed % 3)
        given = nodes, len(nodes), gains, thresholds, is_category
        keep(module.write_tree(*given, trees, place), *[array[place] for array in trees])


@seeded(SEEDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_add_leaf_values(seed, order):
    rng = np.random.default_rng(seed)
    values, leaf = rng.normal(size=(5, 2)), rng.integers(5, size=30).astype(np.int32)
    raw = rng.normal(size=(30, 4))
    for module, keep in compared(compiled_leaves, leaves_twin):
        result = raw.copy(order=order)
        module.add_leaf_values(values, leaf, result, 1, 3, 27)
        keep(result)


@seeded(SEEDS)
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
    compiled = quantiles.weighted_quantile(values, weight, level)
    assert compiled == quantiles_twin.weighted_quantile(values, weight, level)
    if weights != "fractions":
        repeated = np.repeat(values, weight.astype(int))
        expected = np.quantile(repeated, level, method="averaged_inverted_cdf")
        assert compiled == pytest.approx(expected, rel=1e-14)


@seeded(SEEDS)
@pytest.mark.parametrize("level", [0.2, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "digits"), [(60, 12), (900, 12), (900, 1)])
def test_cell_quantiles(seed, level, weighted, n, digits):
    rng = np.random.default_rng(seed)
    residuals = rng.normal(size=n).round(digits)
    weights = rng.integers(1, 5, size=n).astype(float) if weighted else np.empty(0)
    leaf = rng.integers(-1, 7, size=n).astype(np.int32)
    arguments = residuals, weights, leaf, 8, level
    compiled = quantiles.leaf_quantiles(*arguments)
    np.testing.assert_array_equal(compiled, quantiles_twin.leaf_quantiles(*arguments))
    assert compiled[7] == 0


@seeded(SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 8, 11])
def test_pack_bins(seed, dtype, d):
    rng = np.random.default_rng(seed)
    n = 90
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
    for module, keep in compared(binning, binning_twin):
        words = np.full((-(-d // 8), n), 77, dtype=np.uint64)
        memory = np.empty(73), np.empty(73, dtype=np.uint64)
        module.pack_bins(values[2:75], binning.BinEdges(edges, n_steps, 40), 2, words, *memory)
        keep(words)


def draw_nodes(rng, n_leaves, d, n_bins):
    """A random binary tree in the fields that growth fills."""
    nodes = np.full((2 * n_leaves - 1, fields.N_NODE_FIELDS), -1, dtype=np.int64)
    nodes[0, fields.DEPTH] = 0
    open_nodes, n_nodes = [0], 1
    while n_nodes < len(nodes):
        node = open_nodes.pop(int(rng.integers(len(open_nodes))))
        nodes[node, [fields.COLUMN, fields.BIN]] = rng.integers(d), rng.integers(n_bins - 1)
        nodes[node, fields.MISSING_LEFT] = rng.integers(2)
        nodes[node, [fields.LEFT, fields.RIGHT]] = n_nodes, n_nodes + 1
        nodes[n_nodes : n_nodes + 2, fields.DEPTH] = nodes[node, fields.DEPTH] + 1
        open_nodes += [n_nodes, n_nodes + 1]
        n_nodes += 2
    return nodes


def draw_sets(rng, n_sets):
    return rng.integers(2**63, size=(n_sets, category_splits.SET_WORDS)).astype(
        np.uint64
    ) * np.uint64(3)


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


def flat_forest(forest):
    return traverse.FlatForest(forest.trees, forest.leaf_masks, forest.flat_leaves)


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
def test_add_forest_walk_rows_and_forest_leaves(n, dtype, missing, sets):
    """Blocks of rows and single rows reach the same leaves."""
    rng = np.random.default_rng(n)
    forest, X = draw_forest(rng, 5, sets), draw_inputs(rng, n, 5, dtype, missing, sets)
    before = rng.normal(size=(n, 4))
    for module, keep in compared(traverse, traverse_twin):
        raw, walked = before.copy(), before.copy()
        leaves = np.full((n, len(forest.trees.depths)), -1, dtype=np.int32)
        module.add_forest(X, flat_forest(forest), 0, n, missing, raw)
        module.walk_rows(X, *forest.walked, walked)
        module.forest_leaves(X, forest.trees, forest.flat_leaves.number, 0, n, leaves)
        keep(raw, walked, leaves)
        np.testing.assert_array_equal(raw, walked)


@pytest.mark.parametrize("n", [1, 64, 200])
@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("n_bins", [7, 256])
def test_add_forest_on_bins(n, sets, n_bins):
    rng = np.random.default_rng(n)
    forest, table = draw_forest(rng, 10, sets), draw_bin_table(rng, n, 10, n_bins)
    bins = rng.integers(n_bins - 1, size=len(forest.trees.column)).astype(np.float32)
    columns = rng.permutation(10)
    bins[np.isinf(forest.trees.threshold)] = np.inf  # at leaves
    flat = flat_forest(forest)._replace(trees=forest.trees._replace(threshold=bins))
    before = rng.normal(size=(n, 4))
    for module, keep in compared(compiled_walk, walk_twin):
        raw = np.asfortranarray(before)
        module.add_forest_on_bins(table, columns, flat, n // 3, n, raw)
        keep(raw)


def test_single_precision_thresholds():
    """Rows on a threshold, beside it, and thresholds that no float32 can hold."""
    rng = np.random.default_rng(0)
    forest = draw_forest(rng, 1)
    extremes = [1e300, -1e300, 1e-320, -1e-320, 0.1, 3.5e38, -3.5e38, 1 + 1e-9, -1 - 1e-9]
    is_inner = np.isfinite(forest.trees.threshold)
    forest.trees.threshold[is_inner] = rng.choice(extremes, size=is_inner.sum())
    with np.errstate(over="ignore"):
        X = np.array(extremes).astype(np.float32)
        beside = [np.nextafter(X, np.float32(x)) for x in (-np.inf, np.inf)]
    X = np.concatenate([X, *beside])
    X = X[np.isfinite(X)][:, None]
    single, double = np.zeros((len(X), 4)), np.zeros((len(X), 4))
    forest.add_to(single, X, 1)
    forest.add_to(double, X.astype(np.float64), 1)
    np.testing.assert_array_equal(single, double)


@seeded(SEEDS)
def test_mark_left_leaves(seed):
    forest = draw_forest(np.random.default_rng(seed), 5)
    roots, child, leaves = forest.trees.roots, forest.trees.child, forest.flat_leaves.per_tree
    is_inner = child != np.arange(len(child))
    small = np.repeat(leaves <= 64, 2 * leaves - 1)
    for module, keep in compared(traverse, traverse_twin):
        order, masks = np.zeros(len(child), np.int64), np.zeros(len(child), np.uint64)
        module.mark_left_leaves(roots, child, order, masks)
        keep(order, masks[is_inner & small])


def test_random_rounding_is_right_on_average_and_a_function_of_the_row():
    n = 20_000
    learned = all_rows(np.full((n, 1), 0.3), np.full((n, 1), 0.7))
    packing = Packing(20, (1 << 20) - 1, (1 << 20) - 1, 40, 0.0, 1.0, np.ones(2))
    rounding = fixed_point.Rounding(1.0, 1.0, 1.0, True, np.uint64(7), 0)
    packed = []
    for begin in (0, 5_000):
        ordered = np.zeros(n, dtype=np.int64)
        fixed_point.pack_one(learned, packing, rounding, begin, n, ordered)
        packed.append(ordered)
    np.testing.assert_array_equal(packed[0][5_000:], packed[1][5_000:])
    assert set(packed[0] >> 40) == {0, 1}
    assert abs((packed[0] >> 40).mean() - 0.3) < 0.02
    assert abs(((packed[0] >> 20) & ((1 << 20) - 1)).mean() - 0.7) < 0.02


@seeded(SEEDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 2])
def test_rows_are_rounded_by_their_numbers_in_the_whole_table(seed, weighted, r):
    rng = np.random.default_rng(seed)
    n, first = 300, 120
    gradients, hessians = draw_gradients(rng, n, r, True)
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.empty(0)
    packing = draw_packing(rng, True)
    results = []
    for begin in (0, first):
        part = np.s_[begin:]
        learned = fixed_point.WeightedGradients(
            gradients[part], hessians[part], weights[part], np.empty(0, np.uint32), True
        )
        rounding = fixed_point.Rounding(8.0, 4.0, 1.0, True, np.uint64(seed + 1), begin)
        packed = np.zeros((n - begin, r), dtype=np.int64) if r > 1 else None
        ordered = np.zeros(n - begin if r == 1 else 0, dtype=np.int64)
        fixed_point.pack_gradients(learned, packing, rounding, 0, n - begin, packed, ordered)
        results.append(packed if r > 1 else ordered)
        if r == 1 and not weighted:
            alone = np.zeros_like(ordered)
            fixed_point.pack_one(learned, packing, rounding, 0, n - begin, alone)
            np.testing.assert_array_equal(alone, ordered)
    np.testing.assert_array_equal(results[0][first:], results[1])
