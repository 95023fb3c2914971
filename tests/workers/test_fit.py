"""Any number of workers, with any partitions, saves the bytes of one process."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import median_absolute_error
from tests.cases import LOSSES, PLAIN, ids
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import DataWarning, InvalidParameter

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


def assert_same_bytes(model, X, y, weight, division, held_out=(None, None, None)):
    cuts, owners = division
    parts = partitions_of(X, y, weight, cuts)
    held = () if held_out[0] is None else partitions_of(*held_out, cuts=[7, 7])
    names = ("X_val", "y_val", "sample_weight_val")
    alone = saved(clone(model).fit(X, y, weight, **dict(zip(names, held_out, strict=True))))
    together = fit_together(model, parts, owners[: len(parts)], held)
    assert {saved(one) for one in together} == {alone}


@losses
@settings(max_examples=2, deadline=None)
@example(division=([81, 85], [0, 1, 0, 0, 0, 0, 0]), weights="fractions")  # few rows of one
@given(division=divisions, weights=st.sampled_from(["none", "whole", "fractions"]))
def test_every_loss(loss, division, weights):
    model = loss.build(**PLAIN | {"n_estimators": 3, "random_state": 0})
    X, y, weight = draw(loss, 160, weights)
    if loss.make().divides_rows:
        assert_same_bytes(model, X, y, weight, division)
        return
    with pytest.raises(InvalidParameter, match=r"set divides_rows = True"):
        fit_together(model, partitions_of(X, y, weight, [80]), [0, 1])


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@example(
    division=([81, 85], [0, 1, 0, 0, 0, 0, 0]),
    parameters={"growth": "symmetric", "min_samples_leaf": 3},
    name="log_loss-2",
    weights="fractions",
)
@given(
    division=divisions,
    parameters=st.sampled_from(
        [
            {"multi_output": "shared"},
            {"monotonic_cst": [1, 0, 0]},
            {"categorical_features": [1], "target_encoding": False},
            {"max_bins": 8, "max_features": 0.5},
            {"line_search": True},
            {"growth": "symmetric", "max_features": 0.7},
            {"growth": "symmetric", "multi_output": "shared", "l2_regularization": 1.0},
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
    model = loss.build(**PLAIN | {"learner": "tree", "n_estimators": 3} | parameters)
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
    model.set_params(early_stopping=True, learner="tree")
    held = X[:30].reset_index(drop=True), y[:30]
    weight = np.arange(30) % 3.0
    for division, of_held in [(([40, 40, 45], [0, 1, 2, 0]), None), (([5], [1, 0]), weight)]:
        assert_same_bytes(model, X[30:], y[30:], None, division, (*held, of_held))


def test_folds_without_rows_on_a_worker():
    """A worker of three rows has none of some folds; the others exchange messages about them."""
    X = np.random.default_rng(4).normal(size=(60, 2))
    model = BoostingRegressor(**PLAIN | {"n_estimators": 4, "random_state": 0})
    model.set_params(early_stopping=True, cv_folds=5, learner="tree")
    for cut in (3, 57):
        assert_same_bytes(model, X, X[:, 0] * X[:, 1], None, ([cut], [0, 1]))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_parities_of_balanced_columns(loss):
    """What is true of the equal rows of all workers settles the sample and the least leaf."""
    X = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (30, 1))
    y, division = X.sum(axis=1) % 2, ([3, 50], [0, 1, 0])
    model = BoostingRegressor(loss, n_estimators=5, early_stopping=False, random_state=0)
    assert_same_bytes(model, X, y, None, division)
    (together, *_) = fit_together(model, partitions_of(X, y, None, division[0]), division[1])
    assert (together.resolved_.subsample, together.resolved_.min_samples_leaf) == (0.9, 5)


def test_classes_that_a_worker_never_sees():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(90, 3)), np.repeat(["a", "b", "c"], 30)
    model = BoostingClassifier(**PLAIN | {"learner": "tree", "n_estimators": 3})
    for parameters in ({}, {"early_stopping": True, "cv_folds": 2}):
        assert_same_bytes(clone(model).set_params(**parameters), X, y, None, ([30, 60], [0, 1, 2]))


METRICS = [
    ("squared_error-2", ["mae", "rmse", "r2"]),
    ("gamma", ["mape", median_absolute_error]),
    ("log_loss-2", ["auc", "log_loss", "brier"]),
    ("log_loss-3", ["balanced_accuracy", "accuracy", "average_precision"]),
]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    division=divisions,
    case=st.sampled_from(METRICS),
    folds=st.sampled_from([1, 3]),
    weights=st.sampled_from(["none", "whole"]),
)
def test_metrics_of_held_out_rows(division, case, folds, weights):
    """Sums over rows are exact, and other metrics are computed from the rows of all workers."""
    name, metrics = case
    (loss,) = [one for one in LOSSES if one.id == name]
    X, y, weight = draw(loss, 160, weights)
    held = {"early_stopping": True, "cv_folds": folds, "validation_fraction": 0.3}
    model = loss.build(**PLAIN | {"n_estimators": 3, "random_state": 3} | held)
    if weights == "whole":
        metrics = [m for m in metrics if not callable(m)]
    assert_same_bytes(model.set_params(eval_metric=metrics), X, y, weight, division)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    division=divisions,
    parameters=st.sampled_from(
        [{"target_encoding": True}, {}, {"early_stopping": True, "cv_folds": 2}]
    ),
    kind=st.sampled_from(["numbers", "missing", "two classes", "classes"]),
    weights=st.sampled_from([None, "fractions"]),
)
def test_many_categories(division, parameters, kind, weights):
    """Target encoding, pairs of columns, and levels that only one worker has."""
    rng = np.random.default_rng(7)
    n = 160
    X = pd.DataFrame(
        {
            "a": rng.choice([f"level {k}" for k in range(50)], size=n),
            "b": rng.choice(list("pqrs"), size=n),
            "c": rng.normal(size=n),
        }
    )
    X.loc[rng.uniform(size=n) < 0.1, "b"] = None
    score = rng.normal(size=n) + (X["a"] < "level 3")
    model = BoostingClassifier if "classes" in kind else BoostingRegressor
    y = np.digitize(score, [0.5] if kind == "two classes" else np.linspace(-1, 2, 6))
    if model is BoostingRegressor:
        y = np.stack([score, 2 * score], axis=1)
        y[:40, 1] = np.nan if kind == "missing" else 1.0
    weight = None if weights is None else rng.uniform(size=n)
    fit = model(**PLAIN | {"learner": "tree", "n_estimators": 2, "random_state": 1} | parameters)
    assert_same_bytes(fit, X, y, weight, division)


def test_more_levels_than_bins():
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"a": [f"level {k}" for k in rng.integers(0, 400, size=900)]})
    y = rng.normal(size=900)
    model = BoostingRegressor(**PLAIN | {"n_estimators": 2, "target_encoding": False})
    assert_same_bytes(model.set_params(random_state=0), X, y, None, ([300, 700], [0, 1, 0]))


@pytest.mark.parametrize("weights", [None, "fractions"])
def test_random_rounding_and_the_sample_for_bins(weights):
    """Large tables round at random by row numbers, and find bins from a sample."""
    rng, n = np.random.default_rng(2), 210_000
    X, weight = rng.normal(size=(n, 3)), None if weights is None else rng.uniform(size=n)
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    model = BoostingClassifier(**PLAIN | {"n_estimators": 3, "random_state": 1, "subsample": 0.7})
    assert_same_bytes(model, X, y, weight, ([40_000, 90_000, 90_000], [0, 1, 2, 0]))


@given(
    division=divisions,
    name=st.sampled_from(["poisson", "log_loss-2", "absolute_error", "squared_error-2", "hinge-2"]),
    weights=st.sampled_from(["none", "whole"]),
    early=st.booleans(),
)
def test_offsets(division, name, weights, early):
    (loss,) = [one for one in LOSSES if one.id == name]
    X, y, weight = draw(loss, 160, weights)
    model = loss.build(**PLAIN | {"n_estimators": 3, "random_state": 3, "early_stopping": early})
    offset = np.random.default_rng(0).normal(size=(160, 2 if name.endswith("error-2") else 1))
    alone = saved(clone(model).fit(X, y, weight, offset=offset))
    cuts, owners = division
    parts = partitions_of(X, y, weight, cuts, offset)
    together = fit_together(model, parts, owners[: len(parts)])
    assert {saved(one) for one in together} == {alone}


@given(division=divisions)
@example(division=([160], [0, 1, 0, 0, 0, 0, 0]))  # no rows of one
def test_exposures_are_found_by_all_workers(division):
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(160, 2)), rng.uniform(0.1, 9, 160)
    y = rng.poisson(40 * exposure).astype(float)
    model = BoostingRegressor("poisson", **PLAIN | {"n_estimators": 2, "learner": "tree"})
    cuts, owners = division
    with pytest.warns(DataWarning, match="pass the logarithms of exposures"):
        alone = saved(clone(model).fit(X, y, offset=exposure))
    parts = partitions_of(X, y, None, cuts, exposure[:, None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        together = fit_together(model, parts, owners[: len(parts)])
    assert {saved(one) for one in together} == {alone}
    told = {str(one.message) for one in caught if one.category is DataWarning}
    assert len(told) == 1
    assert "pass the logarithms of exposures" in told.pop()
