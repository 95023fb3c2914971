"""Survival models of discrete hazards: competing causes, crossing hazards, files, repetition."""

import numpy as np
import pandas as pd
import pytest
from tests.cases import PLAIN, assert_same_model
from tests.reloaded import reloaded

from hilboost import BoostingSurvival
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.core.target import Target
from hilboost.model.survival import SurvivalCodec
from hilboost.report import facts, render
from hilboost.report.survival import Seen
from hilboost.validation.survival import SurvivalLabels

SHORT = {name: value for name, value in PLAIN.items() if name != "multi_output"}
SHORT |= {"min_samples_leaf": 5, "loss": "discrete_hazard", "n_intervals": 6}
GRID = np.array([0.5, 1.0, 2.0, 3.0])


def draw(n=400, seed=0):
    """Two causes, the first of which depends on the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    times = np.column_stack(
        [rng.exponential(np.exp(-X[:, 0])), rng.exponential(np.exp(X[:, 1])), rng.exponential(4, n)]
    )
    y = np.empty(n, dtype=[("cause", int), ("time", float)])
    y["cause"], y["time"] = (times.argmin(axis=1) + 1) % 3, times.min(axis=1)
    return X, y


X, Y = draw()
PAIRS = list(zip(Y["cause"] > 0, Y["time"], strict=True))
EITHER = np.array(PAIRS, dtype=[("e", "?"), ("t", "f8")])


def test_causes():
    model = BoostingSurvival(**SHORT | {"n_estimators": 40}).fit(X, Y)
    new, labels = draw(2000, seed=1)
    incidence = model.predict_cumulative_incidence_function(new, GRID)
    assert incidence.shape == (2000, 2, 4)
    survival = model.predict_survival_function(new, GRID)
    np.testing.assert_allclose(incidence.sum(axis=1) + survival, 1)
    for k, (column, sign) in enumerate([(0, 1), (1, -1)]):
        assert np.corrcoef(incidence[:, k, 2], sign * new[:, column])[0, 1] > 0.6
        assert incidence[:, k, 0].mean() == pytest.approx(0.34, abs=0.05)  # without censoring
    assert model.predict(new).shape == (2000,)
    assert model.score(new, labels) > 0.55
    function = model.predict_survival_function(new[:1])[0]
    np.testing.assert_array_equal(function.x, model.event_times_)


def test_reports_and_scores_count_events_of_any_cause():
    model = BoostingSurvival(**SHORT | {"n_estimators": 3}).fit(X, Y)
    assert model.score(X, Y) == model.score(X, EITHER)
    found = facts(model, X[:60], Y[:60])
    assert found["survival"]["n_causes"] == 2
    assert "scores and curves count events of any cause, unless a cause is named." in render(found)


def test_hazards_may_cross():
    """Events of one half are early, and those of the other half late, or follow a short time."""
    rng = np.random.default_rng(0)
    Z = rng.integers(2, size=(1000, 1)).astype(float)
    time = np.where(Z[:, 0] == 1, rng.weibull(5, 1000), rng.exponential(1, 1000))
    y = np.array([(True, t) for t in time], dtype=[("e", "?"), ("t", "f8")])
    times = np.linspace(0.2, 1.5, 9)
    errors = []
    for loss in ("discrete_hazard", "cox"):
        model = BoostingSurvival(**SHORT | {"loss": loss, "n_estimators": 50}).fit(Z, y)
        found = model.predict_survival_function([[0.0], [1.0]], times)
        truth = np.array([np.exp(-times), np.exp(-(times**5))])
        errors.append(np.abs(found - truth).mean())
    assert errors[0] < 0.06 < 0.1 < errors[1]


def test_one_cause_may_be_bool_or_a_number():
    numbers = EITHER.astype([("e", "i8"), ("t", "f8")])
    models = [BoostingSurvival(**SHORT).fit(X, y) for y in (EITHER, numbers)]
    assert_same_model(*models)
    assert models[0].predict_cumulative_incidence_function(X[:3], [1.0]).shape == (3, 1, 1)
    assert models[0].score(X, EITHER) == models[0].score(X, numbers) > 0.6


@pytest.mark.parametrize("y", [EITHER, Y], ids=["one", "two"])
def test_files_order_weights_and_continued_fits(y):
    rng = np.random.default_rng(4)
    times, order = rng.integers(1, 3, size=len(X)), rng.permutation(len(X))
    weighted = BoostingSurvival(**SHORT).fit(X, y, times)
    assert_same_model(weighted, BoostingSurvival(**SHORT).fit(X[order], y[order], times[order]))
    loaded = reloaded(weighted)
    for name in ("predict_survival_function", "predict_cumulative_incidence_function"):
        expected = getattr(weighted, name)(X, GRID)
        np.testing.assert_array_equal(getattr(loaded, name)(X, GRID), expected)
    part = BoostingSurvival(**SHORT | {"n_estimators": 4}, warm_start=True).fit(X, y)
    whole = BoostingSurvival(**SHORT).fit(X, y)
    assert_same_model(part.set_params(n_estimators=10).fit(X, y), whole)


def test_folds():
    early = SHORT | {"early_stopping": True, "n_estimators": 30, "n_iter_no_change": 5}
    model = BoostingSurvival(**early, cv_folds=3, eval_metric="concordance").fit(X, Y)
    assert model.history_.metrics["concordance"].max() > 0.55


def test_bad_use():
    model = BoostingSurvival(**SHORT).fit(X, Y)
    more = Y.copy()
    more["cause"][7] = 3
    with pytest.raises(InvalidData, match="the cause 3, but the training rows contain 2"):
        model.score(X, more)
    more["cause"][7] = -1
    with pytest.raises(InvalidData, match=r"the event of row 7 of y \('cause'\), -1, is negative"):
        BoostingSurvival(**SHORT).fit(X, more)
    with pytest.raises(InvalidData, match="requires loss='discrete_hazard'"):
        BoostingSurvival().fit(X, EITHER).predict_cumulative_incidence_function(X, GRID)
    with pytest.raises(InvalidData, match="several causes"):
        BoostingSurvival().fit(X, Y)
    with pytest.raises(InvalidData, match="no event"):
        BoostingSurvival(**SHORT).fit(X, np.array([(False, 1.0)] * 400, dtype=EITHER.dtype))


def test_categories_are_encoded_by_events_that_were_not_expected():
    rng = np.random.default_rng(0)
    levels = np.array(["low", "high", "rare"])[rng.choice(3, p=[0.5, 0.4, 0.1], size=600)]
    first = rng.exponential(np.where(levels == "high", 0.5, 2.0))
    second, end = rng.exponential(1.5, 600), rng.exponential(2.0, 600)
    times = np.column_stack([end, first, second])
    y = np.empty(600, dtype=Y.dtype)
    y["cause"], y["time"] = times.argmin(axis=1), np.ceil(20 * times.min(axis=1)) / 20  # with ties
    table = pd.DataFrame({"level": levels, "noise": rng.normal(size=600)})
    model = BoostingSurvival(**SHORT | {"n_estimators": 120}).fit(table, y)
    new = pd.DataFrame({"level": ["low", "high", "never seen"], "noise": 0.0})
    low, high, unseen = model.predict_cumulative_incidence_function(new, [1.0])[:, 0, 0]
    assert low < unseen < high
    for level, found in (("low", low), ("high", high)):
        rows = Seen(y["time"], y["cause"], np.zeros(600)).rows(levels == level)
        assert found == pytest.approx(rows.incidence(np.array([1.0]), 1)[0], abs=0.06)


def test_values_that_encode_categories_are_those_of_scikit_survival():
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    codec, encoded = SurvivalCodec.learn(SurvivalLabels(Y), len(Y), 6)
    rows = np.arange(0, 400, 2, dtype=np.uint32)
    found = codec.averaged(Target(encoded), rows).y
    for k in (1, 2):
        event = Y["cause"] == k
        x, hazard = nonparametric.nelson_aalen_estimator(event[rows], Y["time"][rows])
        expected = np.append(0.0, hazard)[np.searchsorted(x, Y["time"], side="right")]
        np.testing.assert_allclose(found[:, k - 1], event - expected, rtol=1e-10, atol=1e-12)
    twice, order = np.repeat(np.arange(400), 2), np.random.default_rng(0).permutation(400)
    weight = np.random.default_rng(1).uniform(size=400)
    values = codec.averaged(Target(encoded, weight)).y
    np.testing.assert_array_equal(
        codec.averaged(Target(encoded[order], weight[order])).y, values[order]
    )
    weighted = codec.averaged(Target(encoded, np.full(400, 2.0))).y
    np.testing.assert_array_equal(codec.averaged(Target(encoded[twice])).y[::2], weighted)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_events_of_one_and_two_may_be_those_of_r(loss):
    coded = pd.DataFrame({"status": 1 + (Y["cause"] > 0), "time": Y["time"]})
    with pytest.raises(InvalidData, match="^if 1 means censored, subtract 1"):
        BoostingSurvival(loss, n_estimators=2).fit(X, coded)
    with pytest.warns(DataWarning, match="^if 1 means censored, subtract 1"):
        BoostingSurvival(**SHORT | {"n_estimators": 2}).fit(X, coded)
    with pytest.raises(InvalidData, match="pass whether there was an event"):
        BoostingSurvival(loss, n_estimators=2).fit(X, Y)  # with censored rows
