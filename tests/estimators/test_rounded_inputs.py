"""Columns that other formulas compute, equal but for rounding, give the same predictions."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)

FORMULAS = {
    "whole angle": lambda hour, period: 2 * np.pi * hour / period,
    "step first": lambda hour, period: hour * (2 * np.pi / period),
    "degrees": lambda hour, period: np.deg2rad(hour * (360 / period)),
    "further turns": lambda hour, period: 2 * np.pi * (hour / period + 3),
}


def circle(hour, period, formula):
    """Sine and cosine of the time of day, and a column without any rounding."""
    angle = FORMULAS[formula](hour, period)
    return np.column_stack([np.sin(angle), np.cos(angle), 1.0 * (hour < 5)])


def fitted(name, X, y, rng):
    """A model of the targets at the defaults, and its predictions."""
    if name == "classifier":
        model = BoostingClassifier(random_state=0).fit(X, y > np.median(y))
        return lambda table: model.predict_proba(table)[:, 1]
    if name == "ranker":
        model = BoostingRanker(random_state=0)
        return model.fit(X, np.digitize(y, [-0.7, 0.7]), groups=np.arange(len(y)) // 10).predict
    if name == "survival":
        times = np.zeros(len(y), dtype=[("event", bool), ("time", float)])
        times["event"], times["time"] = rng.random(len(y)) < 0.8, np.exp(y)
        return BoostingSurvival(random_state=0).fit(X, times).predict
    if name == "output kernel":
        model = OutputKernelBoostingRegressor(random_state=0)
        return model.fit(X, np.column_stack([y, -y])).predict
    if name == "forest":
        model = OutputKernelForestRegressor(n_estimators=10, random_state=0)
        return model.fit(X, np.column_stack([y, -y])).predict
    growth = {"growth": "symmetric"} if name == "symmetric" else {}
    return BoostingRegressor(**growth, random_state=0).fit(X, y).predict


NAMES = ["regressor", "symmetric", "classifier", "ranker", "survival", "output kernel", "forest"]


@given(
    st.sampled_from(NAMES),
    st.integers(0, 10**6),
    st.sampled_from([4, 7, 12, 24]),
    st.sampled_from([60, 120, 220]),
)
def test_predictions_do_not_depend_on_the_formula(name, seed, period, n):
    rng = np.random.default_rng(seed)
    hour = rng.integers(period, size=n)
    y = rng.normal(size=period)[hour] + 0.3 * rng.normal(size=n)
    formulas = list(FORMULAS)
    # Some rows are computed in one way, some in another.
    parts = [circle(hour, period, formula) for formula in formulas]
    X = np.choose(rng.integers(len(parts), size=n)[:, None], parts)
    predict = fitted(name, X, y, rng)
    expected = predict(parts[0])
    for part in parts[1:]:
        np.testing.assert_allclose(predict(part), expected, atol=1e-7 * np.abs(expected).max())


def test_features_of_another_formula_predict_as_well():
    rng = np.random.default_rng(0)
    hour = rng.integers(24, size=600)
    y = rng.normal(size=24)[hour] + 0.1 * rng.normal(size=600)
    table = partial(circle, hour, 24)
    model = BoostingRegressor(learner="tree", random_state=0).fit(table("whole angle"), y)
    assert model.score(table("whole angle"), y) > 0.97
    for formula in FORMULAS:
        np.testing.assert_array_equal(
            model.predict(table(formula)), model.predict(table("whole angle"))
        )


def test_numbers_that_were_float32_for_a_while():
    rng = np.random.default_rng(0)
    hour = rng.choice([0, 2, 4, 6, 8, 10, 12], size=600)
    X = circle(hour, 12, "whole angle")[:, [1]]
    X = X[np.abs(X[:, 0] - np.float32(X[:, 0])) < 1e-15]  # halves and ones
    y = X[:, 0] + rng.normal(size=len(X)) * 0.1
    model = BoostingRegressor(learner="tree", random_state=0).fit(X, y)
    in_between = X.astype(np.float32).astype(np.float64)
    assert (in_between != X).any()
    np.testing.assert_array_equal(model.predict(in_between), model.predict(X))
