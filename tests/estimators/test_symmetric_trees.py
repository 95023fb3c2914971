"""Symmetric trees in estimators: defaults, constraints, categories, files, workers and weights."""

import numpy as np
import pandas as pd
import pytest
from tests.cases import PLAIN
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival
from hilboost.core.errors import InvalidParameter
from hilboost.learners.tree import TreeLearner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.1 * RNG.normal(size=400)
SHORT = PLAIN | {"n_estimators": 8, "growth": "symmetric"}


def splits_of(model):
    """For each tree, the columns and thresholds of its inner nodes."""
    trees = [term.model for stage in model.model_.stages for term in stage.terms]
    inner = [tree.leaf_number < 0 for tree in trees]
    pairs = zip(trees, inner, strict=True)
    return [np.column_stack([t.column[i], t.threshold[i]]) for t, i in pairs]


def is_symmetric(model):
    """Whether trees have at most as many different splits as levels."""
    levels = np.log2(model.fitted_.learner.max_leaf_nodes)
    return all(len(np.unique(splits, axis=0)) <= levels for splits in splits_of(model))


def test_rankings_have_symmetric_trees_by_default():
    query, y = np.repeat(np.arange(40), 10), np.clip(np.round(Y + 1), 0, 3)
    short = {"max_features": 1.0, "n_estimators": 4, "early_stopping": False, "random_state": 0}
    for growth, constraint, expected in (
        ("auto", None, True),
        ("best_first", None, False),
        ("auto", [1, 0, 0, 0, 0], False),
    ):
        model = BoostingRanker(**short, growth=growth, monotonic_cst=constraint)
        model.fit(X, y, groups=query)
        assert model.fitted_.learner.symmetric == expected
        assert is_symmetric(model) == expected
    assert model.fitted_.resolved.max_leaf_nodes == 31
    assert not BoostingRegressor(**PLAIN).fit(X, Y).fitted_.learner.symmetric


def test_survival_times_have_symmetric_trees_of_16_leaves_by_default():
    times = np.column_stack([np.exp(Y)] * 2)
    model = BoostingSurvival(n_estimators=4, random_state=0).fit(X, times)
    assert model.fitted_.learner.symmetric
    assert model.fitted_.learner.max_leaf_nodes == 16
    frame = pd.DataFrame({"x": X[:, 0], "name": pd.Categorical(["a", "b"] * 200)})
    model.fit(frame, times)  # trees split on the levels, because there is no mean to encode them
    assert not model.fitted_.learner.symmetric


@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_files_threads_and_weights(multi_output):
    y = np.column_stack([Y, Y**2])
    times = RNG.integers(1, 4, size=len(X))
    model = BoostingRegressor(**SHORT | {"multi_output": multi_output}, n_jobs=1)
    model.fit(X, y, sample_weight=times)
    assert is_symmetric(model)
    repeated = BoostingRegressor(**SHORT | {"multi_output": multi_output}, n_jobs=2)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    np.testing.assert_array_equal(model.predict(X), repeated.predict(X))
    loaded = reloaded(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.growth == "symmetric"


def test_categories_are_encoded():
    names = np.array(["a", "b", "c", "d"])
    frame = pd.DataFrame({"x": X[:, 0], "name": pd.Categorical(names[RNG.integers(4, size=400)])})
    y = (frame["name"].isin(["a", "c"]) ^ (frame["x"] > 0)).astype(int)
    model = BoostingClassifier(**SHORT | {"n_estimators": 30}).fit(frame, y)
    assert model.score(frame, y) > 0.95
    with pytest.raises(InvalidParameter, match="or encode the categories as numbers"):
        BoostingClassifier(**SHORT, target_encoding=False).fit(frame, y)


@pytest.mark.parametrize(
    "constraint", [{"monotonic_cst": [1] * 5}, {"interaction_cst": "pairwise"}]
)
def test_constraints_are_refused(constraint):
    with pytest.raises(InvalidParameter, match="set growth='best_first', or both to None"):
        BoostingRegressor(**SHORT, **constraint).fit(X, Y)
    with pytest.raises(InvalidParameter, match="symmetric trees do not support monotonic columns"):
        TreeLearner(symmetric=True, monotonic=(1,))


def test_a_constant_target_has_no_splits():
    model = BoostingRegressor(**SHORT).fit(X, np.ones(400))
    assert all(len(splits) == 0 for splits in splits_of(model))
    np.testing.assert_array_equal(model.predict(X), 1.0)
