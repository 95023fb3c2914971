"""Trees with vector leaves: leaf_of_row, leaf values, cuts and what they do not depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.learners.tree import VectorTreeLearner

seeds = st.integers(0, 10**6)
both_cuts = pytest.mark.parametrize("random_cuts", [False, True])


def grow(X, negative, sample=None, n_threads=1, seed=0, **parameters):
    """One tree; returns what the learner says of it."""
    learner = VectorTreeLearner(**{"max_splits": None} | parameters)
    sample = RowSample(None, None) if sample is None else sample
    data = learner.prepare(X, sample.weight, 0, n_threads)
    try:
        (fitted,) = learner.fit(data, Gradients(negative), sample, np.random.default_rng(seed))
    finally:
        learner.close(data)
    return fitted


def draw(rng, n=None, dtype=np.float64, kind="mixed"):
    n = int(rng.integers(2, 120)) if n is None else n
    d = int(rng.integers(1, 10))
    X = rng.normal(size=(n, d))
    if kind == "repeated":
        X = np.round(X, 1)
    elif kind == "mixed":
        X[:, ::2] = np.round(X[:, ::2])
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X.astype(dtype), rng.normal(size=(n, int(rng.integers(1, 6))))


def leaf_by_walking(tree, x):
    node = 0
    while tree.child[node] != node:
        value = float(x[tree.column[node]])
        right = tree.missing_right[node] if np.isnan(value) else value > tree.threshold[node]
        node = tree.child[node] + int(right)
    return tree.leaf_number[node]


@both_cuts
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "repeated", "mixed"])
@pytest.mark.parametrize("n", [None, 700], ids=["few", "many"])  # 700 rows share 255 bins
@given(seed=seeds)
def test_rows_are_led_to_the_cells_they_were_learned_in(random_cuts, dtype, kind, n, seed):
    rng = np.random.default_rng(seed)
    X, negative = draw(rng, n, dtype, kind)
    sample = None
    if seed % 2:
        rows = np.flatnonzero(rng.uniform(size=len(X)) < 0.6)
        rows = rows if len(rows) else np.arange(1)
        sample = RowSample(rows.astype(np.uint32), None)
    fitted = grow(X, negative, sample, max_splits=25, random_cuts=random_cuts)
    tree = fitted.term.model
    assert (fitted.leaves >= 0).all()
    np.testing.assert_array_equal(fitted.leaves, tree.leaves(X))
    np.testing.assert_array_equal(fitted.leaves, [leaf_by_walking(tree, x) for x in X])


def test_random_cuts_are_uniform():
    X = np.array([[0.0], [1.0], [10.0]])
    negative = np.arange(3.0)[:, None]
    cuts = [
        grow(X, negative, seed=seed, max_splits=1, random_cuts=True).term.model.threshold[0]
        for seed in range(400)
    ]
    assert 0 <= min(cuts) < 0.2
    assert 9.7 < max(cuts) < 10
    assert np.mean(np.array(cuts) < 1) == pytest.approx(0.1, abs=0.05)
    assert np.mean(cuts) == pytest.approx(5, abs=0.5)


def test_columns_are_drawn_evenly_and_constant_ones_do_not_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X[:, 1], X[:, 3] = 4.0, np.nan
    negative = rng.normal(size=(30, 2))
    drawn = [
        grow(X, negative, seed=seed, max_splits=1, random_cuts=True, max_features=0.2)
        for seed in range(300)
    ]
    counts = np.bincount([f.term.model.column[0] for f in drawn], minlength=5)
    assert counts[[1, 3]].tolist() == [0, 0]
    assert counts[[0, 2, 4]].min() > 60
    assert all(len(f.term.model.values) == 2 for f in drawn)


@both_cuts
@pytest.mark.parametrize("sketch", [None, 1, 3, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_leaf_values_are_means_of_all_outputs(random_cuts, sketch, weighted, sampled):
    rng = np.random.default_rng(1)
    X, negative = rng.normal(size=(90, 3)), rng.normal(size=(90, 6)) + 5
    rows = np.arange(0, 90, 2, dtype=np.uint32) if sampled else None
    weight = rng.uniform(0.5, 2, size=90) if weighted else None
    sample = RowSample(rows, weight)
    fitted = grow(X, negative, sample, sketch=sketch, random_cuts=random_cuts, max_splits=9)
    learned = np.arange(90) if rows is None else rows
    assert fitted.term.model.values.shape == (10, 6)
    for leaf, value in enumerate(fitted.term.model.values):
        here = learned[fitted.leaves[learned] == leaf]
        expected = np.average(
            negative[here], axis=0, weights=None if weight is None else weight[here]
        )
        np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_sketches_change_the_structure():
    rng = np.random.default_rng(0)
    X, negative = rng.normal(size=(60, 4)), rng.normal(size=(60, 8))
    whole, sketched, again, other = (
        grow(X, negative, max_splits=5, sketch=k, seed=seed)
        for k, seed in ((None, 0), (2, 0), (2, 0), (2, 1))
    )
    np.testing.assert_array_equal(sketched.leaves, again.leaves)
    assert not np.array_equal(sketched.leaves, whole.leaves)
    assert not np.array_equal(sketched.leaves, other.leaves)
    np.testing.assert_array_equal(grow(X, negative, max_splits=5, sketch=8).leaves, whole.leaves)


@pytest.mark.parametrize("r", [1, 4])
@pytest.mark.parametrize("limits", [{"max_depth": 3}, {"min_samples_leaf": 4}, {}], ids=str)
def test_whole_trees_are_those_of_scikit_learn(r, limits):
    rng = np.random.default_rng(r)
    X, negative = rng.normal(size=(120, 4)), rng.normal(size=(120, r))
    expected = DecisionTreeRegressor(random_state=0, **limits).fit(X, negative).predict(X)
    fitted = grow(X, negative, **limits)
    found = fitted.term.model.values[fitted.leaves]
    np.testing.assert_allclose(found, expected.reshape(120, -1), rtol=1e-9, atol=1e-12)


@both_cuts
@given(seed=seeds)
def test_trees_begin_alike_whatever_their_size(random_cuts, seed):
    rng = np.random.default_rng(seed)
    X, negative = draw(rng)
    options = {"random_cuts": random_cuts, "max_features": 0.6}
    whole = grow(X, negative, **options).term.model
    large = grow(X, negative, max_splits=len(X), **options).term.model
    some = grow(X, negative, max_splits=4, **options)
    np.testing.assert_array_equal(whole.leaves(X), large.leaves(X))
    for leaf in np.unique(some.leaves):  # every leaf of the small tree is a node of the large one
        inside = some.leaves == leaf
        assert not np.intersect1d(whole.leaves(X)[inside], whole.leaves(X)[~inside]).size


@both_cuts
@pytest.mark.parametrize("options", [{}, {"sketch": 2}, {"max_features": "sqrt"}], ids=str)
def test_any_number_of_threads_grows_the_same_tree(random_cuts, options):
    rng = np.random.default_rng(3)
    X, negative = rng.normal(size=(300, 9)), rng.normal(size=(300, 5))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    sample = RowSample(np.arange(0, 300, 2, dtype=np.uint32), rng.uniform(0.1, 2, size=300))
    one, *others = (
        grow(X, negative, sample, k, max_splits=30, random_cuts=random_cuts, **options)
        for k in (1, 2, 3, 8)
    )
    for other in others:
        np.testing.assert_array_equal(other.leaves, one.leaves)
        for name in ("column", "threshold", "missing_right", "child", "gain", "values"):
            np.testing.assert_array_equal(
                getattr(other.term.model, name), getattr(one.term.model, name)
            )


@both_cuts
@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_where_zero_lies_does_not_matter(random_cuts, offset):
    rng = np.random.default_rng(4)
    X, negative = rng.normal(size=(100, 4)), np.round(rng.normal(size=(100, 3)), 3)
    one, other = (
        grow(X, y, max_splits=20, random_cuts=random_cuts) for y in (negative, negative + offset)
    )
    np.testing.assert_array_equal(one.leaves, other.leaves)
    np.testing.assert_allclose(
        other.term.model.values - offset, one.term.model.values, atol=1e-15 * abs(offset)
    )


@both_cuts
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9, -3e-9])
def test_outputs_that_are_all_alike_are_one_leaf(random_cuts, value):
    X = np.random.default_rng(0).normal(size=(37, 3))
    fitted = grow(X, np.full((37, 2), value), random_cuts=random_cuts)
    assert fitted.term.model.depth == 0
    np.testing.assert_allclose(fitted.term.model.values, [[value, value]], rtol=1e-15)


@both_cuts
@pytest.mark.parametrize(
    "X",
    [np.ones((20, 2)), np.full((20, 2), np.nan), np.ones((1, 3))],
    ids=["constant", "missing", "one row"],
)
def test_columns_that_cannot_be_cut_are_one_leaf(random_cuts, X):
    negative = np.random.default_rng(0).normal(size=(len(X), 2))
    fitted = grow(X, negative, random_cuts=random_cuts)
    assert fitted.term.model.depth == 0
    np.testing.assert_allclose(fitted.term.model.values[0], negative.mean(axis=0), atol=1e-15)


@both_cuts
def test_missing_values_against_one_value(random_cuts):
    X = np.where(np.arange(20) < 7, np.nan, 3.0)[:, None]
    negative = (np.arange(20.0) < 7)[:, None] * 1.0
    fitted = grow(X, negative, random_cuts=random_cuts)
    np.testing.assert_allclose(fitted.term.model.predict_raw(X), negative, atol=1e-15)


def test_missing_values_nobody_saw_follow_the_heavier_part():
    X = np.arange(10.0)[:, None]
    negative = (X >= 7) * 1.0
    light = RowSample(None, np.where(X[:, 0] >= 7, 1.0, 0.1))
    for sample, expected in ((RowSample(None, None), 0.0), (light, 1.0)):
        tree = grow(X, negative, sample, max_splits=1, min_samples_leaf=0.1).term.model
        assert tree.predict_raw(np.array([[np.nan]]))[0, 0] == expected
