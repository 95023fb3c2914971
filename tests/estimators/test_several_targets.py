"""Several targets of different scales: the unit of one target changes nothing for the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from hilboost import BoostingRegressor

LOSSES = ["squared_error", "absolute_error", "huber", "poisson"]
LEARNERS = {
    "automatic": {},
    "trees": {"learner": "tree"},
    "shared": {"learner": "tree", "multi_output": "shared"},
}
powers = st.sampled_from([-300, -20, 20, 300]) | st.integers(-40, 40)


@st.composite
def tables(draw):
    """Inputs, two or three positive targets of different difficulty, and new inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, c = draw(st.integers(60, 240)), draw(st.integers(2, 3))
    X = rng.uniform(-2, 2, size=(n + 20, 3))
    shapes = [X[:, 0] * X[:, 1], np.floor(X[:, 2] * 2) % 2, rng.normal(size=len(X))]
    noise = draw(st.sampled_from([0.0, 0.3])) * rng.normal(size=(len(X), c))
    Y = np.exp(0.5 * (np.column_stack(rng.permutation(shapes)[:c]) + noise))
    if draw(st.booleans()):
        Y[:, 0] = np.rint(Y[:, 0])
    weight = rng.integers(1, 4, size=n) if draw(st.booleans()) else None
    return X[:n], Y[:n], weight, X[n:]


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@given(table=tables(), loss=st.sampled_from(LOSSES), power=powers, seed=st.integers(0, 9))
def test_a_target_in_another_unit(learner, table, loss, power, seed):
    """Powers of two, which round nothing: the same stages, judged by the same losses."""
    X, Y, weight, new = table
    factors = np.append(2.0**power, np.ones(Y.shape[1] - 1))
    model = BoostingRegressor(loss, n_estimators=12, random_state=seed, **learner)
    model.set_params(early_stopping=True)
    expected, losses = model.fit(X, Y, weight).predict(new), model.history_.validation
    found = model.fit(X, Y * factors, weight).predict(new)
    np.testing.assert_array_equal(model.history_.validation, losses)
    if loss == "poisson":  # which adds the logarithm of the unit
        np.testing.assert_allclose(found / factors, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(found / factors, expected)


def _smooth_and_steps(rng, n):
    X = rng.uniform(-2, 2, size=(n, 5))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    steps = np.floor(X[:, 3] * 3) % 2 + (X[:, 4] > 0.5)
    return X, np.column_stack([smooth, steps + rng.normal(0, 0.1, n)])


@pytest.mark.parametrize("factor", [100.0, 1e-6])
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_each_target_is_learned(learner, factor):
    """By the automatic learner, too, although a kernel machine suits one target only."""
    rng = np.random.default_rng(0)
    X, Y = _smooth_and_steps(rng, 500)
    new, truth = _smooth_and_steps(rng, 1000)
    factors = np.array([factor, 1.0])
    model = BoostingRegressor(n_estimators=200, random_state=0, **learner)
    scores = r2_score(
        truth, model.fit(X, Y * factors).predict(new) / factors, multioutput="raw_values"
    )
    assert min(scores) > 0.9


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_constant_and_missing_targets(loss):
    """A constant target leaves the others as they are; missing ones count nowhere."""
    rng = np.random.default_rng(1)
    X, Y = _smooth_and_steps(rng, 200)
    Y[:, 1] = 1e9
    if loss == "squared_error":
        Y[rng.uniform(size=200) < 0.2, 0] = np.nan
    model = BoostingRegressor(loss, n_estimators=20, random_state=0)
    expected = model.fit(X, Y).predict(X)
    np.testing.assert_array_equal(expected[:, 1], 1e9)
    found = model.fit(X, Y * [2.0**30, 2.0**-30]).predict(X)
    np.testing.assert_array_equal(found, expected * [2.0**30, 2.0**-30])


def test_a_fixed_delta_is_in_the_units_of_the_targets():
    from hilboost.losses import Huber

    rng = np.random.default_rng(2)
    X, Y = _smooth_and_steps(rng, 150)
    model = BoostingRegressor(Huber(0.5), n_estimators=20, early_stopping=False, random_state=0)
    both = model.fit(X, Y).predict(X)
    for k in range(2):
        alone = model.fit(X, Y[:, k]).predict(X)
        np.testing.assert_allclose(both[:, k], alone, rtol=1e-6, atol=1e-6)
