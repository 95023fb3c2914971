"""Columns that other formulas compute, equal but for rounding, give the same predictions."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.table_estimators import ALL, GROUP, OF_TREES, fitted, predicted

from hilboost import BoostingRegressor

CONTINUOUS = ALL.keys() - {"votes"}  # which are decided by rounding where they are even
SHARE = max(1, settings.default.max_examples // 8)
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


def as_targets(kind, y, rng):
    """Targets of a kind from numbers (n,)."""
    if kind in ("classes", "labels"):
        return y > np.median(y)
    if kind == "grades":
        return np.digitize(y, [-0.7, 0.7])
    if kind == "counts":
        return rng.poisson(np.exp(y))
    if kind in ("positive", "times"):
        return np.exp(y)
    return np.column_stack([y, -y]) if kind == "vectors" else y


@pytest.mark.parametrize("name", sorted(CONTINUOUS))
@settings(max_examples=SHARE)
@given(st.integers(0, 10**6), st.sampled_from([4, 7, 12, 24]), st.sampled_from([60, 120, 220]))
def test_predictions_do_not_depend_on_the_formula(name, seed, period, n):
    rng = np.random.default_rng(seed)
    hour = rng.integers(period, size=n // GROUP * GROUP)
    y = rng.normal(size=period)[hour] + 0.3 * rng.normal(size=len(hour))
    # Some rows are computed in one way, some in another.
    parts = [circle(hour, period, formula) for formula in FORMULAS]
    X = np.choose(rng.integers(len(parts), size=len(hour))[:, None], parts)
    model = fitted(name, X, as_targets(ALL[name][0], y, rng))
    expected = predicted(name, model, parts[0])
    atol = (1e-7 if name in OF_TREES else 1e-5) * np.abs(expected).max()  # of its condition
    for part in parts[1:]:
        found = predicted(name, model, part)
        np.testing.assert_allclose(found, expected, atol=atol)


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
