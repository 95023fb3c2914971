"""Several targets of which some are missing in some rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reloaded import reloaded

from hilboost import BoostingRegressor
from hilboost.core.errors import InvalidData
from hilboost.core.target import Target
from hilboost.encoders.encoding import Encoder, known_numbers
from hilboost.losses import Gamma, Poisson, SquaredError, Tweedie
from hilboost.losses.masked import MaskedLoss

RNG = np.random.default_rng(0)
X = RNG.integers(0, 30, size=(240, 3)).astype(float)
FULL = np.column_stack([X[:, 0] + X[:, 1] ** 2 / 20, X[:, 2] - X[:, 0], np.cos(X[:, 1])])
FULL += 0.1 * RNG.normal(size=FULL.shape)
HOLED = FULL.copy()
HOLED[np.arange(240), RNG.integers(0, 6, 240) % 3] = np.nan
PLAIN = {
    "n_estimators": 15,
    "max_leaf_nodes": 8,
    "learning_rate": 0.3,
    "subsample": 1.0,
    "max_features": 1.0,
    "l2_regularization": 1.0,
    "early_stopping": False,
    "random_state": 0,
}
LOSSES = [SquaredError(), Poisson(), Gamma(), Tweedie()]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_it_is_the_sum_of_the_losses_of_what_is_known(loss, seed):
    rng = np.random.default_rng(seed)
    y, raw = rng.uniform(0.5, 3, size=(9, 3)), rng.normal(size=(9, 3))
    y[rng.uniform(size=y.shape) < 0.4] = np.nan
    y[0] = 1.0
    weight = rng.uniform(0.1, 2, 9)
    target, known = Target(y, weight), ~np.isnan(y)
    partly = MaskedLoss(loss)
    partly.check(target)
    value = np.zeros(9)
    found = partly.gradients(target, raw)
    for k in range(3):
        alone = Target(y[known[:, k], k : k + 1], weight[known[:, k]])
        own = loss.gradients(alone, raw[known[:, k], k : k + 1])
        hessian = 1.0 if own.hessian is None else own.hessian[:, 0]
        value[known[:, k]] += loss.value(alone, raw[known[:, k], k : k + 1])
        np.testing.assert_allclose(
            found.negative_gradient[known[:, k], k], own.negative_gradient[:, 0]
        )
        np.testing.assert_allclose(found.hessian[known[:, k], k], hessian)
        assert partly.initial_raw(target)[k] == pytest.approx(loss.initial_raw(alone)[0], rel=1e-12)
    np.testing.assert_allclose(partly.value(target, raw), value, rtol=1e-12, atol=1e-12)
    assert not found.negative_gradient[~known].any()
    assert not found.hessian[~known].any()


def test_separate_trees_are_those_of_a_model_for_each_target():
    """Leaves count the rows where it is known; cuts between their values may lie elsewhere."""
    model = BoostingRegressor(**PLAIN, min_samples_leaf=7).fit(X, HOLED)
    predicted = model.predict(X)
    for k, y in enumerate(HOLED.T):
        known = ~np.isnan(y)
        alone = BoostingRegressor(**PLAIN, min_samples_leaf=7).fit(X[known], y[known])
        np.testing.assert_allclose(predicted[known, k], alone.predict(X[known]), rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("setting", [{}, {"multi_output": "shared"}], ids=["separate", "shared"])
def test_they_are_learned_from_what_is_known(loss, setting):
    full = FULL if loss == "squared_error" else np.exp(FULL / FULL.std(axis=0))
    holed = np.where(np.isnan(HOLED), np.nan, full)
    plain = PLAIN | {"n_estimators": 30} | setting
    model = BoostingRegressor(loss, **plain).fit(X, holed)
    unknown = np.isnan(holed)
    for k in range(2):
        predicted, true = model.predict(X)[unknown[:, k], k], full[unknown[:, k], k]
        assert np.corrcoef(predicted, true)[0, 1] > 0.8
    whole = BoostingRegressor(loss, **plain | {"n_estimators": 1}).fit(X, full)
    assert type(model.loss_) is type(whole.loss_)


def test_they_are_no_other_model_where_all_are_known():
    """Held-out rows, weights, warm start, files and statistics of categories know them too."""
    weight = RNG.integers(0, 3, 240)
    once = BoostingRegressor(**PLAIN, warm_start=True).fit(X, HOLED, weight)
    again = once.set_params(n_estimators=25).fit(X, HOLED, weight).predict(X)
    straight = BoostingRegressor(**PLAIN | {"n_estimators": 25}).fit(X, HOLED, weight)
    np.testing.assert_array_equal(again, straight.predict(X))
    repeated = BoostingRegressor(**PLAIN | {"n_estimators": 25})
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(HOLED, weight, axis=0))
    np.testing.assert_allclose(repeated.predict(X), again, rtol=1e-9)
    np.testing.assert_array_equal(reloaded(straight).predict(X), again)
    few = {"n_estimators": 20, "random_state": 0}
    stopped = BoostingRegressor(**few).fit(X, FULL, X_val=X[:99] + 1e-9, y_val=HOLED[:99])
    assert np.isfinite(stopped.history_.validation).all()
    folds = BoostingRegressor(**few, early_stopping=True, cv_folds=3)
    folds.set_params(categorical_features=[1], target_encoding=True).fit(X, HOLED)
    assert np.isfinite(folds.predict(X)).all()


def test_statistics_of_categories_know_no_held_out_target():
    rows, other = np.arange(0, 240, 2, dtype=np.uint32), HOLED.copy()
    other[1::2] += 5.0
    learned = []
    for y in (HOLED, other):
        encoder = Encoder.of(X[:, :1], [(0, 30)], Target(y), known_numbers, True)
        learned.append(encoder.learn(X[:, :1], Target(y), [rows], 0))
    assert learned[0][0].equals(learned[1][0])
    np.testing.assert_array_equal(learned[0][1][0][rows], learned[1][1][0][rows])


def test_a_report_counts_the_rows_where_a_target_is_known():
    model = BoostingRegressor(**PLAIN).fit(X, HOLED)
    facts, known = model.report_facts(X, HOLED), ~np.isnan(HOLED)
    for k, of_output in enumerate(facts["regression"]):
        y, predicted = HOLED[known[:, k], k], model.predict(X)[known[:, k], k]
        found = {score["key"]: score["value"] for score in of_output["scores"]}
        assert found["mae"] == pytest.approx(np.abs(y - predicted).mean())
        worst = int(np.argmax(np.where(known[:, k], np.abs(HOLED - model.predict(X))[:, k], 0)))
        assert of_output["worst"]["numbers"][0] == worst
    assert facts["warnings"][0].startswith("The loss on these rows equals the training loss")
    nowhere = HOLED[known[:, 0] & known[:, 2]]
    nowhere[:, 1] = np.nan
    with pytest.raises(InvalidData, match="target 1 of y is missing in every row; pass rows"):
        model.report_facts(X[: len(nowhere)], nowhere)


@pytest.mark.parametrize("dtype", ["Float64", "float64[pyarrow]", "object"])
def test_frames_of_pandas_that_have_gaps(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame(HOLED).astype(dtype)
    frame = frame.where(~np.isnan(HOLED), None if dtype == "object" else pd.NA)
    model = BoostingRegressor(**PLAIN).fit(X, frame)
    np.testing.assert_array_equal(
        model.predict(X), BoostingRegressor(**PLAIN).fit(X, HOLED).predict(X)
    )


class Coupled(SquaredError):
    """A loss of the difference of two targets."""


def test_losses_derived_from_these_may_be_anything():
    with pytest.raises(InvalidData, match="Missing targets are supported by BoostingRegressor"):
        BoostingRegressor(Coupled(), **PLAIN).fit(X, HOLED)


def test_what_cannot_be_learned_is_refused_in_a_sentence():
    empty, nowhere = HOLED.copy(), HOLED.copy()
    empty[7], nowhere[:, 1] = np.nan, np.nan
    nowhere[:, 0] = 1.0
    with pytest.raises(InvalidData, match="NaN in all targets of row 7; remove rows"):
        BoostingRegressor(**PLAIN).fit(X, empty)
    with pytest.raises(InvalidData, match="target 1 of y is missing in every row"):
        BoostingRegressor(**PLAIN).fit(X, nowhere)
    with pytest.raises(InvalidData, match="poisson loss requires zero or positive targets; row"):
        BoostingRegressor("poisson", **PLAIN).fit(X, HOLED)
    below = np.ones_like(FULL)
    below[:5, 1], below[5:9, 1] = np.nan, -300.0
    with pytest.raises(InvalidData, match="row 5 has -300"):
        BoostingRegressor("poisson", **PLAIN).fit(X, below)
    for loss in ("absolute_error", "huber", "quantile"):
        with pytest.raises(InvalidData, match=r"NaN in row \d+ of target \d. Missing targets are"):
            BoostingRegressor(loss, **PLAIN).fit(X, HOLED)
    with pytest.raises(ValueError, match="infinity"):
        BoostingRegressor(**PLAIN).fit(X, np.where(np.isnan(HOLED), np.inf, HOLED))
