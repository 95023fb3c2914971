"""Any number of workers, with any partitions, saves the bytes of one process."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.cases import LOSSES, PLAIN, ids
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingClassifier
from hilboost.learners.tree import binning, packing

losses = pytest.mark.parametrize("loss", LOSSES, ids=ids(LOSSES))
divisions = st.tuples(
    st.lists(st.integers(0, 160), max_size=6), st.lists(st.integers(0, 4), min_size=7, max_size=7)
)


def draw(loss, n, weights="none", d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = loss.target(rng, n).y
    X = np.round(rng.normal(size=(n, d)), 1)
    X[:, 0] += np.round(y[:, 0])
    X[rng.uniform(size=(n, d)) < 0.05] = np.nan
    weight = {
        "none": None,
        "whole": rng.integers(0, 4, size=n).astype(float),
        "fractions": 10 ** rng.uniform(-3, 1, size=n),
    }[weights]
    return X, loss.labels(y), weight


def assert_same_bytes(model, X, y, weight, division, held_out=None):
    cuts, owners = division
    parts = partitions_of(X, y, weight, cuts)
    held = () if held_out is None else partitions_of(*held_out, cuts=[7, 7])
    X_val, y_val = (None, None) if held_out is None else held_out
    alone = saved(clone(model).fit(X, y, weight, X_val=X_val, y_val=y_val))
    together = fit_together(model, parts, owners[: len(parts)], held)
    assert {saved(one) for one in together} == {alone}


@losses
@settings(max_examples=3, deadline=None)
@given(division=divisions, weights=st.sampled_from(["none", "whole", "fractions"]))
def test_every_loss(loss, division, weights):
    model = loss.build(**PLAIN | {"n_estimators": 3, "random_state": 0})
    assert_same_bytes(model, *draw(loss, 160, weights), division)


@settings(max_examples=12, deadline=None)
@given(
    division=divisions,
    parameters=st.sampled_from(
        [
            {"multi_output": "shared"},
            {"monotonic_cst": [1, 0, 0]},
            {"categorical_features": [1], "target_encoding": False},
            {"max_bins": 8, "max_features": 0.5},
            {"line_search": True},
            {"subsample": 0.6},
            {"bootstrap": True, "subsample": 0.8},
            {"early_stopping": True, "cv_folds": 1, "validation_fraction": 0.3},
            {"early_stopping": True, "cv_folds": 3, "subsample": 0.7},
            {"early_stopping": True, "cv_folds": 2, "bootstrap": True},
        ]
    ),
    name=st.sampled_from(["squared_error-2", "huber", "log_loss-2", "log_loss-3", "gamma"]),
    weights=st.sampled_from(["none", "whole", "fractions"]),
)
def test_every_kind_of_fit(division, parameters, name, weights):
    (loss,) = [case for case in LOSSES if case.id == name]
    X, y, weight = draw(loss, 160, weights)
    model = loss.build(**PLAIN | {"n_estimators": 3, "random_state": 3} | parameters)
    if "3" in name and "monotonic_cst" in parameters:
        model.set_params(monotonic_cst=None)
    assert_same_bytes(model, X, y, weight, division)


def test_validation_rows_and_categories():
    rng = np.random.default_rng(5)
    n = 150
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(list("pqrs"), size=n)})
    X.loc[rng.uniform(size=n) < 0.1, "b"] = None
    y = np.round(X["a"].to_numpy() + (X["b"] == "p"), 1)
    y = np.where(y > 0.3, "yes", "no")
    model = BoostingClassifier(**PLAIN | {"n_estimators": 8, "random_state": 1})
    model.set_params(early_stopping=True)
    held = X[:30].reset_index(drop=True), y[:30]
    for division in [([40, 40, 45], [0, 1, 2, 0]), ([5], [1, 0])]:
        assert_same_bytes(model, X[30:], y[30:], None, division, held)


@pytest.mark.parametrize("weights", [None, "fractions"])
def test_random_rounding_and_the_sample_for_bins(weights, monkeypatch):
    """Large tables round at random by row numbers, and find bins from a sample."""
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 1000)
    monkeypatch.setattr(packing, "_MOST_ROWS_EXACT", 500)
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(4000, 3)), None if weights is None else rng.uniform(size=4000)
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    model = BoostingClassifier(**PLAIN | {"n_estimators": 3, "random_state": 1, "subsample": 0.7})
    assert_same_bytes(model, X, y, weight, ([700, 1800, 1800], [0, 1, 2, 0]))
