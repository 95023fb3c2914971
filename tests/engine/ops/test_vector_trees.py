"""Trees with vector leaves against naive growth, and splits on levels against all subsets."""

from itertools import product

import numpy as np
import pytest
from tests.reference.histogram import table_of
from tests.reference.vector_trees import UNSEEN, VectorTree
from tests.seeds import seeded

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import VectorTreeLearner

both_cuts = pytest.mark.parametrize("random_cuts", [False, True])
weightings = pytest.mark.parametrize("weights", ["none", "whole", "fractions"])
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


def draw_sample(rng, n, weights, sampled=False):
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=n).astype(float),
        "fractions": rng.uniform(0.1, 2, size=n),
    }[weights]
    rows = np.sort(rng.choice(n, n // 2, replace=False)).astype(np.uint32) if sampled else None
    return RowSample(rows, weight)


def draw_table(rng, n, sizes, missing):
    """Columns of few and of many values, and of so many levels as ``sizes`` say, unless 0."""
    X = rng.normal(size=(n, len(sizes)))
    X[:, ::2] = np.round(X[:, ::2])
    for k in np.flatnonzero(sizes):
        X[:, k] = rng.integers(sizes[k], size=n)
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X


def grow(learner, X, negative, sample, n_threads=1, seed=0):
    """The tree, the leaf of each row, and the naive tree."""
    data = learner.prepare(X, sample.weight, 0, n_threads)
    (fitted,) = learner.fit(data, Gradients(negative), sample, np.random.default_rng(seed))
    learner.close(data)
    bins, root = table_of(data.table.words, X.shape[1]), np.random.default_rng(seed).integers(2**62)
    given = X, bins, data.table.n_bins - 1, negative, sample, int(root)
    return fitted.term.model, fitted.leaves, VectorTree(learner, *given)


def levels_of(words):
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def assert_same(tree, leaves, naive, X):
    """Every split, and the rows of every leaf."""
    assert len(tree.child) == len(naive.nodes)
    of_levels = iter(tree.left_sets)
    for number, node in enumerate(naive.nodes):
        if node.left is None:
            assert tree.child[number] == number
            assert (leaves[node.rows] == tree.leaf_number[number]).all()
            continue
        assert (tree.child[number], tree.column[number]) == (node.left, node.split.column)
        assert tree.missing_right[number] == (naive.missing not in node.split.left)
        assert tree.threshold[number] == node.split.threshold
        assert tree.gain[number] == pytest.approx(node.gain, rel=1e-7, abs=1e-9)
        if node.split.column in naive.levels:
            found = levels_of(next(of_levels))
            assert found - {naive.missing} == node.split.left - {naive.missing}
    np.testing.assert_array_equal(leaves, tree.leaves(X))


@both_cuts
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@weightings
@pytest.mark.parametrize("with_levels", [False, True])
def test_trees_are_those_of_naive_growth(random_cuts, limits, weights, with_levels):
    drawn = [random_cuts, LIMITS.index(limits), len(weights), with_levels]
    rng, sizes = np.random.default_rng(drawn), []
    for missing, sampled, n_threads in ((sum(drawn) % 2, False, 1), (1 - sum(drawn) % 2, True, 2)):
        n, d, r = int(rng.integers(30, 60)), int(rng.integers(2, 11)), int(rng.integers(1, 6))
        levels = rng.integers(2, 9, size=d) * (np.arange(d) % 2 == 0) * with_levels
        X, sample = draw_table(rng, n, levels, missing), draw_sample(rng, n, weights, sampled)
        columns = tuple((k, int(levels[k])) for k in np.flatnonzero(levels).tolist())
        learner = VectorTreeLearner(random_cuts=random_cuts, categorical=columns, **limits)
        found = grow(learner, X, rng.normal(size=(n, r)), sample, n_threads)
        assert_same(*found, X)
        sizes.append(len(found[0].child))
    assert (max(sizes) > 1) == (limits.get("min_samples_leaf") != 500)


@both_cuts
def test_values_that_share_a_bin(random_cuts):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.standard_t(1, size=400)])
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    negative = np.column_stack([np.sin(3 * np.nan_to_num(X)), rng.normal(size=400)])
    learner = VectorTreeLearner(max_splits=15, random_cuts=random_cuts)
    found = grow(learner, X, negative, RowSample(None, None))
    assert_same(*found, X)
    assert len(found[0].child) == 31


@seeded(range(8))
@pytest.mark.parametrize("n_levels", [0, 3])
def test_the_first_of_equal_splits_wins(seed, n_levels):
    """Mirror images and equal columns have equal gains."""
    rng = np.random.default_rng(seed)
    X, negative = draw_table(rng, 40, np.array([n_levels] * 3), True), rng.normal(size=(40, 2))
    X[:, 2] = X[:, 0]
    X, negative = np.concatenate([X, n_levels - 1 - X]), np.concatenate([negative, negative])
    columns = tuple((k, n_levels) for k in range(3 if n_levels else 0))
    learner = VectorTreeLearner(max_splits=1, categorical=columns)
    assert_same(*grow(learner, X, negative, RowSample(None, None)), X)


def draw_levels(rng, n, n_levels, missing=False):
    """A column in which each level occurs."""
    codes = rng.integers(n_levels, size=n).astype(float)
    codes[:n_levels] = np.arange(n_levels)
    if missing:
        codes[rng.uniform(size=n) < 0.15] = np.nan
    return codes[:, None]


def split_once(X, n_levels, negative, sample):
    """The tree of one split on levels, and the naive one."""
    learner = VectorTreeLearner(max_splits=1, categorical=((0, n_levels),))
    tree, leaves, naive = grow(learner, X, negative, sample)
    weights = np.ones(len(X)) if sample.weight is None else sample.weight
    means = [
        np.average(negative[leaves == k], axis=0, weights=weights[leaves == k]) for k in (0, 1)
    ]
    spread = negative - np.average(negative, axis=0, weights=weights)
    explained = weights @ (
        (spread**2).sum(axis=1) - ((negative - np.array(means)[leaves]) ** 2).sum(axis=1)
    )
    assert tree.gain[0] == pytest.approx(explained, rel=1e-9)
    return tree, naive


@seeded(range(4))
@weightings
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_levels", [11, 40, 200, 255])
def test_many_levels_are_cut_along_the_first_component(seed, weights, missing, n_levels):
    """The component has no direction: the mirror image is cut at the same place."""
    rng = np.random.default_rng([seed, len(weights), missing, n_levels])
    n, r = n_levels + int(rng.integers(20, 60)), int(rng.integers(1, 9))
    negative = rng.normal(size=(n, r)) * np.where(np.arange(r) == 0, 3, 1)
    X = draw_levels(rng, n, n_levels, missing)
    tree, naive = split_once(X, n_levels, negative, draw_sample(rng, n, weights))
    assert tree.gain[0] == pytest.approx(naive.nodes[0].gain, rel=1e-9)


@seeded(range(4))
@weightings
def test_the_best_cut_of_many_levels_of_one_output_is_the_best_of_all_subsets(seed, weights):
    rng = np.random.default_rng([seed, len(weights)])
    n, n_levels = 90, 12
    X, negative, sample = (
        draw_levels(rng, n, n_levels),
        rng.normal(size=(n, 1)),
        draw_sample(rng, n, weights),
    )
    tree, _ = split_once(X, n_levels, negative, sample)
    weight = np.ones(n) if sample.weight is None else sample.weight
    mass = np.bincount(X[:, 0].astype(int), weight)
    sums = np.bincount(X[:, 0].astype(int), weight * negative[:, 0])
    left = np.array(list(product([0, 1], repeat=n_levels - 1)))[1:]
    left_sum, left_mass = left @ sums[:-1], left @ mass[:-1]
    right = (sums.sum() - left_sum) ** 2 / (mass.sum() - left_mass)
    best = (left_sum**2 / left_mass + right).max() - sums.sum() ** 2 / mass.sum()
    assert tree.gain[0] == pytest.approx(best, rel=1e-9)


def test_levels_that_lie_on_a_line_in_the_output_space_are_cut_exactly():
    rng = np.random.default_rng(0)
    X, direction, group = draw_levels(rng, 400, 30), rng.normal(size=12), rng.permutation(30) < 11
    signs = np.where(group, 1.0, -1.0)[X[:, 0].astype(int)]
    negative = signs[:, None] * direction + 0.1 * rng.normal(size=(400, 12))
    tree, _ = split_once(X, 30, negative, RowSample(None, None))
    found = levels_of(tree.left_sets[0]) & set(range(30))
    assert found in (set(np.flatnonzero(group)), set(np.flatnonzero(~group)))


def test_all_proper_subsets_are_drawn_equally_often():
    X, negative = np.array([[0.0], [1.0], [2.0], [np.nan]]), np.arange(4.0)[:, None]
    learner, counts = VectorTreeLearner(max_splits=1, random_cuts=True, categorical=((0, 3),)), {}
    data = learner.prepare(X, None, 0, 1)
    for seed in range(1400):
        rng = np.random.default_rng(seed)
        (fitted,) = learner.fit(data, Gradients(negative), RowSample(None, None), rng)
        key = tuple((fitted.leaves == fitted.leaves[0]).tolist()), fitted.leaves[0]
        counts[key] = counts.get(key, 0) + 1
    learner.close(data)
    assert len(counts) == 14
    assert min(counts.values()) > 60
    assert max(counts.values()) < 145


@both_cuts
def test_unseen_levels_go_to_the_heavier_side(random_cuts):
    X, rng = np.array([0.0] * 7 + [1.0] * 3)[:, None], np.random.default_rng(0)
    learner = VectorTreeLearner(random_cuts=random_cuts, categorical=((0, 5),), max_splits=1)
    tree, leaves, _ = grow(learner, X, rng.normal(size=(10, 2)), RowSample(None, None))
    others = np.array([[3.0], [UNSEEN - 1.0], [np.nan], [0.0]])
    assert (tree.leaves(others) == leaves[0]).all()
