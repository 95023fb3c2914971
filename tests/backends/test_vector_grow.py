"""Trees with vector leaves: compiled loops against naive twins, and growth against searches."""

import inspect

import numpy as np
import pytest
from tests.reference import vector_grow as twin
from tests.reference.histogram import table_of

from hilboost.backends import vector_grow as compiled
from hilboost.backends.nodes import (
    BEGIN,
    BIN,
    BUFFER,
    COLUMN,
    DEPTH,
    END,
    LEFT,
    MISSING_LEFT,
    N_NODE_FIELDS,
    N_NODES,
    RIGHT,
)
from hilboost.core.learner import RowSample
from hilboost.learners.tree import VectorTreeLearner, vector

SEEDS = range(8)
seeded = pytest.mark.parametrize("seed", SEEDS)
weightings = pytest.mark.parametrize("weighted", [False, True])
NAMES = [*inspect.signature(compiled.grow_vector.py_func).parameters]


def draw_bins(rng, n, d, n_bins, missing):
    """A packed table as flat bytes; the last bin is that of missing values."""
    words = np.zeros((-(-d // 8), n), dtype=np.uint64)
    for k in range(d):
        column = rng.integers(n_bins - 1, size=n)
        if missing:
            column[rng.uniform(size=n) < 0.3] = n_bins - 1
        words[k // 8] |= column.astype(np.uint64) << np.uint64(8 * (k % 8))
    return words.reshape(-1).view(np.uint8)


def draw_sums(rng, n, k, weighted, whole):
    """Gradients, multiplied by the weights; whole numbers make all sums exact."""
    gradients = rng.integers(-4, 5, size=(n, k)) * 1.0 if whole else rng.normal(size=(n, k))
    weights = rng.integers(1, 4, size=n) * 1.0 if whole else rng.uniform(0.1, 3, size=n)
    return (gradients * weights[:, None], weights) if weighted else (gradients, np.empty(0))


def node_of(rng, n):
    rows = rng.permutation(n)[: int(rng.integers(2, n + 1))].astype(np.uint32)
    begin = int(rng.integers(0, len(rows) - 1))
    return rows, begin, int(rng.integers(begin + 1, len(rows) + 1))


@seeded
@weightings
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_scan_cuts(seed, weighted, missing, whole):
    rng = np.random.default_rng([seed, weighted, missing, whole])
    n, d, k = int(rng.integers(3, 50)), int(rng.integers(1, 12)), int(rng.integers(1, 9))
    n_bins = int(rng.integers(3, 12))
    bins = draw_bins(rng, n, d, n_bins, missing)
    gradients, weights = draw_sums(rng, n, k, weighted, whole)
    rows, begin, end = node_of(rng, n)
    here = rows[begin:end]
    for column in range(d):
        for min_weight in (1.0, 4.0):
            arguments = (
                bins, column, n, n_bins, rows, begin, end, gradients, weights,
                gradients[here].sum(axis=0), weights[here].sum() if weighted else float(len(here)),
                min_weight, 1e-12, np.empty(n_bins + 1, np.int64),
                np.empty(len(rows), np.uint32), np.empty(k),
            )  # fmt: skip
            found, expected = compiled.scan_cuts(*arguments), twin.scan_cuts(*arguments)
            assert found[1:] == expected[1:]
            assert found[0] == pytest.approx(expected[0], rel=1e-12)


@seeded
@weightings
@pytest.mark.parametrize("missing_left", [0, 1])
def test_score_cut(seed, weighted, missing_left):
    rng = np.random.default_rng([seed, weighted, missing_left])
    n, d, k, n_bins = 40, 11, 5, 7
    bins = draw_bins(rng, n, d, n_bins, True)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    rows, begin, end = node_of(rng, n)
    here = rows[begin:end]
    weight = weights[here].sum() if weighted else float(len(here))
    for column, cut in zip(range(d), rng.integers(n_bins - 1, size=d), strict=True):
        for min_weight in (1e-9, 3.0):
            arguments = (
                bins, column, n, n_bins - 1, rows, begin, end, gradients, weights,
                gradients[here].sum(axis=0), weight, min_weight, int(cut), missing_left,
                np.empty(k),
            )  # fmt: skip
            found, expected = compiled.score_cut(*arguments), twin.score_cut(*arguments)
            assert found == pytest.approx(expected, rel=1e-12)


@seeded
@weightings
def test_the_best_cut_is_the_best_of_all(seed, weighted):
    rng = np.random.default_rng([seed, weighted])
    n, d, k, n_bins = 30, 3, 4, 8
    bins = draw_bins(rng, n, d, n_bins, True)
    gradients, weights = draw_sums(rng, n, k, weighted, False)
    rows = np.arange(n, dtype=np.uint32)
    node = (gradients, weights, gradients.sum(axis=0), weights.sum() if weighted else float(n), 1.0)
    for column in range(d):
        scratch = np.empty(n_bins + 1, np.int64), np.empty(n, np.uint32), np.empty(k)
        best, cut, side = compiled.scan_cuts(
            bins, column, n, n_bins, rows, 0, n, *node, 0.0, *scratch
        )
        scores = {
            (c, s): compiled.score_cut(
                bins, column, n, n_bins - 1, rows, 0, n, *node, c, s, np.empty(k)
            )
            for c in range(n_bins - 1)
            for s in (0, 1)
        }
        assert best == pytest.approx(max(scores.values()), rel=1e-12)
        assert scores[cut, side] == pytest.approx(best, rel=1e-12)


@seeded
@weightings
def test_weigh(seed, weighted):
    rng = np.random.default_rng([seed, weighted])
    gradients, weights = draw_sums(rng, 40, 7, weighted, False)
    squares = rng.uniform(5, 9, size=40)
    rows, begin, end = node_of(rng, 40)
    nodes = np.zeros((3, N_NODE_FIELDS), dtype=np.int64)
    nodes[1, [BEGIN, END]] = begin, end
    results = []
    for module in (compiled, twin):
        totals, masses = np.zeros((3, 7)), np.zeros((3, 3))
        module.weigh(1, rows, nodes, gradients, weights, squares, totals, masses)
        results.append((totals, masses))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@seeded
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_ranges(seed, dtype):
    rng = np.random.default_rng(seed)
    n, d, n_bins = 50, 10, 9
    X = rng.normal(size=(n, d)).astype(dtype)
    bins = draw_bins(rng, n, d, n_bins, True)
    for k in range(d):
        X[twin.bins_of(bins, n, k) == n_bins - 1, k] = np.nan
    results = []
    for module in (compiled, twin):
        low, high = np.full((d, n_bins), np.inf), np.full((d, n_bins), -np.inf)
        module.value_ranges(bins, n, d, n_bins, X, low, high)
        results.append((low, high))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Growth


def fit_and_record(monkeypatch, parts, X, negative, sample, n_threads, seed=0):
    """Grow one tree with the learner; returns the grower's arguments, afterwards and before."""
    after, before = {}, {}

    def recording(*values):
        arguments = dict(zip(NAMES, values, strict=True))
        if arguments["thread"] == 0:
            after.update(arguments)
            before.update(rows=arguments["rows"][0].copy(), seed=int(arguments["seeds"][0]))
        compiled.grow_vector(*values)

    monkeypatch.setattr(vector, "grow_vector", recording)
    data = parts.prepare(X, sample.weight, 0, n_threads)
    rng = np.random.default_rng(seed)
    fitted = parts.fit_tree(data, negative, sample, rng, data.team)
    parts.close(data)
    return before, after, data, fitted


def naive_tree(before, after, data):
    min_weight, tie, pure = after["limits"]
    max_leaves, max_depth, n_columns, random_cuts = (int(x) for x in after["limits_int"])
    missing = after["n_bins"] - 1
    return twin.grow_vector(
        twin.Table(table_of(data.table.words, data.X.shape[1]), data.X, missing),
        after["gradients"],
        after["weights"],
        after["row_squares"],
        before["rows"],
        twin.Limits(min_weight, tie, pure, max_leaves, max_depth, n_columns, bool(random_cuts)),
        before["seed"],
    )


def assert_same_tree(before, after, data):
    naive = naive_tree(before, after, data)
    assert int(after["control"][N_NODES]) == len(naive)
    for number, expected in enumerate(naive):
        found = after["nodes"][number]
        here = after["rows"][found[BUFFER], found[BEGIN] : found[END]]
        assert found[DEPTH] == expected.depth
        if expected.left is None:
            assert found[LEFT] == -1
            np.testing.assert_array_equal(here, expected.rows)
            continue
        assert (found[LEFT], found[RIGHT]) == (expected.left, expected.left + 1)
        column, cut, missing_left, value = expected.split
        assert found[[COLUMN, BIN]].tolist() == [column, cut]
        assert bool(found[MISSING_LEFT]) == missing_left
        assert after["values"][number] == value
        assert after["gains"][number] == pytest.approx(expected.gain, rel=1e-7, abs=1e-9)
    return len(naive)


def draw_table(rng, n, d, missing):
    """Columns of few and of many values."""
    X = rng.normal(size=(n, d))
    X[:, ::2] = np.round(X[:, ::2])
    if missing:
        X[rng.uniform(size=(n, d)) < 0.2] = np.nan
    return X


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
@pytest.mark.parametrize("missing", [False, True])
def test_trees_are_those_of_an_exhaustive_search(
    monkeypatch, random_cuts, limits, weights, missing
):
    rng = np.random.default_rng([random_cuts, LIMITS.index(limits), len(weights), missing])
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
def test_values_that_share_a_bin(monkeypatch, random_cuts):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.standard_t(1, size=400)])
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    parts = VectorTreeLearner(max_splits=15, random_cuts=random_cuts)
    negative = np.column_stack([np.sin(3 * np.nan_to_num(X)), rng.normal(size=400)])
    record = fit_and_record(monkeypatch, parts, X, negative, RowSample(None, None), 1)
    assert assert_same_tree(*record[:3]) == 31
