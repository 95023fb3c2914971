"""New leaf values: those of the fit for the same rows, a mixture for others, and refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tests.cases import PLAIN
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRanker, BoostingRegressor, BoostingSurvival
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
X[RNG.uniform(size=X.shape) < 0.05] = np.nan
Y = np.nan_to_num(X[:, 0]) + np.sin(3 * np.nan_to_num(X[:, 1])) + 0.1 * RNG.normal(size=300)
GROUPED = {name: PLAIN[name] for name in PLAIN if name != "multi_output"}
QUERY = {"groups": np.arange(300) // 10}
MODELS = {
    "squared": (BoostingRegressor(**PLAIN), 1000 * Y, {}),
    "poisson": (BoostingRegressor("poisson", **PLAIN), np.exp(Y), {}),
    "absolute": (BoostingRegressor("absolute_error", **PLAIN), Y, {}),
    "huber": (BoostingRegressor("huber", **PLAIN), Y, {}),
    "shared": (
        BoostingRegressor(**PLAIN | {"multi_output": "shared"}),
        np.column_stack([Y, -(Y**2)]),
        {},
    ),
    "two": (BoostingClassifier(**PLAIN | {"l2_regularization": 2.0}), Y > 0, {}),
    "three": (BoostingClassifier(**PLAIN), np.digitize(Y, [-0.5, 0.5]), {}),
    "ranking": (BoostingRanker("query_rmse", **GROUPED), Y, QUERY),
    "lambdarank": (BoostingRanker(**GROUPED), np.digitize(Y, [-0.5, 0.5]), QUERY),
}
models = pytest.mark.parametrize("name", MODELS)


@models
def test_the_same_rows_give_the_same_leaves(name):
    model, y, given = MODELS[name]
    model = model.fit(X, y, **given)
    before = model.predict_raw(X)
    for keep in (0.0, 0.5, 1.0):
        again = model.refit_leaves(X, y, keep=keep, **given)
        scale = np.abs(before).max()
        np.testing.assert_allclose(again.predict_raw(X), before, rtol=1e-9, atol=1e-9 * scale)
    assert again is not model
    np.testing.assert_array_equal(model.predict_raw(X), before)


@models
def test_weights_are_repetition_and_order_has_no_effect(name):
    model, y, given = MODELS[name]
    model = model.fit(X, y, **given)
    half = np.arange(150, 300)
    times = RNG.integers(1, 4, size=30)[np.arange(300) // 10]
    groups = {"groups": given["groups"][half]} if given else {}
    found = model.refit_leaves(X[half], y[half], times[half], **groups).predict_raw(X)
    if not given:
        rows = RNG.permutation(np.repeat(half, times[half]))
        np.testing.assert_array_equal(model.refit_leaves(X[rows], y[rows]).predict_raw(X), found)
    assert np.abs(found - model.predict_raw(X)).max() > 0


def test_new_rows_move_the_predictions():
    model = BoostingRegressor(**PLAIN | {"n_estimators": 100}).fit(X, Y)
    moved = model.refit_leaves(X, Y + 5.0, keep=0.0)
    np.testing.assert_allclose(moved.predict(X), model.predict(X) + 5.0, atol=1e-9)
    between = model.refit_leaves(X, Y + 5.0, keep=0.9)
    assert 0 < (between.predict(X) - model.predict(X)).mean() < 5.0
    far = np.where(np.isnan(X), X, X + 100.0)
    same = model.refit_leaves(far[:3], Y[:3], keep=0.0)  # most leaves receive no row
    trees = [stage.terms[0].model for stage in model.model_.stages]
    others = [stage.terms[0].model for stage in same.model_.stages]
    kept = [(a.values == b.values).mean() for a, b in zip(trees, others, strict=True)]
    assert min(kept) >= 0.5


def test_ensembles_categories_and_files():
    frame = {"a": X[:, 0], "b": np.array(["x", "y", "z"])[RNG.integers(3, size=300)]}
    table = pd.DataFrame(frame)
    early = {"learner": "tree", "early_stopping": True, "cv_folds": 2, "n_estimators": 20}
    model = BoostingRegressor(**PLAIN | early).fit(table, Y)
    loaded = reloaded(model)
    found = model.refit_leaves(table[:100], Y[:100] + 3)
    assert (found.predict(table) - model.predict(table)).mean() > 1
    np.testing.assert_array_equal(
        loaded.refit_leaves(table[:100], Y[:100] + 3).predict(table), found.predict(table)
    )


def test_stages_that_a_line_search_has_made_zero_remain():
    with pytest.warns(UserWarning, match="min_samples_leaf=2 allows no split of 3 rows"):
        model = BoostingRegressor("huber", line_search=True, **PLAIN).fit(X[:3], np.ones(3))
    again = model.refit_leaves(X[:3], np.arange(3.0), keep=0.0)
    np.testing.assert_array_equal(again.predict(X[:3]), np.ones(3))


def test_refusals():
    with pytest.raises(NotFittedError):
        BoostingRegressor().refit_leaves(X, Y)
    for keep in (2, np.nan, "half", None):
        with pytest.raises(InvalidParameter, match="keep must be a number between 0 and 1; got"):
            BoostingRegressor(**PLAIN).fit(X, Y).refit_leaves(X, Y, keep=keep)
    Z, linear = np.nan_to_num(X), BoostingRegressor(learner="linear", n_estimators=2)
    linear.fit(Z, Y)
    with pytest.raises(IncompatibleParts, match="requires a model of trees"):
        linear.refit_leaves(Z, Y)
    with pytest.raises(IncompatibleParts, match="does not support monotonic_cst"):
        BoostingRegressor(**PLAIN, monotonic_cst=[1, 0, 0, 0]).fit(X, Y).refit_leaves(X, Y)


@pytest.mark.parametrize("loss", ["cox", "aft", "discrete_hazard"])
def test_survival_models_have_the_hazards_of_the_new_rows(loss):
    known = np.random.default_rng(0).uniform(size=300) < 0.8
    times = np.column_stack([np.exp(Y), np.where(known, np.exp(Y), np.inf)])
    given = {"entry": 0.2 * np.exp(Y), "strata": np.arange(300) % 2} if loss == "cox" else {}
    model, at = BoostingSurvival(loss, **GROUPED).fit(X, times, **given), [0.5, 1.0, 2.0]
    strata = {name: value for name, value in given.items() if name == "strata"}
    before = model.predict_survival_function(X, at, **strata)
    for keep in (0.0, 0.5, 1.0):
        again = model.refit_leaves(X, times, keep=keep, **given)
        found = again.predict_survival_function(X, at, **strata)
        np.testing.assert_allclose(found, before, rtol=1e-6, atol=1e-6)
    if loss == "discrete_hazard":  # whose intervals remain the same
        return
    late = given | ({"entry": 3 * given["entry"]} if given else {})
    later = model.refit_leaves(X, 3 * times, keep=0.0, **late)
    found = later.predict_survival_function(X, np.multiply(3, at), **strata)
    np.testing.assert_allclose(found, before, atol=0.02)
    np.testing.assert_array_equal(
        reloaded(later).predict_survival_function(X, np.multiply(3, at), **strata), found
    )
    if loss == "cox":
        censored = np.column_stack([np.exp(Y), np.full(300, np.inf)])
        with pytest.raises(InvalidData, match="contains no event"):
            model.refit_leaves(X, censored, **given)
