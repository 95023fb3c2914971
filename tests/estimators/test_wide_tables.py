"""Tables of far more columns than rows have no trial runs, which would take longer than the fit."""

import numpy as np
import pytest
import scipy.sparse

from hilboost import BoostingClassifier, BoostingRegressor


def wide(n, d):
    """Sparse columns, of which the first 20 are informative and filled more densely."""
    rng = np.random.default_rng(0)
    noise = scipy.sparse.random_array((n, d - 20), density=0.002, rng=rng)
    signal = rng.random((n, 20)) * (rng.random((n, 20)) < 0.3)
    X = scipy.sparse.hstack([scipy.sparse.csr_array(signal), noise], format="csr")
    return X, signal.sum(axis=1) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
def test_trees_are_small():
    X, y = wide(800, 5200)
    model = BoostingRegressor(random_state=0).fit(X[:400], y[:400])
    assert (model.resolved_.max_leaf_nodes, model.resolved_.max_features) == (8, 0.5)
    assert model.score(X[400:], y[400:]) > 0.7


def test_given_parameters_hold():
    X, y = wide(300, 7000)
    settings = {"max_leaf_nodes": 5, "max_features": 0.1, "n_estimators": 3}
    model = BoostingClassifier(**settings, random_state=0).fit(X, y > np.median(y))
    assert (model.resolved_.max_leaf_nodes, model.resolved_.max_features) == (5, 0.1)


@pytest.mark.slow
def test_early_stopping_costs_no_multiple_of_the_stages(runs):
    X, y = wide(400, 8000)
    model = BoostingRegressor(n_estimators=40, random_state=0).fit(X, y)
    assert model.resolved_.early_stopping
    assert model.resolved_.cv_folds == 1
    assert not runs
    model.fit(X[:, :40], y)
    assert runs
