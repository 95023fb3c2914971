"""What must not change when data are written in another way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import LOSSES, PLAIN

from hilboost import BoostingClassifier, BoostingRegressor

seeds = st.integers(0, 10**6)
WEIGHTED = [case for case in LOSSES if case.id in ("squared_error", "absolute_error", "log_loss-3")]


def build(case=LOSSES[0], **parameters):
    return case.build(**PLAIN | parameters)


def raw_of(model, X):
    return model.model_.predict_raw(np.ascontiguousarray(X))


def draw(case, seed, n=None, d=4):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 120)) if n is None else n
    y = case.target(rng, n).y
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.5 * y[:, 0]
    X[rng.uniform(size=(n, d)) < 0.05] = np.nan
    return rng, X, case.labels(y)


@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case.id)
@given(seeds, st.booleans())
def test_rows_of_weight_zero_do_not_exist(case, seed, whole):
    rng, X, y = draw(case, seed, n=60)
    weight = rng.integers(1, 4, size=60) if whole else rng.uniform(0.5, 2, size=60)
    out = rng.uniform(size=60) < 0.3
    out[:8] = False  # so that every class stays
    model = build(case)
    with_zeros = raw_of(model.fit(X, y, sample_weight=np.where(out, 0, weight)), X)
    without = raw_of(model.fit(X[~out], y[~out], sample_weight=weight[~out]), X)
    np.testing.assert_array_equal(with_zeros, without)


@given(seeds)
def test_order_of_the_columns(seed):
    """With leaves of many rows no two columns cut alike."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    order = rng.permutation(5)
    model = build(min_samples_leaf=20)
    expected = raw_of(model.fit(X, y), X)
    np.testing.assert_array_equal(raw_of(model.fit(X[:, order], y), X[:, order]), expected)


@given(seeds)
def test_columns_of_no_use(seed):
    """Constant, empty and repeated ones."""
    _, X, y = draw(LOSSES[0], seed)
    model = build()
    expected = raw_of(model.fit(X, y), X)
    wider = np.column_stack([X, np.full(len(X), 3.0), np.full(len(X), np.nan), X[:, 0]])
    np.testing.assert_array_equal(raw_of(model.fit(wider, y), wider), expected)


@given(seeds)
def test_swapped_classes_swap_probabilities(seed):
    _, X, y = draw(next(case for case in LOSSES if case.id == "log_loss-2"), seed)
    model = BoostingClassifier(**PLAIN)
    expected = model.fit(X, y).predict_proba(X)
    swapped = model.fit(X, 1 - y).predict_proba(X)
    np.testing.assert_allclose(swapped[:, ::-1], expected, rtol=1e-7)


@pytest.mark.parametrize("n", [66, 4100])
def test_missingness_is_learned_from(n):
    rng = np.random.default_rng(0)
    missing = rng.uniform(size=n) < 0.5
    X = rng.normal(size=(n, 2))
    X[missing, 1] = np.nan
    y = missing + 0.01 * rng.normal(size=n)
    model = build(learning_rate=0.5).fit(X, y)
    np.testing.assert_allclose(model.predict(X), missing, atol=0.05)
    np.testing.assert_array_equal(model.predict(X[:3]), model.predict(X)[:3])
    np.testing.assert_array_equal(model.predict(X[-3:]), model.predict(X)[-3:])


@pytest.mark.parametrize("resembles", [-2.0, 0.0, 2.0])
def test_missing_values_go_where_rows_are_alike(resembles):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.5, 2.5, size=(600, 1))
    y = np.sin(2 * X[:, 0])
    gone = np.abs(X[:, 0] - resembles) < 0.3
    X[gone] = np.nan
    model = build(learning_rate=0.3, n_estimators=60, min_samples_leaf=5).fit(X, y)
    assert model.predict([[np.nan]])[0] == pytest.approx(y[gone].mean(), abs=0.1)


def test_missing_values_nobody_saw_follow_the_larger_part():
    X = np.arange(100.0)[:, None]
    y = (X[:, 0] >= 70).astype(float)
    model = BoostingRegressor(**PLAIN | {"learning_rate": 1.0, "max_leaf_nodes": 2}).fit(X, y)
    assert model.predict([[np.nan]])[0] == pytest.approx(0)
    model.fit(-X, y)
    assert model.predict([[np.nan]])[0] == pytest.approx(0)


@given(seeds)
def test_predictions_do_not_depend_on_the_rows_beside(seed):
    rng, X, y = draw(LOSSES[0], seed, n=150)
    model = build().fit(X, y)
    whole = model.predict(X)
    for size in (1, 7, 8, 65, 71):
        first = int(rng.integers(0, 150 - size))
        part = slice(first, first + size)
        np.testing.assert_array_equal(model.predict(X[part]), whole[part])
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_array_equal(last, whole)
