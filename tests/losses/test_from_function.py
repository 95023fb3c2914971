"""Losses given as a function of y and raw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    Gradients,
    KernelBoostingRegressor,
    Loss,
    to_onnx,
)
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidType
from hilboost.core.target import Target
from hilboost.losses import Poisson, SquaredError
from hilboost.losses.from_function import FunctionLoss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 3.0
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0] + 1)).astype(float)
FEW = {"n_estimators": 20, "early_stopping": False, "random_state": 0}


def squared(y, raw):
    return raw - y, np.ones_like(raw)


def poisson(y, raw):
    return np.exp(raw) - y, np.exp(raw)


@pytest.mark.parametrize("weight", [None, RNG.uniform(0.1, 2, 200)])
@pytest.mark.parametrize(
    ("function", "loss", "y"), [(squared, SquaredError(), Y), (poisson, Poisson(), COUNTS)]
)
def test_it_is_the_loss_of_these_derivatives(function, loss, y, weight):
    target, own = Target(y[:, None], weight), FunctionLoss(function)
    np.testing.assert_allclose(own.initial_raw(target), loss.initial_raw(target), rtol=1e-9)
    raw = RNG.normal(size=(200, 1))
    zero = np.zeros_like(raw)
    expected = loss.value(target, raw) - loss.value(target, zero)
    np.testing.assert_allclose(own.value(target, raw), expected, atol=1e-9)
    found = own.gradients(target, raw)
    np.testing.assert_allclose(
        found.negative_gradient, loss.gradients(target, raw).negative_gradient
    )


@given(st.floats(-30, 30), st.integers(0, 10**6))
def test_start_values_are_found_at_any_distance(shift, seed):
    y = np.exp(shift) * np.random.default_rng(seed).uniform(0.5, 2, (20, 2))
    start = FunctionLoss(poisson).initial_raw(Target(y))
    np.testing.assert_allclose(start, np.log(y.mean(axis=0)), rtol=1e-6, atol=1e-9)


class OwnPoisson(Loss):
    def initial_raw(self, target):
        return np.log(np.average(target.y, axis=0, weights=target.weight))

    def value(self, target, raw):
        return (np.exp(raw) - target.y * raw).sum(axis=1)

    def gradients(self, target, raw):
        gradient, hessian = poisson(target.y, raw)
        return Gradients(-gradient, hessian)


@pytest.mark.parametrize("model", [BoostingRegressor, KernelBoostingRegressor])
def test_models_are_those_of_the_class(model):
    settings = FEW if model is BoostingRegressor else {"n_estimators": 3, "random_state": 0}
    function, own = (model(loss, **settings).fit(X, COUNTS) for loss in (poisson, OwnPoisson()))
    np.testing.assert_allclose(function.predict(X), own.predict(X), rtol=1e-4)
    np.testing.assert_allclose(function.history_.train + 1, own.history_.train, rtol=1e-4)


def test_several_targets_and_early_stopping():
    targets = np.column_stack([Y, 2 * Y]) + np.random.default_rng(1).normal(size=(200, 2))
    early = {"early_stopping": True, "learning_rate": 0.2, "random_state": 0}
    model = BoostingRegressor(squared, **early).fit(X, targets)
    built_in = BoostingRegressor(learner="tree", **early).fit(X, targets)
    assert model.predict(X).shape == (200, 2)
    assert model.score(X, targets) == pytest.approx(built_in.score(X, targets), abs=0.02)
    onnx = pytest.importorskip("onnxruntime")
    session = onnx.InferenceSession(to_onnx(model).SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda y, raw: raw - y, IncompatibleParts, "must return a tuple of the gradient and"),
        (lambda y, raw: (raw - y, 1.0), IncompatibleParts, r"of the shape of raw, \(200,\); it"),
        (lambda y, raw: (raw - y, 0 * raw), InvalidData, "has no best constant: .* hessian"),
        (lambda y, raw: (y - raw, 1 + 0 * raw), IncompatibleParts, "returns the negative gradient"),
        (lambda y, raw: (raw * np.nan, 1 + 0 * raw), InvalidData, "has no best constant"),
        (3, InvalidType, "loss must be a name"),
    ],
)
def test_functions_that_are_no_losses(function, error, match):
    with pytest.raises(error, match=match):
        BoostingRegressor(function, **FEW).fit(X, Y)


def test_a_loss_that_is_not_convex_has_no_wrong_sign():
    def welsch(y, raw):
        error = raw - y
        return error * np.exp(-(error**2)), np.abs(1 - 2 * error**2) * np.exp(-(error**2)) + 1e-9

    y = 30 + 0.1 * RNG.normal(size=(50, 1))
    start = FunctionLoss(welsch).initial_raw(Target(y))
    np.testing.assert_array_equal(start, [0.0])  # so far from y, the gradient is zero


def test_classifiers_and_files_do_not_support_functions(tmp_path):
    with pytest.raises(InvalidType, match="loss must be a name"):
        BoostingClassifier(squared, **FEW).fit(X, Y > 3)
    model = BoostingRegressor(squared, **FEW).fit(X, Y)
    with pytest.raises(IncompatibleParts, match="model files do not support"):
        model.save(tmp_path / "m")
