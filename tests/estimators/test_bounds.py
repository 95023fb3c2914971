"""Fits to censored and truncated targets: truth, forms of bounds, scores and refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import norm, truncnorm
from sklearn.model_selection import cross_val_score
from tests.cases import DISTRIBUTIONS, PLAIN, ids
from tests.reloaded import reloaded

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
)
from hilboost.core.errors import InvalidData
from hilboost.metrics import CRPS, FunctionMetric, LogScore

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 3))
Y = np.sin(3 * X[:, 0]) + 0.5 * np.exp(0.5 * X[:, 1]) * RNG.normal(size=400)
CONVERGED = PLAIN | {
    "learner": "tree",
    "n_estimators": 300,
    "min_samples_leaf": 1,
    "l2_regularization": 0,
    "early_stopping": False,
}
CONTINUOUS = [case for case in DISTRIBUTIONS if case.make().support != "counts"]


def bounds(lower, upper, **more):
    columns = {"lower": lower, "upper": upper, **more}
    found = np.empty(len(lower), dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        found[name] = values
    return found


CENSORED = bounds(np.minimum(Y, 0.7), np.where(Y > 0.7, np.inf, Y))
MODEL = BoostingRegressor("normal", **PLAIN).fit(X, CENSORED)


def log_likelihood(y, location, log_scale):
    """The likelihood of Tobin's model, written down again."""
    scale = np.exp(log_scale)
    low, high = (y["lower"] - location) / scale, (y["upper"] - location) / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.log(norm.cdf(high) - norm.cdf(low))
    inside = np.where(np.isinf(high), log_ndtr(-low), inside)
    return np.where(low == high, norm.logpdf(low) - log_scale, inside)


@pytest.mark.slow
def test_levels_of_a_column_have_the_maximum_likelihood():
    """Trees that fit each level of a column alone agree with an optimizer of Tobin's model."""
    level = RNG.integers(3, size=900)
    y = level + np.array([1.0, 0.5, 2.0])[level] * RNG.normal(size=900)
    kind = RNG.integers(3, size=900)
    lower = np.select([kind == 0, kind == 1], [y, np.minimum(y, 1.5)], np.floor(y))
    upper = np.select([kind == 0, kind == 1], [y, np.where(y > 1.5, np.inf, y)], np.ceil(y))
    given = bounds(lower, upper)
    model = BoostingRegressor("normal", **CONVERGED).fit(level[:, None], given)
    found = model.predict_raw(np.arange(3.0)[:, None])
    for k in range(3):
        own = given[level == k]
        best = minimize(
            lambda p, own=own: -log_likelihood(own, *p).sum(),
            found[k] + 0.1,
            method="Nelder-Mead",
            options={"xatol": 1e-7, "fatol": 1e-10},
        )
        np.testing.assert_allclose(found[k], best.x, atol=1e-4)


def test_a_truncated_sample_has_the_parameters_of_all_rows():
    """Rows below an entry of their own are not in the table."""
    entry = np.array([-1.0, 0.5])[RNG.integers(2, size=6000)]
    y = 1 + 0.8 * RNG.normal(size=6000)
    seen = (y > entry) & (y < 3)
    given = bounds(y[seen], y[seen], entry=entry[seen], limit=np.full(seen.sum(), 3.0))
    model = BoostingRegressor("normal", **PLAIN).fit(np.zeros((len(given), 1)), given)
    location, log_scale = model.predict_raw(np.zeros((1, 1)))[0]
    np.testing.assert_allclose([location, np.exp(log_scale)], [1, 0.8], atol=0.04)
    low, high = (given["entry"] - location) / 0.8, (3 - location) / 0.8
    expected = truncnorm(low, high, location, 0.8).logpdf(y[seen])
    scores = model.predict_distribution(np.zeros((len(given), 1))).log_score(given)
    np.testing.assert_allclose(scores.mean(), -expected.mean(), atol=2e-3)


@pytest.mark.parametrize("case", CONTINUOUS, ids=ids(CONTINUOUS))
def test_censored_rows_are_better_than_numbers_in_their_place(case):
    y = case.draw(np.random.default_rng(1), 300)[:, 0]
    rows = np.column_stack([y + 0.1 * np.std(y) * RNG.normal(size=300), RNG.normal(size=300)])
    end = np.quantile(y, 0.6)
    given = bounds(np.minimum(y, end), np.where(y > end, np.inf, y))
    found = BoostingRegressor(case.name, **PLAIN).fit(rows, given).predict_distribution(rows)
    naive = BoostingRegressor(case.name, **PLAIN).fit(rows, np.minimum(y, end))
    other = naive.predict_distribution(rows)
    assert found.log_score(given).mean() < other.log_score(given).mean()
    assert found.mean[y > end].mean() > other.mean[y > end].mean()


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_does_not_matter(unit):
    given = bounds(CENSORED["lower"] * unit, CENSORED["upper"] * unit)
    found = BoostingRegressor("normal", **PLAIN).fit(X, given).predict_distribution(X)
    np.testing.assert_allclose(found.mean, MODEL.predict(X) * unit, rtol=1e-4, atol=1e-4 * unit)


def test_exact_bounds_give_the_ordinary_fit_bit_for_bit():
    early = PLAIN | {"early_stopping": True, "cv_folds": 3}
    expected = BoostingRegressor("normal", **early).fit(X, Y)
    found = BoostingRegressor("normal", **early).fit(X, bounds(Y, Y))
    np.testing.assert_array_equal(found.predict_raw(X), expected.predict_raw(X))
    np.testing.assert_array_equal(found.predict_interval(X), expected.predict_interval(X))


def test_weights_repeat_rows():
    weight = RNG.integers(0, 3, size=400)
    found = BoostingRegressor("normal", **PLAIN).fit(X, CENSORED, weight)
    rows = np.repeat(np.arange(400), weight)
    expected = BoostingRegressor("normal", **PLAIN).fit(X[rows], CENSORED[rows])
    np.testing.assert_allclose(found.predict_raw(X), expected.predict_raw(X), atol=1e-8)


def test_forms_of_bounds_give_the_same_model():
    expected = MODEL.predict_raw(X)
    frame = pd.DataFrame({"lower": CENSORED["lower"], "upper": CENSORED["upper"]})
    missing = frame.replace(np.inf, np.nan)
    far = frame.assign(entry=-np.inf, limit=np.inf)
    event = np.empty(400, dtype=[("event", bool), ("time", float)])
    event["event"], event["time"] = Y <= 0.7, np.minimum(Y, 0.7)
    for given in (frame, missing, far, event, pd.DataFrame(event)):
        found = BoostingRegressor("normal", **PLAIN).fit(X, given)
        np.testing.assert_array_equal(found.predict_raw(X), expected)


def test_scores_of_censored_rows():
    found = MODEL.predict_distribution(X)
    raw = MODEL.predict_raw(X)
    expected = -log_likelihood(CENSORED, raw[:, 0], raw[:, 1])
    np.testing.assert_allclose(found.log_score(CENSORED), expected, rtol=1e-9)
    np.testing.assert_allclose(MODEL.history_.train[-1], expected.mean())
    np.testing.assert_allclose(LogScore()(MODEL, X, CENSORED), -expected.mean())
    scores = cross_val_score(MODEL, X, CENSORED, cv=3, scoring=LogScore())
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(reloaded(MODEL).predict_raw(X), raw)


@pytest.mark.parametrize("held_out", [CENSORED[300:], Y[300:]])
def test_validation_rows_may_be_censored_or_not(held_out):
    for given in (CENSORED[:300], Y[:300]):
        model = BoostingRegressor("normal", **PLAIN | {"eval_metric": "log_score"})
        model.fit(X[:300], given, X_val=X[300:], y_val=held_out)
        scores = model.first_stages(0).predict_distribution(X[300:]).log_score(held_out)
        np.testing.assert_allclose(model.history_.validation[0], scores.mean())
        metric = model.history_.metrics["log_score"]
        np.testing.assert_allclose(metric, model.history_.validation)


@pytest.mark.slow
def test_learners_refits_and_continued_fits_take_bounds():
    small = PLAIN | {"n_estimators": 3}
    for learner in ("tree", "linear", "kernel"):
        model = BoostingRegressor("normal", **small | {"learner": learner}).fit(X, CENSORED)
        before = model.first_stages(0).predict_distribution(X).log_score(CENSORED).mean()
        assert model.predict_distribution(X).log_score(CENSORED).mean() < before
    model = KernelBoostingRegressor("normal", random_state=0).fit(X, CENSORED)
    assert np.isfinite(model.predict_distribution(X).log_score(CENSORED)).all()
    assert np.isfinite(MODEL.refit_leaves(X, CENSORED).predict_raw(X)).all()
    warm = BoostingRegressor("normal", **small | {"warm_start": True, "learner": "tree"})
    warm.fit(X, CENSORED).set_params(n_estimators=6).fit(X, CENSORED)
    once = BoostingRegressor("normal", **small | {"learner": "tree", "n_estimators": 6})
    np.testing.assert_array_equal(warm.predict_raw(X), once.fit(X, CENSORED).predict_raw(X))


def test_levels_of_categories_are_encoded_by_steps():
    levels = np.array([f"level {k:02d}" for k in range(50)])
    place = RNG.integers(50, size=1000)
    y = place / 10 + RNG.normal(size=1000)
    frame = pd.DataFrame({"level": levels[place]})
    given = bounds(np.where(y < 2, -np.inf, y), np.maximum(y, 2))
    model = BoostingRegressor("normal", **PLAIN | {"learner": "tree"}).fit(frame, given)
    found = model.predict(pd.DataFrame({"level": levels}))
    assert np.corrcoef(found, np.arange(50))[0, 1] > 0.9


def refused(message, fit, *arguments):
    with pytest.raises(InvalidData, match=message):
        fit(*arguments)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((2, 1, -np.inf, np.inf), "lower bound is above the upper one; exchange them"),
        ((np.nan, 1, -np.inf, np.inf), "lower bound is missing; pass -inf"),
        ((0, 1, np.nan, np.inf), "entry or limit is missing"),
        ((-np.inf, np.inf, 0, 1), "no bound is finite; remove the row"),
        ((0, 1, 2, np.inf), "not above entry and up to limit"),
        ((1, 1, 1, np.inf), "not above entry and up to limit"),
        ((3, 4, -np.inf, 3), "not above entry and up to limit"),
    ],
)
def test_impossible_rows_are_refused(row, message):
    ends = np.full(400, np.inf)
    given = bounds(Y, Y, entry=-ends, limit=ends)
    given[7] = row
    refused(rf"in row 7 of y .*{message}", BoostingRegressor("normal").fit, X, given)


def test_fields_that_are_no_bounds_are_refused():
    fit = BoostingRegressor("normal").fit
    low = np.zeros(400, dtype=[("low", float), ("upper", float)])
    refused("censored targets have the fields", fit, X, low)
    refused("inconsistent numbers of rows", fit, X, CENSORED[:9])
    text = np.zeros(400, dtype=[("lower", "U3"), ("upper", float)])
    refused("must hold one number for each row", fit, X, text)
    event = np.zeros(400, dtype=[("event", int), ("time", float)])
    event["event"][3] = 2
    refused("in row 3 of y, event is 2", fit, X, event)


def test_a_likelihood_without_a_maximum_is_refused():
    never = bounds(Y, np.full(400, np.inf))
    refused("all rows of y are right-censored", BoostingRegressor("normal").fit, X, never)
    counts = bounds(np.floor(np.exp(Y)), np.floor(np.exp(Y)) + 1)
    fit = BoostingRegressor("negative_binomial").fit
    refused("requires exact counts as y; bounds require a continuous", fit, X, counts)


def test_other_losses_and_scores_refuse_bounds():
    for loss in ("squared_error", "quantile", "poisson"):
        message = f"loss='{loss}' requires numbers as y; censored or truncated"
        refused(message, BoostingRegressor(loss).fit, X, CENSORED)
    found = MODEL.predict_distribution(X)
    for score in (found.crps, found.interval_score, found.pit):
        refused("censored rows have a log_score", score, CENSORED)
    for method in (MODEL.score, MODEL.calibrate, MODEL.report, CRPS().__call__):
        given = (MODEL, X, CENSORED) if method.__name__ == "__call__" else (X, CENSORED)
        refused("censored rows have a log_score", method, *given)
    own = FunctionMetric(lambda y, predicted: 0.0, name="own")
    for metric in ("crps", "interval_score", "rmse", "r2", own):
        fit = BoostingRegressor("normal", **PLAIN | {"eval_metric": metric}).fit
        refused("y holds bounds of targets; set eval_metric='log_score'", fit, X, CENSORED)
        with pytest.raises(InvalidData, match="y holds bounds of targets"):
            fit(X, Y, X_val=X + 1, y_val=CENSORED)


def test_bounds_are_not_classes_or_relevances():
    for model in (BoostingClassifier(), KernelBoostingClassifier()):
        refused(r"fields 'lower', 'upper', but must contain one class", model.fit, X, CENSORED)
    fit = partial(BoostingRanker().fit, groups=np.zeros(400))
    refused(r"one number for each row; pass a single field, such as y\['lower'\]", fit, X, CENSORED)
    model = BoostingClassifier(**PLAIN).fit(X, Y > 0)
    refused("must contain one class", model.score, X, CENSORED)
    calibrated = BoostingRegressor("normal", **PLAIN).fit(X, Y).calibrate(X[:50] + 1, Y[:50])
    found = calibrated.predict_distribution(X)
    refused("one number for each .* calibrated ones have them as .base", found.log_score, CENSORED)
    assert np.isfinite(found.base.log_score(CENSORED)).all()


def test_several_targets_with_these_names_remain_targets():
    frame = pd.DataFrame({"lower": Y, "upper": Y + 1})
    assert BoostingRegressor(**PLAIN).fit(X, frame).predict(X).shape == (400, 2)
    assert BoostingRegressor(**PLAIN).fit(X, frame).score(X, frame) > 0
