"""Trees equal scikit-learn's where every distinct value has a bin."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from hilboost import BoostingRegressor


def one_tree(**parameters):
    return BoostingRegressor(
        learning_rate=1.0,
        n_estimators=1,
        min_hessian=0,
        l2_regularization=0,
        max_features=1.0,
        subsample=1.0,
        early_stopping=False,
        **parameters,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(20, 1), (100, 3), (250, 10), (200, 20)])
@pytest.mark.parametrize("max_leaf_nodes", [2, 7, 31])
@pytest.mark.parametrize("min_samples_leaf", [1, 5])
def test_one_output(seed, shape, max_leaf_nodes, min_samples_leaf):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    limits = {"max_leaf_nodes": max_leaf_nodes, "min_samples_leaf": min_samples_leaf}
    expected = DecisionTreeRegressor(**limits, random_state=0).fit(X, y)
    model = one_tree(**limits).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("max_depth", [1, 3])
def test_depth(max_depth):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    expected = DecisionTreeRegressor(max_depth=max_depth, max_leaf_nodes=64).fit(X, y)
    model = one_tree(max_depth=max_depth, max_leaf_nodes=64, min_samples_leaf=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("max_leaf_nodes", [6, 120])
def test_sample_weights(max_leaf_nodes):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(150, 4)), rng.normal(size=150), rng.integers(1, 5, size=150)
    expected = DecisionTreeRegressor(max_leaf_nodes=max_leaf_nodes).fit(X, y, weight)
    model = one_tree(max_leaf_nodes=max_leaf_nodes, min_samples_leaf=1)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("r", [2, 5])
@pytest.mark.parametrize("min_samples_leaf", [1, 5])
def test_several_outputs_in_a_shared_tree(seed, r, min_samples_leaf):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(150, 4)), rng.normal(size=(150, r))
    Y /= Y.std(axis=0)  # the unit of each output
    limits = {"max_leaf_nodes": 12, "min_samples_leaf": min_samples_leaf}
    expected = DecisionTreeRegressor(**limits, random_state=0).fit(X, Y)
    model = one_tree(multi_output="shared", **limits).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9, atol=1e-12)


def test_several_outputs_in_separate_trees():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(150, 4)), rng.normal(size=(150, 3))
    model = one_tree(max_leaf_nodes=12, min_samples_leaf=2).fit(X, Y)
    for k in range(3):
        alone = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=2).fit(X, Y[:, k])
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), rtol=1e-9, atol=1e-12)


def test_leaves_without_a_limit_hold_one_row_each():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    model = one_tree(max_leaf_nodes=None, min_samples_leaf=1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12, atol=1e-14)
