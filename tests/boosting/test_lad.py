"""Absolute error with trees is Friedman's LAD_TreeBoost, stage by stage."""

import numpy as np
import pytest
from tests.reference.lad import lad_tree_boost

from hilboost import BoostingRegressor


def draw(seed, n=60):
    """Few distinct inputs and heavy tails: many equal gains, and medians between two rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), np.round(rng.normal(size=n), 1), rng.integers(4, size=n)]
    )
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + rng.standard_t(2, size=n)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("learning_rate", "min_samples_leaf"), [(1.0, 1), (0.1, 5)])
def test_stages_are_those_of_algorithm_3(seed, learning_rate, min_samples_leaf):
    X, y = draw(seed)
    model = BoostingRegressor(
        "absolute_error",
        learning_rate=learning_rate,
        n_estimators=5,
        max_leaf_nodes=8,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=0,
        max_features=1.0,
        subsample=1.0,
        early_stopping=False,
    ).fit(X, y)
    expected = lad_tree_boost(X, y, 5, 8, min_samples_leaf, learning_rate)
    assert model.model_.initial_raw == np.median(y)
    stages = zip(model.model_.stages, model.staged_predict(X), expected, strict=True)
    for stage, predicted, (splits, gammas, F) in stages:
        tree = stage.terms[0].model
        inner = tree.leaf_number < 0
        assert list(zip(tree.column[inner], tree.threshold[inner], strict=True)) == splits
        np.testing.assert_allclose(tree.values[:, 0], gammas, rtol=0, atol=1e-12)
        np.testing.assert_allclose(predicted, F, rtol=0, atol=1e-12)
