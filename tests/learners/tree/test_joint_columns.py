"""Columns of few values that share tables of sums: the same trees in less time."""

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.learners.tree import TreeLearner, learner
from hilboost.learners.tree.joint_columns import joint_columns

RNG = np.random.default_rng(0)
N = 3000
X = RNG.integers(6, size=(N, 9)).astype(float)
X[:, 8] = RNG.normal(size=N)
X[RNG.uniform(size=X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 8]) + RNG.normal(size=N)
WEIGHT = RNG.uniform(0.5, 2, size=N)


@pytest.mark.parametrize(
    ("classes", "weight", "parameters"),
    [
        (False, None, {}),
        (False, WEIGHT, {"n_shards": 2}),
        (True, None, {"categorical_features": [0, 1]}),
        (True, WEIGHT, {"subsample": 0.7}),
    ],
)
def test_models_are_the_same_bit_for_bit(classes, weight, parameters, monkeypatch):
    monkeypatch.setattr(learner, "_ROWS_WORTH_JOINING", 1000)
    kind, y = (BoostingClassifier, np.digitize(Y, [-3, 3])) if classes else (BoostingRegressor, Y)
    model = kind(n_estimators=5, early_stopping=False, n_jobs=1, random_state=0, **parameters)
    joint = model.fit(X, y, sample_weight=weight).model_.predict_raw(X)
    monkeypatch.setattr(TreeLearner, "_joint", lambda self, table: table)
    assert np.array_equal(joint, model.fit(X, y, sample_weight=weight).model_.predict_raw(X))


def bins(n, *n_values):
    """A table of one word in which all bins of some columns occur, but no missing values."""
    words = np.zeros((1, n), dtype=np.uint64)
    for k, size in enumerate(n_values):
        words[0] |= (np.arange(n) % size).astype(np.uint64) << np.uint64(8 * k)
    return words, np.array(n_values), 256


def test_columns_are_joined_where_this_halves_the_additions():
    assert joint_columns(*bins(2000, 16, 16, 16, 16)).n_codes.tolist() == [256, 256]
    assert joint_columns(*bins(2000, 2, 2, 2, 200)).n_codes.tolist() == [200, 8]
    assert joint_columns(*bins(2000, 17, 16, 16, 16)) is None
    assert joint_columns(*bins(2000, 200, 200, 2, 2)) is None
