"""Permuted rows give permuted predictions, and the same model bit for bit."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.cases import LOSSES, PLAIN, assert_same_model, ids

from hilboost import BoostingRegressor

losses = pytest.mark.parametrize("loss", LOSSES, ids=ids(LOSSES))


def draw(loss, n, kind, d=3):
    rng = np.random.default_rng(n)
    y = loss.target(rng, n).y
    X = np.round(rng.normal(size=(n, d)), 1)  # some rows are equal
    X[:, 0] += np.round(y[:, 0])
    X[rng.uniform(size=(n, d)) < 0.05] = np.nan
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=n).astype(float),
        "fractions": 10 ** rng.uniform(-3, 1, size=n),
    }[kind]
    return rng.permutation(n), X, loss.labels(y), weight


def assert_same_in_any_order(model, order, X, y, weight):
    moved = clone(model).fit(X[order], y[order], None if weight is None else weight[order])
    model.fit(X, y, weight)
    assert_same_model(model, moved)
    np.testing.assert_array_equal(model.history_.train, moved.history_.train)
    np.testing.assert_array_equal(model.predict(X)[order], moved.predict(X[order]))


@losses
def test_every_loss(loss):
    kind = ("none", "whole", "fractions")[LOSSES.index(loss) % 3]
    model = loss.build(**PLAIN | {"n_estimators": 4})
    assert_same_in_any_order(model, *draw(loss, 211, kind))


@pytest.mark.parametrize(
    "parameters",
    [
        {"multi_output": "shared"},
        {"monotonic_cst": [1, 0, 0]},
        {"categorical_features": [1], "target_encoding": False},
        {"max_bins": 8},
        {"line_search": True},
    ],
    ids=["shared", "monotonic", "categories", "bins", "line-search"],
)
@pytest.mark.parametrize("name", ["squared_error-2", "huber", "log_loss-2"])
def test_every_kind_of_tree(name, parameters):
    (loss,) = [case for case in LOSSES if case.id == name]
    model = loss.build(**PLAIN | {"n_estimators": 4} | parameters)
    assert_same_in_any_order(model, *draw(loss, 160, "fractions"))


@losses
def test_a_whole_weight_repeats_the_row(loss):
    _, X, y, weight = draw(loss, 151, "whole")
    weight[0] = 1
    counts = weight.astype(int)
    line_search = "auto" if LOSSES.index(loss) % 2 else True
    model = loss.build(**PLAIN | {"n_estimators": 4, "line_search": line_search})
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    assert_same_model(weighted, repeated)
    np.testing.assert_array_equal(weighted.history_.train, repeated.history_.train)


def test_many_rows_in_several_blocks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_001, 8))
    y = X[:, 0] * X[:, 1] + np.exp(rng.normal(size=len(X)))
    order = rng.permutation(len(X))
    model = BoostingRegressor(**PLAIN | {"n_estimators": 2, "max_leaf_nodes": 31})
    assert_same_in_any_order(model.set_params(n_jobs=2), order, X, y, None)
