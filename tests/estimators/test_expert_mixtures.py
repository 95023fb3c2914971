"""Mixtures of experts and stacked machines: formulas written out, invariances, refusals."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.linear_model import RidgeCV

from hilboost.core.errors import HilboostError
from hilboost.core.target import Target
from hilboost.estimators import (
    AveragedKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
    mixture_of_experts,
)
from hilboost.estimators.mixture_of_experts import Gate, assign
from hilboost.estimators.stacked_kernel_ridge import stacked_weights
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(400, 2))
F = np.where(X[:, 0] > 0, np.sin(4 * X[:, 1]), X[:, 1] ** 2)
Y = F + 0.1 * RNG.normal(size=400)
TRAIN, TEST = slice(0, 300), slice(300, 400)
PLAIN = {
    "n_estimators": 4,
    "subset_size": 80,
    "kernel": Gaussian(0.5),
    "regularization": 0.05,
    "random_state": 0,
    "n_jobs": 1,
}


def fitted(cls, y=Y, **parameters):
    return cls(**PLAIN | parameters).fit(X[TRAIN], y[TRAIN])


# Stacking


@pytest.mark.parametrize("penalty", [0.0, 0.3, 50.0])
def test_stacked_weights_solve_the_normal_equations(penalty):
    A, y = RNG.normal(size=(60, 4)), RNG.normal(size=60)
    found, mu = stacked_weights(A, y, penalty)
    expected = np.linalg.solve(A.T @ A + penalty * np.eye(4), A.T @ y)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert mu == penalty


def test_the_penalty_has_the_least_leave_one_out_error():
    A = RNG.normal(size=(40, 6)) + RNG.normal(size=(40, 1))
    y = A.mean(axis=1) + RNG.normal(size=40)
    _, mu = stacked_weights(A, y, "auto")
    grid = np.linalg.norm(A, 2) ** 2 * 10.0 ** np.arange(-12, 2.5, 0.5)
    peer = RidgeCV(grid, fit_intercept=False, store_cv_results=True).fit(A, y)
    assert mu == pytest.approx(peer.alpha_)


def test_a_weight_is_a_repetition_in_the_choice_of_the_penalty():
    A, y = RNG.normal(size=(30, 5)), RNG.normal(size=30)
    copies = RNG.integers(1, 4, size=30).astype(float)
    rows, root = np.repeat(np.arange(30), copies.astype(int)), np.sqrt(copies)
    weighted = stacked_weights(root[:, None] * A, root * y, "auto", copies)
    repeated = stacked_weights(A[rows], y[rows], "auto")
    np.testing.assert_allclose(weighted[0], repeated[0], rtol=1e-9)
    assert weighted[1] == pytest.approx(repeated[1])


def test_stacked_weights_of_members_without_outputs_are_zero():
    found, mu = stacked_weights(np.zeros((5, 3)), np.ones(5), "auto")
    np.testing.assert_array_equal(found, 0)
    assert mu == 0


def test_a_stacked_model_is_the_weighted_sum_of_the_averaged_members():
    model, average = fitted(StackedKernelRidge), fitted(AveragedKernelRidge)
    parts = [part.model.predict_raw(X[TEST])[:, 0] for part in average.model_.stages[0].terms]
    expected = model.model_.initial_raw + model.estimator_weights_ @ np.array(parts)
    np.testing.assert_allclose(model.predict(X[TEST]), expected, rtol=1e-10)
    assert np.abs(fitted(StackedKernelRidge, penalty=1e9).estimator_weights_).max() < 1e-4


def test_weights_from_held_out_rows_are_the_best_there():
    rows = slice(300, 400)
    model = StackedKernelRidge(**PLAIN, penalty=0.0)
    model.fit(X[TRAIN], Y[TRAIN], X_val=X[rows], y_val=Y[rows])
    rest = Y[rows] - model.predict(X[rows])
    for part in model.model_.stages[0].terms:
        assert abs(rest @ part.model.predict_raw(X[rows])[:, 0]) < 1e-8 * np.abs(rest).sum() + 1e-8


# Mixtures


def test_a_mixture_is_the_sum_of_its_experts_with_the_weights_of_the_gate():
    model = fitted(MixtureOfKernelExperts)
    weights = model.expert_weights(X[TEST])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights > 0).all()
    outputs = np.column_stack([m.predict_raw(X[TEST])[:, 0] for m in model.members_])
    expected = Y[TRAIN].mean() + (weights * outputs).sum(axis=1)
    np.testing.assert_allclose(model.predict(X[TEST]), expected, rtol=1e-10)


def test_the_gate_is_a_network_with_one_hidden_layer():
    gate = Gate(RNG.normal(size=(3, 4)), RNG.normal(size=(5, 2)))
    x = X[0]
    hidden = np.tanh(gate.inner[:2].T @ x + gate.inner[2])
    scores = np.exp(gate.outer[:4].T @ hidden + gate.outer[4])
    np.testing.assert_allclose(gate.weights(X[:1])[0], scores / scores.sum(), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_of_the_gate(monkeypatch, weighted):
    """Against differences, for two targets and three experts."""
    seen = {}

    def noted(objective, start, **settings):
        seen.update(objective=objective, start=start)
        raise StopIteration

    monkeypatch.setattr(mixture_of_experts, "minimize", noted)
    outputs, y = RNG.normal(size=(20, 3, 2)), RNG.normal(size=(20, 2))
    weight = RNG.uniform(0.5, 2, size=20) if weighted else None
    with pytest.raises(StopIteration):
        Gate.fit(X[:20], outputs, Target(y, weight), 4, 0.01, 1, np.random.default_rng(0))
    at = seen["start"] + 0.3 * RNG.normal(size=len(seen["start"]))
    found = seen["objective"](at)[1]
    differences = approx_fprime(at, lambda flat: seen["objective"](flat)[0], 1e-7)
    np.testing.assert_allclose(found, differences, atol=2e-6)
    start = np.zeros_like(at)
    equal = outputs.mean(axis=1)
    share = np.ones(20) if weight is None else weight
    expected = np.average(((equal - y) ** 2).sum(axis=1), weights=share)
    expected /= np.average((y**2).sum(axis=1), weights=share)
    assert seen["objective"](start)[0] == pytest.approx(expected)


def test_steps_of_the_gate_decrease_the_error_from_that_of_equal_weights():
    outputs, y = np.sin(X[:, :1] * np.arange(1, 6))[:, :, None], Y[:, None]
    errors = [np.mean((outputs.mean(axis=1) - y) ** 2)]
    for n_steps in (1, 3, 10, 50, 200):
        gate = Gate.fit(X, outputs, Target(y), 5, 0.0, n_steps, np.random.default_rng(0))
        errors.append(np.mean((np.einsum("nm,nmr->nr", gate.weights(X), outputs) - y) ** 2))
    assert (np.diff(errors) < 0).all()


def test_rows_go_to_the_best_expert_with_room():
    weights = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    parts = assign(weights, 2, np.random.default_rng(0))
    assert sorted(np.concatenate(parts)) == [0, 1, 2, 3]
    assert [len(part) for part in parts] == [2, 2]
    assert 3 in parts[1]
    free = assign(weights, 4, np.random.default_rng(0))
    assert [part.tolist() for part in free] == [[0, 1, 2], [3]]
    assert sum(map(len, assign(weights, 1, np.random.default_rng(0)))) == 2


def test_rounds_divide_the_inputs_and_lower_the_error():
    model = fitted(MixtureOfKernelExperts, n_rounds=4)
    assert model.errors_.shape == (4,)
    first = fitted(MixtureOfKernelExperts, n_rounds=1)
    average = fitted(AveragedKernelRidge)
    errors = [np.mean((m.predict(X[TEST]) - F[TEST]) ** 2) for m in (model, first, average)]
    assert errors[1] < errors[2]
    assert first.errors_[0] == pytest.approx(np.mean((first.predict(X[TRAIN]) - Y[TRAIN]) ** 2))
    assert first.errors_[0] == pytest.approx(model.errors_[0])


def test_held_out_rows_choose_the_round():
    model = MixtureOfKernelExperts(**PLAIN, n_rounds=4)
    model.fit(X[TRAIN], Y[TRAIN], X_val=X[TEST], y_val=Y[TEST])
    error = np.mean((model.predict(X[TEST]) - Y[TEST]) ** 2)
    assert error == pytest.approx(model.errors_.min())


@pytest.mark.parametrize("cls", [MixtureOfKernelExperts, StackedKernelRidge])
def test_the_unit_of_the_target_does_not_matter(cls):
    # Multiples of two are exact: the gate's search follows the same path.
    one, other = fitted(cls).predict(X[TEST]), fitted(cls, 1024 * Y).predict(X[TEST])
    np.testing.assert_allclose(other, 1024 * one, rtol=1e-9)


# Refusals


def test_a_mixture_is_no_additive_model():
    with pytest.raises(AttributeError, match="not an additive model; its members are in members_"):
        _ = fitted(MixtureOfKernelExperts).model_


@pytest.mark.parametrize("cls", [MixtureOfKernelExperts, StackedKernelRidge])
def test_files_are_refused_in_a_sentence(cls, tmp_path):
    with pytest.raises(HilboostError, match=r"\.$"):
        fitted(cls).save(tmp_path / "model")


def test_missing_values_in_a_mixture():
    holed = X[TEST].copy()
    holed[3, 1] = np.nan
    model = fitted(MixtureOfKernelExperts)
    for method in (model.predict, model.expert_weights):
        with pytest.raises(HilboostError, match="NaN in column 1"):
            method(holed)
