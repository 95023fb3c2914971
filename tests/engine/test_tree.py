"""Trees and forests on raw inputs."""

import numpy as np
import pytest
import scipy.sparse

from hilboost.core.base_model import Term
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.engine import Forest, Tree
from hilboost.engine import tree as tree_module
from hilboost.engine.tree import WideForest
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.tables.sparse import SparseTable

RNG = np.random.default_rng(0)


def draw_table(n, missing=True, dtype=np.float64):
    X = np.random.default_rng(n).normal(size=(n, 4)).astype(dtype)
    if missing:
        X[np.random.default_rng(n + 1).uniform(size=X.shape) < 0.3] = np.nan
    return X


def fit_tree(max_leaf_nodes, r=1, sample=None, **parameters):
    """A tree in which both directions of missing values occur."""
    X = draw_table(400)
    negative = np.random.default_rng(1).normal(size=(400, r)) + np.isnan(X[:, :1])
    learner = TreeLearner(
        max_leaf_nodes=max_leaf_nodes, min_samples_leaf=1, shared=True, **parameters
    )
    data = learner.prepare(X, None, 0, 1)
    sample = RowSample(None, None) if sample is None else sample
    (fitted,) = learner.fit(data, Gradients(negative), sample, np.random.default_rng(0))
    return X, negative, fitted


def path(tree, x):
    """The nodes that a row reaches."""
    nodes = [0]
    while tree.child[nodes[-1]] != nodes[-1]:
        node = nodes[-1]
        value = x[tree.column[node]]
        right = tree.missing_right[node] if np.isnan(value) else value > tree.threshold[node]
        nodes.append(tree.child[node] + int(right))
    return nodes


@pytest.mark.parametrize("max_leaf_nodes", [1, 2, 31, 64, 65, 200])
@pytest.mark.parametrize("n", [1, 7, 8, 64, 71, 4103])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_led_to_their_leaf(max_leaf_nodes, n, dtype):
    tree = fit_tree(max(2, max_leaf_nodes), max_depth=None)[2].term.model
    X = draw_table(n, dtype=dtype)
    paths = [path(tree, x) for x in X]
    expected = tree.leaf_number[[nodes[-1] for nodes in paths]]
    np.testing.assert_array_equal(tree.leaves(X), expected)
    counts = np.bincount(np.concatenate(paths), minlength=len(tree.child))
    np.testing.assert_array_equal(tree.node_counts(tree.leaves(X)), counts)
    np.testing.assert_array_equal(tree.predict_raw(X), tree.values[expected])
    raw = np.zeros((n, 1))
    Forest.of([Term(tree, slice(0, 1), np.array([0.5]))]).add_to(raw, X, 1)
    np.testing.assert_array_equal(raw, 0.5 * tree.values[expected])


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_cells_while_learning_are_those_of_the_finished_tree(sampled, r):
    rows = np.arange(0, 400, 3, dtype=np.uint32) if sampled else None
    X, _, fitted = fit_tree(20, r, RowSample(rows, None))
    np.testing.assert_array_equal(fitted.leaves, fitted.term.model.leaves(X))


@pytest.mark.parametrize("l2", [0.0, 2.0])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_values_are_newton_steps(l2, sampled, weighted):
    rows = np.arange(0, 400, 3, dtype=np.uint32) if sampled else None
    weight = RNG.uniform(0.5, 2, size=400) if weighted else None
    _, negative, fitted = fit_tree(12, 2, RowSample(rows, weight), l2_regularization=l2)
    learned = np.zeros(400, dtype=bool)
    learned[slice(None) if rows is None else rows] = True
    weight = np.ones(400) if weight is None else weight
    for leaf, value in enumerate(fitted.term.model.values):
        here = learned & (fitted.leaves == leaf)
        expected = (weight[here] @ negative[here]) / (weight[here].sum() + l2)
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_sketched_trees_take_leaf_values_from_all_outputs():
    _, negative, fitted = fit_tree(8, 5, sketch=2)
    assert fitted.term.model.values.shape == (8, 5)
    for leaf, value in enumerate(fitted.term.model.values):
        np.testing.assert_allclose(value, negative[fitted.leaves == leaf].mean(axis=0), rtol=1e-10)


def test_gains_are_what_the_splits_gain():
    X, negative, fitted = fit_tree(10)
    tree = fitted.term.model
    values = tree.values[fitted.leaves]
    explained = np.sum(negative**2) - np.sum((negative - values) ** 2)
    start = negative.sum() ** 2 / len(X)
    assert tree.gain.sum() + start == pytest.approx(explained, rel=1e-9)


def test_trees_with_other_values_have_the_same_cells():
    X, _, fitted = fit_tree(10)
    tree = fitted.term.model
    other = tree.with_values(np.arange(10.0)[:, None])
    np.testing.assert_array_equal(other.predict_raw(X)[:, 0], tree.leaves(X))


def test_leaves_stay_while_other_trees_grow():
    X, negative = draw_table(400), np.random.default_rng(1).normal(size=(400, 1))
    learner = TreeLearner(max_leaf_nodes=10)
    data = learner.prepare(X, None, 0, 1)

    def leaves(target):
        sample, rng = RowSample(np.arange(300, dtype=np.uint32), None), np.random.default_rng(0)
        (fitted,) = learner.fit(data, Gradients(target), sample, rng)
        return fitted.leaves, fitted.term.model.leaves(X)

    kept = [leaves(negative), leaves(-(negative**2))]
    part = kept[0][0][100:]
    for found, expected in kept:
        np.testing.assert_array_equal(found, expected)
    expected = part.copy()
    del kept, found
    for _ in range(3):
        leaves(negative[::-1])
    np.testing.assert_array_equal(part, expected)
    (pool,) = data.buffers.values()
    assert len(pool) == 1


def test_forests_on_several_threads():
    tree = fit_tree(31, 2)[2].term.model
    X = draw_table(20_000)
    results = []
    for n_threads in (1, 2, 3):
        raw = np.zeros((len(X), 3))
        forest = Forest.of([Term.of(tree, slice(1, 3)), Term.of(tree, slice(0, 2))])
        forest.add_to(raw, X, n_threads)
        results.append((raw, forest.leaves(X, n_threads)))
    for raw, leaf_of_row in results[1:]:
        np.testing.assert_array_equal(raw, results[0][0])
        np.testing.assert_array_equal(leaf_of_row, results[0][1])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("categories", [(), ((0, 4),)])
def test_large_leaf_values_are_not_copied_and_give_the_same_bits(monkeypatch, sparse, categories):
    rng = np.random.default_rng(0)
    X, negative = np.round(rng.normal(size=(300, 3)), 1), rng.normal(size=(300, 7))
    X[:, 0] = rng.integers(4, size=300)
    if not sparse:
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    learner = VectorTreeLearner(max_splits=None, random_cuts=True, categorical=categories)
    data, sample, terms = learner.prepare(X, None, 0, 1), RowSample(None, None), []
    for seed in range(4):
        (fitted,) = learner.fit(data, Gradients(negative), sample, np.random.default_rng(seed))
        terms.append(Term(fitted.term.model, slice(1, 8), rng.uniform(size=7)))
    learner.close(data)
    table = SparseTable(scipy.sparse.csr_array(X)) if sparse else X
    raws = []
    for most in (2**24, 0):
        monkeypatch.setattr(tree_module, "MOST_COPIED", most)
        summation = Tree.sum_of(terms)
        assert type(summation) is (WideForest if most == 0 else Forest)
        assert summation.cost_per_row == 4
        raw = np.ones((300, 9))
        summation.add_to(raw, table, 2)
        raws.append((raw, summation.leaves(table, 2)))
    for narrow, wide in zip(*raws, strict=True):
        np.testing.assert_array_equal(narrow, wide)


@pytest.mark.parametrize(
    ("parameters", "draws"),
    [
        ({}, False),
        ({"shared": True}, False),
        ({"max_features": 0.5}, True),
        ({"max_features_per_tree": 0.5}, True),
        ({"sketch": 1, "shared": True}, True),
    ],
)
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 401.0)])
def test_the_seed_has_no_effect_on_stages_without_draws(parameters, draws, weight):
    X, sample = draw_table(400), RowSample(None, weight)
    negative = np.random.default_rng(1).normal(size=(400, 2))
    learner = TreeLearner(max_leaf_nodes=8, **parameters)
    data = learner.prepare(X, weight, 0, 1)
    generators = map(np.random.default_rng, range(3))
    fits = [learner.fit(data, Gradients(negative), sample, rng) for rng in generators]
    raws = [[f.term.model.predict_raw(X) for f in fit] for fit in fits]
    assert all(np.array_equal(raws[0], raw) for raw in raws) != draws
