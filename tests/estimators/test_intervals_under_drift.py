"""Intervals for data that drift: weights by recency, and levels that follow the coverage."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from tests.reloaded import reloaded

from hilboost import (
    AdaptiveIntervals,
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, shown

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + np.where(np.arange(N) < 200, 0.2, 2.0) * RNG.normal(size=N)
TRAIN, HELD, LATER = slice(0, 80), slice(80, 200), slice(200, N)
DAYS = np.datetime64("2024-01-01") + np.arange(120)


def tree(**given):
    parameters = {"learner": "tree", "n_estimators": 10, "early_stopping": False}
    return BoostingRegressor(**parameters | {"random_state": 0} | given).fit(X[TRAIN], Y[TRAIN])


MODEL = tree()


def calibrated(rows=HELD, **given):
    return tree().calibrate(X[rows], Y[rows], **given)


# Weights by recency


def test_a_threshold_is_the_weighted_quantile():
    model = calibrated(half_life=15)
    scores = np.abs(Y[HELD] - model.predict(X[HELD]))
    weight = 0.5 ** (np.arange(120)[::-1] / 15)
    order = np.argsort(scores)
    needed = 0.8 * (weight.sum() + 1)
    radius = scores[order][np.searchsorted(np.cumsum(weight[order]), needed)]
    low, high = model.predict_interval(X[:3], 0.8).T
    np.testing.assert_allclose((high - low) / 2, radius)


@given(st.permutations(range(120)), st.floats(1, 1e4), st.sampled_from([1.0, 3600.0, 1e-3]))
@settings(max_examples=20)
def test_times_replace_the_order_of_rows_in_any_unit(order, half_life, unit):
    rows = 80 + np.array(order)
    expected = calibrated(half_life=half_life).predict_interval(X[:5], 0.5)
    found = calibrated(rows, half_life=half_life * unit, time=rows * unit - 7)
    np.testing.assert_allclose(found.predict_interval(X[:5], 0.5), expected)


@pytest.mark.parametrize("half_life", [20, timedelta(days=20), np.timedelta64(480, "h")])
def test_dates(half_life):
    found = calibrated(half_life=half_life, time=DAYS).predict_interval(X[:5])
    assert np.array_equal(found, calibrated(half_life=20).predict_interval(X[:5]))


def test_rows_without_weight_keep_their_age():
    weight = (np.arange(120) % 3 > 0).astype(float)
    kept = np.flatnonzero(weight)
    found = calibrated(sample_weight=weight, half_life=20)
    again = calibrated(80 + kept, half_life=20, time=kept)
    assert np.array_equal(found.predict_interval(X[:5]), again.predict_interval(X[:5]))


def test_sets_of_classes_and_structures():
    y = (Y > 0).astype(int)
    model = BoostingClassifier(learner="tree", n_estimators=5, early_stopping=False)
    model.fit(X[TRAIN], y[TRAIN]).calibrate(X[HELD], y[HELD], half_life=30, time=DAYS)
    assert model.predict_set(X[:4]).shape == (4, 2)
    structured = OutputKernelBoostingRegressor(learner="ok3", n_estimators=5)
    structured.fit(X[TRAIN], Y[TRAIN, None]).calibrate(X[HELD], Y[HELD, None], half_life=30)
    assert len(structured.predict_set(X[:4])) == 4
    by_class = BoostingClassifier(learner="tree", n_estimators=5, early_stopping=False)
    by_class.fit(X[TRAIN], y[TRAIN]).calibrate(X[HELD], y[HELD], groups="class", half_life=60)
    assert by_class.predict_set(X[:4]).shape == (4, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"half_life": 0}, "half_life must be a positive number of rows, or a duration if time"),
        ({"half_life": "week"}, "half_life must be a positive number of rows"),
        ({"half_life": timedelta(3)}, "half_life must be a positive number of rows"),
        ({"half_life": 0, "time": DAYS}, "half_life is 0; set a positive duration"),
        ({"half_life": -1, "time": DAYS}, "half_life must be a positive duration; got -1"),
        ({"half_life": "week", "time": DAYS}, "half_life must be a positive duration; got 'week'"),
        ({"half_life": np.inf, "time": DAYS}, "half_life must be a positive duration; got inf"),
        ({"half_life": np.nan, "time": np.arange(120)}, "a positive duration; got nan"),
        ({"half_life": timedelta(3), "time": np.arange(120)}, "a duration, but time holds numbers"),
        ({"half_life": 3, "time": np.arange(7)}, "time must hold one value for each of the 120"),
        ({"time": DAYS}, "time has no effect on a calibration without half_life"),
    ],
)
def test_bad_half_lives(arguments, message):
    with pytest.raises((InvalidData, InvalidParameter), match=message):
        calibrated(**arguments)


def test_a_half_life_can_leave_too_few_rows():
    with pytest.raises(InvalidData, match="requires at least 9 calibration rows; got 4.8"):
        calibrated(half_life=3).predict_interval(X)


def test_a_short_half_life_leaves_a_file_that_can_be_read():
    model = calibrated(half_life=0.05)
    assert np.array_equal(reloaded(model).predict_interval(X, 0.4), model.predict_interval(X, 0.4))


# Adaptive levels


def test_what_is_printed():
    model = shown(MODEL)
    assert str(AdaptiveIntervals(calibrated())) == (
        f"AdaptiveIntervals({model}, coverage=0.9)\nlevel 0.9, 120 calibration rows"
    )
    found = AdaptiveIntervals(calibrated(), 0.8, step=0.1, half_life=30)
    found.update(X[LATER], Y[LATER] + 9)
    assert repr(found) == f"AdaptiveIntervals({model}, coverage=0.8, step=0.1, half_life=30)"
    assert str(found).endswith("\nlevel 0.88, 120 calibration rows")


@pytest.mark.slow
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.02, 0.1, 0.5]),
    st.sampled_from([0.5, 0.9]),
    st.sampled_from(["drift", "jumps", "adversary"]),
)
@settings(max_examples=15, deadline=None)
def test_shares_of_misses_are_bounded_for_any_targets(seed, step, coverage, kind):
    rng, missed, n_steps = np.random.default_rng(seed), [], 60
    intervals = AdaptiveIntervals(calibrated(), coverage, step=step)
    for k in range(n_steps):
        x = rng.normal(size=(1, 2))
        low, high = intervals.predict_interval(x)[0]
        y = rng.normal() * {"drift": k, "jumps": 10.0 ** rng.integers(-3, 9), "adversary": 1}[kind]
        if kind == "adversary" and np.isfinite(high) and k % 3:
            y = high + 1
        missed.append(not low <= y <= high)
        intervals.update(x, [y])
    bound = (max(coverage, 1 - coverage) + step) / (step * n_steps)
    assert abs(np.mean(missed) - (1 - coverage)) <= bound + 1e-9


def test_the_first_intervals_are_those_of_the_model():
    model = calibrated()
    intervals = AdaptiveIntervals(model, 0.8)
    expected = model.predict_interval(X, 0.8)
    np.testing.assert_allclose(intervals.predict_interval(X), expected)
    intervals.update(X[LATER], Y[LATER])
    assert intervals.level > 0.8
    np.testing.assert_allclose(model.predict_interval(X, 0.8), expected)  # the model is unchanged


def test_a_fixed_level_of_the_latest_rows():
    """Without steps, intervals are those of a calibration with the latest rows."""
    intervals = AdaptiveIntervals(calibrated(), step=0, half_life=50)
    for rows in np.split(np.arange(200, N), 4):
        intervals.update(X[rows], Y[rows])
    again = calibrated(slice(N - 120, N), half_life=50)
    np.testing.assert_allclose(intervals.predict_interval(X[:5]), again.predict_interval(X[:5]))
    assert intervals.level == 0.9


def test_intervals_of_a_fit_with_time_start_with_its_latest_scores():
    order = RNG.permutation(200)
    model = BoostingRegressor(learner="tree", n_estimators=10, subsample=1.0, random_state=0)
    sorted_rows = model.fit(X[:200], Y[:200], time=np.arange(200)).fitted_.calibration.scores
    model.fit(X[order], Y[order], time=order)
    np.testing.assert_allclose(model.fitted_.calibration.scores, sorted_rows)
    assert np.isfinite(AdaptiveIntervals(model).predict_interval(X)).all()


def test_coverage_returns_after_a_change():
    fixed, covered = calibrated(), []
    intervals = AdaptiveIntervals(fixed, step=0.1)
    for rows in np.split(np.arange(200, N), 20):
        low, high = intervals.predict_interval(X[rows]).T
        covered += list((low <= Y[rows]) & (Y[rows] <= high))
        intervals.update(X[rows], Y[rows])
    low, high = fixed.predict_interval(X[LATER]).T
    assert np.mean((low <= Y[LATER]) & (Y[LATER] <= high)) < 0.6
    assert np.mean(covered[20:]) > 0.75


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (KernelBoostingRegressor(kernel="gaussian", random_state=0), Y),
        (tree(loss="quantile", quantile=[0.05, 0.95]), Y),
        (tree(loss="normal"), Y),
        (BoostingRegressor("poisson", learner="tree", n_estimators=5), np.floor(np.exp(Y))),
    ],
    ids=["kernel", "quantiles", "normal", "poisson"],
)
def test_other_models(model, y):
    model.fit(X[TRAIN], y[TRAIN]).calibrate(X[HELD], y[HELD])
    intervals = AdaptiveIntervals(model, step=0.5)
    for _ in range(3):
        found = intervals.update(X[LATER], y[LATER]).predict_interval(X)
        assert (found[:, 0] <= found[:, 1]).all()
        assert model.loss != "poisson" or (found >= 0).all()


def test_levels_outside_of_the_range():
    intervals = AdaptiveIntervals(calibrated(), step=5)
    low, high = intervals.update(X[:3], [1e9] * 3).predict_interval(X).T
    assert intervals.level > 1
    assert (low == -np.inf).all()
    assert (high == np.inf).all()
    while intervals.level > 0:
        intervals.update(X[LATER], MODEL.predict(X[LATER]))
    low, high = intervals.predict_interval(X).T
    np.testing.assert_array_equal(low, high)
    assert np.isfinite(low).all()


def test_offsets():
    offset = np.full(N, 3.0)
    model = tree().fit(X[TRAIN], Y[TRAIN] + 3, offset=offset[TRAIN])
    model.calibrate(X[HELD], Y[HELD] + 3, offset=offset[HELD])
    intervals = AdaptiveIntervals(model).update(X[LATER], Y[LATER] + 3, offset=offset[LATER])
    found = intervals.predict_interval(X, offset=offset)
    expected = AdaptiveIntervals(calibrated()).update(X[LATER], Y[LATER]).predict_interval(X)
    np.testing.assert_allclose(found, expected + 3)


TWO = np.column_stack([Y, Y])
IN_FOLDS = BoostingRegressor(learner="tree", n_estimators=3, cv_folds=3).fit(X, Y)
BY_GROUP = calibrated(groups=np.arange(120) % 2)
OF_TWO = tree().fit(X, TWO).calibrate(X + 1, TWO)


@pytest.mark.parametrize(
    ("model", "parameters", "error", "message"),
    [
        (BoostingClassifier(), {}, InvalidType, "requires a regressor of hilboost with predict_in"),
        (BoostingRegressor(), {}, NotFittedError, "not fitted"),
        (MODEL, {}, InvalidData, "AdaptiveIntervals needs rows the model was not fitted to"),
        (calibrated(), {"coverage": 90}, InvalidParameter, "coverage must be between 0 and 1"),
        (calibrated(), {"step": "big"}, InvalidParameter, "step must be a positive number.*'big'"),
        (calibrated(), {"half_life": timedelta(3)}, InvalidParameter, "of rows; got datetime.tim"),
        (calibrated(), {"step": -1}, InvalidParameter, "step must be a positive number, or 0 for"),
        (calibrated(), {"half_life": 0}, InvalidParameter, "half_life must be a positive number"),
        (IN_FOLDS, {}, InvalidData, "the folds of the fit calibrated its members; call calibrate"),
        (BY_GROUP, {}, InvalidData, "one level for all rows, but the model was calibrated by"),
        (OF_TWO, {}, InvalidData, "follows the coverage of one target, but the model has 2; fit a"),
    ],
)
def test_bad_models_and_parameters(model, parameters, error, message):
    with pytest.raises(error, match=message):
        AdaptiveIntervals(model, **parameters)


def test_bad_targets_change_nothing():
    intervals = AdaptiveIntervals(calibrated())
    before = intervals.predict_interval(X)
    with pytest.raises(InvalidData):
        intervals.update(X[LATER], [np.nan] * 40)
    with pytest.raises(InvalidData):
        intervals.update(X[LATER], Y[:3])
    assert intervals.level == 0.9
    np.testing.assert_array_equal(intervals.predict_interval(X), before)
