"""Kernel estimators on equal rows, nearly equal rows, and rows in any unit."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.reference.penalized import in_units_of_fit
from tests.reloaded import reloaded

from hilboost import (
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Gaussian, Linear
from hilboost.learners.kernel_machine import config, full
from hilboost.losses import SquaredError
from hilboost.training.recipes.kernel_machines import KernelParameters, kernel_learner

PLAIN = {"kernel": Gaussian(1.0), "standardize": False, "random_state": 0}
FEW = {"n_basis": 20, "random_state": 0}
MACHINES = {
    "full": partial(KernelBoostingRegressor, random_state=0),
    "sparse": partial(KernelBoostingRegressor, stages="sparse", n_estimators=3, **FEW),
    "block": partial(KernelBoostingRegressor, stages="block", n_estimators=3, **FEW),
    "ridge": partial(SparseKernelRidge, **FEW),
}


def draw(n=50, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.1, n)


@pytest.mark.parametrize(
    "make",
    [KernelBoostingRegressor, KernelBoostingClassifier, SparseKernelRidge, SparseKernelClassifier],
)
def test_an_integer_weight_is_repetition_to_the_last_bit(make):
    X, y = draw()
    if make in (KernelBoostingClassifier, SparseKernelClassifier):
        y = (y > 0).astype(int) + (y > 1)
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(len(X)), weight))
    one = make(random_state=0).fit(X, y, weight)
    other = make(random_state=0).fit(X[repeated], y[repeated])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one.history_.train, other.history_.train)
    assert one.regularization_ == other.regularization_


@pytest.mark.parametrize("n_targets", [1, 2])
def test_rows_equal_in_the_inputs_alone_are_one_basis_vector(n_targets):
    X, _ = draw(20)
    X = X[np.random.default_rng(3).integers(0, 20, 60)]
    Y = np.random.default_rng(4).normal(size=(60, n_targets))
    weight = np.random.default_rng(5).uniform(0.5, 2, 60)
    model = KernelBoostingRegressor(regularization=0.1, stages="full", **PLAIN)
    model.fit(X, Y if n_targets > 1 else Y[:, 0], weight)
    middle = np.average(Y, axis=0, weights=weight)
    K = Gaussian(1.0).block(X, X)
    alpha = np.linalg.solve(K + np.diag(0.1 / weight), Y - middle)
    expected = (middle + K @ alpha).reshape(model.predict(X).shape)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)
    assert len(model.model_.stages[0].terms[0].model.basis) == len(np.unique(X, axis=0))
    target, raw = Target(Y, weight), expected.reshape(60, -1)
    loss, target, raw = in_units_of_fit(SquaredError(), target, raw)
    losses = loss.value(target, raw)
    np.testing.assert_allclose(model.history_.train[-1], np.average(losses, weights=weight))
    if n_targets == 1:
        amplitude = ((Y - middle) * alpha).mean()
        k = Gaussian(1.0).block(X, X[:5])
        noise = np.diag(0.1 / weight)
        variance = 1 - np.einsum("ij,ij->j", k, np.linalg.solve(K + noise, k)) + 0.1
        std = model.predict(X[:5], return_std=True)[1]
        np.testing.assert_allclose(std / std[0], np.sqrt(variance / variance[0]), rtol=1e-8)
        assert amplitude > 0


@pytest.mark.parametrize("regularization", [1e-6, 1e-12])
def test_nearly_equal_rows_above_the_direct_limit(monkeypatch, regularization):
    monkeypatch.setattr(full, "DIRECT_UP_TO", 500)
    monkeypatch.setattr(config, "_FLOAT64_UP_TO", 400)
    X, y = draw(300)
    rows = np.concatenate([np.arange(300), np.repeat(np.arange(20), 50)])
    X = X[rows] + 1e-9 * np.random.default_rng(1).normal(size=(len(rows), 2))
    model = KernelBoostingRegressor(regularization=regularization, stages="full", **PLAIN)
    model.fit(X, y[rows])
    assert np.mean((model.predict(X) - y[rows]) ** 2) < 0.02 * y[rows].var()
    np.testing.assert_allclose(
        model.history_.train[-1], 0.5 * np.mean((model.predict(X) - y[rows]) ** 2), rtol=1e-3
    )


ATTACKS = {
    "near": lambda X, y: (X[np.arange(len(X)) // 3] + 1e-9 * X, y, None),
    "constant column": lambda X, y: (np.c_[X, np.full(len(X), 3.3)], y, None),
    "equal columns": lambda X, y: (np.c_[X, X], y, None),
    "weights": lambda X, y: (X, y, 10.0 ** np.linspace(-9, 0, len(X))),
    "one row": lambda X, y: (X[:1], y[:1], None),
    "all equal": lambda X, y: (np.repeat(X[:1], len(X), axis=0), y, None),
    "outlier": lambda X, y: (np.r_[X[1:], [[1e12, 1e12]]], y, None),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_fit_ends_worse_than_its_start(machine, attack, precision):
    X, y, weight = ATTACKS[attack](*draw(60))
    for kernel in (Gaussian(1.0), Linear()):
        for regularization in (1e-12, 1e8):
            model = MACHINES[machine](
                kernel=kernel, regularization=regularization, precision=precision
            )
            try:
                model.fit(X, y, weight)
            except (InvalidData, InvalidParameter):
                continue  # in a sentence, rather than with a model that is worse
            weights = None if weight is None else weight[: len(y)]
            middle = np.average(y, weights=weights)
            spread = np.average((y - middle) ** 2, weights=weights)
            error = np.average((model.predict(X) - y) ** 2, weights=weights)
            assert error <= 1.001 * spread + 1e-12, (kernel, regularization)
            loss = model.history_.train
            assert loss[-1] <= loss[0] * (1 + 1e-6) + 1e-300, (kernel, regularization)


@pytest.mark.parametrize("machine", MACHINES)
@settings(max_examples=3)
@given(
    st.one_of(
        st.tuples(st.integers(-660, 660), st.just(0), st.just(0)),
        st.tuples(st.just(0), st.integers(-498, 498), st.just(0)),
        st.tuples(st.just(0), st.just(0), st.integers(-200, 200)),
    ),
    st.integers(0, 99),
)
def test_units_change_nothing(machine, exponents, seed):
    """Roots of weights are exact for powers of four; others agree to rounding."""
    X, y = draw(40, seed=seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, 40)
    of_X, of_y, of_weight = 2.0 ** exponents[0], 2.0 ** exponents[1], 4.0 ** exponents[2]
    model = MACHINES[machine](kernel=Gaussian(1.0))  # λ is chosen
    plain, other = model.fit(X, y, weight), clone(model)
    other.fit(X * of_X, y * of_y, weight * of_weight)
    np.testing.assert_allclose(other.predict(X * of_X) / of_y, plain.predict(X), rtol=1e-9)


def test_what_overflows_is_refused():
    X, y = draw()
    with pytest.raises(InvalidData, match="absolute values up to 1e.160, .* Divide y"):
        KernelBoostingRegressor(**PLAIN).fit(X, np.full(50, 1e160))
    X[0, 1] = 1.5e308
    with pytest.raises(InvalidData, match="X contains .* in column 1, and differences .* overflow"):
        KernelBoostingRegressor().fit(X, y)


def test_the_model_does_not_depend_on_free_memory(monkeypatch):
    X, y = draw(700)
    monkeypatch.setattr(full, "DIRECT_UP_TO", 100)
    model = KernelBoostingRegressor(regularization=0.1, stages="full", **PLAIN)
    plain = model.fit(X, y).predict(X)
    needed = 8.0 * 700 * 500 + 24.0 * 500**2
    monkeypatch.setattr(full, "free_memory", lambda: needed + 1.0)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), plain)
    monkeypatch.setattr(config, "free_memory", lambda: 2.0**20)
    for n in (36_000, 60_000):
        assert isinstance(kernel_learner(KernelParameters(), n, ()), full.FullLearner)
    with pytest.raises(InvalidParameter, match=r"requires \d+ MiB, but only 1 MiB .* are free"):
        model.fit(X, y)


@pytest.mark.parametrize("factor", [1e-6, 7.3, 1e5 + 0.5])
@pytest.mark.parametrize("weight", [np.ones(50), np.linspace(0.5, 2, 50)], ids=["one", "spread"])
def test_standard_deviations_do_not_depend_on_the_unit_of_weights(factor, weight):
    X, y = draw()
    model = KernelBoostingRegressor(kernel=Gaussian(1.0), random_state=0)
    expected = model.fit(X, y, weight).predict(X[:9], return_std=True)
    found = model.fit(X, y, factor * weight).predict(X[:9], return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_given_regularization_is_the_noise_of_a_row_of_weight_one():
    X, y = draw()
    model = KernelBoostingRegressor(regularization=0.1, stages="full", **PLAIN)
    model.fit(X, y, np.full(len(X), 4.0))
    K, k = Gaussian(1.0).block(X, X), Gaussian(1.0).block(X, X[:5])
    noisy = K + 0.1 / 4 * np.eye(len(X))
    variance = 1 - np.einsum("ij,ij->j", k, np.linalg.solve(noisy, k)) + 0.1
    std = model.predict(X[:5], return_std=True)[1]
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-8)


def test_the_weight_of_a_new_observation_is_saved():
    X, y = draw()
    model = KernelBoostingRegressor(random_state=0).fit(X, y, np.full(len(X), 4.0))
    np.testing.assert_array_equal(
        reloaded(model).predict(X, return_std=True)[1], model.predict(X, return_std=True)[1]
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "lognormal", "huber", "squared_error"])
def test_a_single_row_has_its_target(loss):
    row, y = np.ones((1, 3)), np.array([2.0])
    machine = BoostingRegressor(loss, learner="kernel", random_state=0).fit(row, y)
    np.testing.assert_allclose(machine.predict(row), y, rtol=1e-3)
