"""Trees with vector leaves: compiled loops against naive twins, and growth against searches."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.backends.random_arguments import empty_store, table_of
from tests.reference import vector_candidates as candidates_twin
from tests.reference import vector_cuts as cuts_twin
from tests.reference import vector_grow as twin
from tests.reference.histogram import bins_of
from tests.reference.histogram import table_of as bins_in
from tests.reference.vector_levels import to_levels
from tests.twins import compared

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import vector
from hilboost.engine.ops.cpu import nodes as fields
from hilboost.engine.ops.cpu import vector_candidates, vector_cuts, vector_grow, vector_state
from hilboost.engine.ops.cpu.batch import empty_batch
from hilboost.engine.ops.cpu.category_splits import CategorySplits
from hilboost.engine.ops.cpu.partition import RowBuffers
from hilboost.engine.ops.cpu.vector_candidates import empty_candidates, empty_ranges
from hilboost.engine.ops.cpu.vector_cuts import CutScratch, NodeColumn, NodeRows, VectorGradients
from hilboost.engine.ops.cpu.vector_levels import empty_levels
from hilboost.learners.tree import VectorTreeLearner

SEEDS = range(8)
seeded = pytest.mark.parametrize("seed", SEEDS)
weightings = pytest.mark.parametrize("weighted", [False, True])


def draw_bins(rng, n, d, n_bins, missing):
    """A packed table; the last bin is that of missing values."""
    words = np.zeros((-(-d // 8), n), dtype=np.uint64)
    for k in range(d):
        column = rng.integers(n_bins - 1, size=n)
        if missing:
            column[rng.uniform(size=n) < 0.3] = n_bins - 1
        words[k // 8] |= column.astype(np.uint64) << np.uint64(8 * (k % 8))
    return table_of(words, d, n_bins)


def draw_table(rng, n, d, missing):
    """Columns of few and of many values."""
    X = rng.normal(size=(n, d))
    X[:, ::2] = np.round(X[:, ::2])
    if missing:
        X[rng.uniform(size=(n, d)) < 0.2] = np.nan
    return X


def draw_sums(rng, n, k, weighted, whole):
    """Gradients, multiplied by the weights; whole numbers make all sums exact."""
    gradients = rng.integers(-4, 5, size=(n, k)) * 1.0 if whole else rng.normal(size=(n, k))
    weights = rng.integers(1, 4, size=n) * 1.0 if whole else rng.uniform(0.1, 3, size=n)
    return (gradients * weights[:, None], weights) if weighted else (gradients, np.empty(0))


def node_of(rng, n, gradients, weights):
    rows = rng.permutation(n)[: int(rng.integers(2, n + 1))].astype(np.uint32)
    begin = int(rng.integers(0, len(rows) - 1))
    return rows_of(rows, begin, int(rng.integers(begin + 1, len(rows) + 1)), gradients, weights)


def rows_of(rows, begin, end, gradients, weights):
    here = rows[begin:end]
    weight = float(weights[here].sum()) if len(weights) else float(len(here))
    return NodeRows(rows, begin, end, gradients[here].sum(axis=0), weight)


def draw_scratch(n, n_bins, k):
    return CutScratch(np.empty(n_bins + 1, np.int64), np.empty(n, np.uint32), np.empty(k))


@seeded
@weightings
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_scan_cuts(seed, weighted, missing, whole):
    rng = np.random.default_rng([seed, weighted, missing, whole])
    n, d, k = int(rng.integers(3, 50)), int(rng.integers(1, 12)), int(rng.integers(1, 9))
    n_bins = int(rng.integers(3, 12))
    table = draw_bins(rng, n, d, n_bins, missing)
    gradients, weights = draw_sums(rng, n, k, weighted, whole)
    here = node_of(rng, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    for column in range(d):
        for min_weight in (1.0, 4.0):
            scratch = draw_scratch(n, n_bins, k)
            arguments = NodeColumn(table, column, here, learned), min_weight, 1e-12, scratch
            found, expected = vector_cuts.scan_cuts(*arguments), cuts_twin.scan_cuts(*arguments)
            assert found[1:] == expected[1:]
            assert found[0] == pytest.approx(expected[0], rel=1e-12)


@seeded
@weightings
@pytest.mark.parametrize("missing_left", [0, 1])
def test_score_cut(seed, weighted, missing_left):
    rng = np.random.default_rng([seed, weighted, missing_left])
    n, d, k, n_bins = 40, 11, 5, 7
    table = draw_bins(rng, n, d, n_bins, True)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    here = node_of(rng, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    for column, cut in zip(range(d), rng.integers(n_bins - 1, size=d), strict=True):
        for min_weight in (1e-9, 3.0):
            of_node = NodeColumn(table, column, here, learned)
            arguments = of_node, min_weight, int(cut), missing_left, np.empty(k)
            found, expected = vector_cuts.score_cut(*arguments), cuts_twin.score_cut(*arguments)
            assert found == pytest.approx(expected, rel=1e-12)


@seeded
@weightings
def test_the_best_cut_is_the_best_of_all(seed, weighted):
    rng = np.random.default_rng([seed, weighted])
    n, d, k, n_bins = 30, 3, 4, 8
    table = draw_bins(rng, n, d, n_bins, True)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    here = rows_of(np.arange(n, dtype=np.uint32), 0, n, gradients, weights)
    learned = VectorGradients(gradients, weights, np.empty(0))
    for column in range(d):
        shared = NodeColumn(table, column, here, learned), 1.0
        best, cut, side = vector_cuts.scan_cuts(*shared, 0.0, draw_scratch(n, n_bins, k))
        scores = {
            (c, s): vector_cuts.score_cut(*shared, c, s, np.empty(k))
            for c in range(n_bins - 1)
            for s in (0, 1)
        }
        assert best == pytest.approx(max(scores.values()), rel=1e-12)
        assert scores[cut, side] == pytest.approx(best, rel=1e-12)


@seeded
@weightings
@pytest.mark.parametrize("max_depth", [0, 3])
def test_sums_and_priority_of_a_node(seed, weighted, max_depth):
    rng = np.random.default_rng([seed, weighted])
    gradients, weights = draw_sums(rng, 40, 7, weighted, False)
    squares = rng.uniform(5, 9, size=40)
    here = node_of(rng, 40, gradients, weights)
    limits = vector_state.VectorLimits(5.0, 0.0, 1.0, 9, max_depth, 1, False, False)
    for module, keep in compared(vector_grow, twin, rtol=1e-12, atol=1e-12):
        nodes = empty_store(3)
        nodes.fields[1, [fields.BEGIN, fields.END]] = here.begin, here.end
        nodes.fields[1, fields.N_ROWS] = here.end - here.begin
        sums = vector_state.VectorSums(np.zeros((3, 7)), np.zeros((3, 3)), np.zeros(3))
        growth = growth_of(VectorGradients(gradients, weights, squares), limits, nodes, sums, here)
        module.sum_rows(1, growth)
        module.set_priority(1, growth)
        keep(*sums[:2], nodes.priority)


def growth_of(gradients, limits, nodes, sums, here):
    """Of a table without columns."""
    table = table_of(np.zeros((0, 40), dtype=np.uint64), 0, 3)
    rows = np.stack([here.rows, here.rows])
    return vector_state.VectorGrowth(
        table,
        empty_ranges(table),
        gradients,
        limits,
        nodes,
        sums,
        CategorySplits(np.zeros(0, dtype=np.uint8), np.zeros((0, 4), dtype=np.uint64)),
        RowBuffers(rows, np.zeros((2, 0), dtype=np.int64), np.zeros(40, dtype=np.uint8)),
        empty_candidates(1, False),
        vector_state.VectorScratch(
            np.zeros((1, 4), dtype=np.int64),
            np.concatenate([here.rows, here.rows])[None],
            np.zeros((1, 7)),
            empty_levels(1, 0, 7),
        ),
        empty_batch(1, 40, 1, 1, 3),
    )


@seeded
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_ranges(seed, dtype):
    rng = np.random.default_rng(seed)
    n, d, n_bins = 50, 10, 9
    X = rng.normal(size=(n, d)).astype(dtype)
    table = draw_bins(rng, n, d, n_bins, True)
    for k in range(d):
        X[bins_of(table.words, k) == n_bins - 1, k] = np.nan
    for module, keep in compared(vector_candidates, candidates_twin):
        ranges = empty_ranges(table)
        module.value_ranges(table, X, ranges)
        keep(*ranges)


# Growth


@dataclass
class Before:
    """What growth overwrites."""

    rows: np.ndarray
    seed: int


def fit_and_record(monkeypatch, parts, X, negative, sample, n_threads, seed=0):
    """Grow one tree with the learner; returns what was there before, and all there is after."""
    before, after = [], []
    collected = vector._growth

    def recording(*given):
        growth = collected(*given)
        rows = growth.buffers.rows[0].copy()
        before.append(Before(rows, int(growth.nodes.seeds[0])))
        after.append(growth)
        return growth

    data = parts.prepare(X, sample.weight, 0, n_threads)
    rng = np.random.default_rng(seed)
    with monkeypatch.context() as context:
        context.setattr(vector, "_growth", recording)
        (fitted,) = parts.fit(data, Gradients(negative), sample, rng)
    parts.close(data)
    return before[0], after[0], data, fitted


def naive_tree(before, after, data):
    limits, bins = after.limits, bins_in(data.table.words, data.values.X.shape[1])
    categories = frozenset(np.flatnonzero(after.categories.is_category).tolist())
    return twin.grow_vector(
        twin.Table(bins.astype(int), data.values.X, after.table.n_bins - 1, categories),
        *after.gradients,
        before.rows,
        twin.Limits(*limits[:-1]),
        before.seed,
    )


def assert_same_tree(before, after, data):
    naive = naive_tree(before, after, data)
    assert int(after.nodes.control[fields.N_NODES]) == len(naive)
    for number, expected in enumerate(naive):
        found = after.nodes.fields[number]
        here = after.buffers.rows[found[fields.ARRAY], found[fields.BEGIN] : found[fields.END]]
        assert found[fields.DEPTH] == expected.depth
        if expected.left is None:
            assert found[fields.LEFT] == -1
            np.testing.assert_array_equal(here, expected.rows)
            continue
        assert (found[fields.LEFT], found[fields.RIGHT]) == (expected.left, expected.left + 1)
        column, cut, missing_left, value = expected.split
        assert found[fields.COLUMN] == column
        if isinstance(cut, set):
            assert to_levels(after.categories.left_sets[number]) == cut
        else:
            assert found[fields.BIN] == cut
        assert bool(found[fields.MISSING_LEFT]) == missing_left
        assert after.sums.values[number] == value
        assert after.nodes.gains[number] == pytest.approx(expected.gain, rel=1e-7, abs=1e-9)
    return len(naive)


def draw_sample(rng, n, weights, sampled):
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=n).astype(float),
        "fractions": rng.uniform(0.1, 2, size=n),
    }[weights]
    rows = np.sort(rng.choice(n, n // 2, replace=False)).astype(np.uint32) if sampled else None
    return RowSample(rows, weight)


LIMITS = [
    {"max_splits": 6},
    {"max_splits": None},
    {"max_splits": None, "max_depth": 2},
    {"max_splits": 8, "min_samples_leaf": 4},
    {"max_splits": 8, "min_samples_leaf": 0.5},
    {"max_splits": 8, "max_features": 0.4},
    {"max_splits": 12, "max_features": "sqrt"},
    {"max_splits": 6, "max_bins": 4},
    {"min_samples_leaf": 500},
]


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_trees_are_those_of_an_exhaustive_search(monkeypatch, random_cuts, limits, weights):
    drawn = [random_cuts, LIMITS.index(limits), len(weights)]
    missing = sum(drawn) % 2
    rng = np.random.default_rng([*drawn, missing])
    sizes = []
    for sampled, n_threads in ((False, 1), (True, 2)):
        n, d, r = int(rng.integers(20, 60)), int(rng.integers(2, 11)), int(rng.integers(1, 6))
        X = draw_table(rng, n, d, missing)
        parts = VectorTreeLearner(random_cuts=random_cuts, **limits)
        sample = draw_sample(rng, n, weights, sampled)
        record = fit_and_record(monkeypatch, parts, X, rng.normal(size=(n, r)), sample, n_threads)
        sizes.append(assert_same_tree(*record[:3]))
    assert (max(sizes) > 1) == (limits.get("min_samples_leaf") != 500)


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("limits", LIMITS[:-1], ids=str)
@pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
def test_trees_with_categories_are_those_of_an_exhaustive_search(
    monkeypatch, random_cuts, limits, weights
):
    drawn = [random_cuts, LIMITS.index(limits), len(weights)]
    missing = sum(drawn) % 2
    rng = np.random.default_rng([*drawn, missing])
    split = 0
    for sampled, n_threads in ((False, 1), (True, 2)):
        n, d, r = int(rng.integers(30, 60)), int(rng.integers(2, 8)), int(rng.integers(1, 6))
        X, sizes = draw_table(rng, n, d, False), rng.integers(2, 9, size=d)
        X[:, ::2] = rng.integers(sizes, size=(n, d))[:, ::2]
        if missing:
            X[rng.uniform(size=X.shape) < 0.15] = np.nan
        columns = tuple((k, int(sizes[k])) for k in range(0, d, 2))
        parts = VectorTreeLearner(random_cuts=random_cuts, categorical=columns, **limits)
        sample = draw_sample(rng, n, weights, sampled)
        before, after, data, fitted = fit_and_record(
            monkeypatch, parts, X, rng.normal(size=(n, r)), sample, n_threads
        )
        assert assert_same_tree(before, after, data) > 1
        np.testing.assert_array_equal(fitted.leaves, fitted.term.model.leaves(X))
        split += int(fitted.term.model.by_level.sum())
    assert split > 0


@pytest.mark.parametrize("random_cuts", [False, True])
def test_values_that_share_a_bin(monkeypatch, random_cuts):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.standard_t(1, size=400)])
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    parts = VectorTreeLearner(max_splits=15, random_cuts=random_cuts)
    negative = np.column_stack([np.sin(3 * np.nan_to_num(X)), rng.normal(size=400)])
    record = fit_and_record(monkeypatch, parts, X, negative, RowSample(None, None), 1)
    assert assert_same_tree(*record[:3]) == 31
