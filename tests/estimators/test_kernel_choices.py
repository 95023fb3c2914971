"""What is chosen automatically, and what is refused rather than ignored."""

import numpy as np
import pytest

from hilboost import KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Gaussian, Matern, Precomputed, Tanimoto
from hilboost.learners.kernel_machine.tuning import scoring


def table(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("size", [1e-6, 1e6 + 0.5])
def test_automatic_lambda_is_in_units_of_the_sample_weights(size):
    X, y = table()
    plain = KernelBoostingRegressor(kernel="gaussian", random_state=0)
    expected = plain.fit(X, y).predict(X)
    weighted = plain.fit(X, y, np.full(len(X), size)).predict(X)
    np.testing.assert_allclose(weighted, expected, atol=1e-3)


@pytest.mark.parametrize("n", [396, 400, 404])
def test_sharpness_is_fitted_to_the_rows_that_were_held_out(n, monkeypatch):
    monkeypatch.setattr(scoring, "ROWS_OF_LEAVE_ONE_OUT", 100)
    X, y = table(n)
    model = KernelBoostingClassifier(kernel="gaussian", random_state=0).fit(X, y > 0)
    assert model.loss_.sharpness > 2


def test_a_target_of_large_size_does_not_decide_for_the_others():
    X, y = table(120)
    noise = 1e6 * np.random.default_rng(1).normal(size=len(y))
    model = KernelBoostingRegressor(random_state=0).fit(X[:60], np.column_stack([y, noise])[:60])
    assert np.corrcoef(model.predict(X[60:])[:, 0], y[60:])[0, 1] > 0.8


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rows_far_away_get_the_mean(kernel, precision):
    X, y = table(60)
    model = KernelBoostingRegressor(kernel=kernel, regularization=0.1, precision=precision)
    predicted = model.fit(X, y).predict(np.array([[1e20, 0, 0], [1e200, 1e200, 0]]))
    np.testing.assert_allclose(predicted, y.mean(), atol=1e-6)


@pytest.mark.parametrize(
    "parameters", [{"reweight": True}, {"selection": "forward"}, {"length_scale_factors": [1, 2]}]
)
@pytest.mark.parametrize("stages", ["full", "block"])
def test_parameters_that_would_do_nothing_are_refused(stages, parameters):
    X, y = table(30)
    model = KernelBoostingRegressor(kernel="gaussian", regularization=1, stages=stages)
    with pytest.raises(
        InvalidParameter, match=f"{next(iter(parameters))} applies only to sparse stages"
    ):
        model.set_params(**parameters).fit(X, y)


def test_mean_distance_refuses_another_kernel():
    X, y = table(30)
    with pytest.raises(InvalidParameter, match="mean_distance"):
        KernelBoostingRegressor(kernel=Matern(3.0), tuning="mean_distance").fit(X, y)
    model = KernelBoostingRegressor(tuning="mean_distance").fit(X, y)
    np.testing.assert_allclose(model.kernel_.length_scale, np.sqrt(3))


@pytest.mark.parametrize("factors", [["a"], [0, -1], [np.nan], 3.0, [[1.0]]])
def test_length_scale_factors_must_be_positive_numbers(factors):
    X, y = table(30)
    with pytest.raises(ValueError, match="length_scale_factors"):
        KernelBoostingRegressor(kernel=Gaussian(), length_scale_factors=factors).fit(X, y)


def test_kernels_of_raw_numbers_see_them():
    X, y = table(40)
    gram = Gaussian(1.0).block(X, X)
    rows = np.arange(40)[:, None]
    model = KernelBoostingRegressor(kernel=Precomputed(gram), regularization=0.1).fit(rows, y)
    twin = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, standardize=False)
    np.testing.assert_allclose(model.predict(rows), twin.fit(X, y).predict(X), atol=1e-8)
    bits = (X > 0).astype(float)
    model = KernelBoostingRegressor(kernel=2.0 * Tanimoto(), regularization=0.1).fit(bits, y)
    assert not model.model_.stages[0].terms[0].model.inputs.center.any()


def test_a_constant_pixel_does_not_change_the_common_scale():
    X = np.random.default_rng(0).normal(size=(100, 80))
    X[:, 0] = 0
    y = -X[:, 1]
    model = KernelBoostingRegressor(kernel=Gaussian(9.0), regularization=0.1)
    np.testing.assert_allclose(
        model.fit(1e-4 * X, y).predict(1e-4 * X), model.fit(X, y).predict(X), atol=1e-8
    )


def test_validation_data_turn_early_stopping_on_unless_it_is_off():
    X, y = table(100)
    # n_basis is a parameter of sparse stages, and so makes stages sparse.
    parameters = {"kernel": "gaussian", "regularization": 1e-3, "n_basis": 10, "n_estimators": 30}
    rng = np.random.default_rng(0)
    held_out = {"X_val": X[60:], "y_val": rng.normal(size=40)}
    model = KernelBoostingRegressor(**parameters, n_iter_no_change=3, random_state=0)
    assert model.fit(X[:60], y[:60], **held_out).n_estimators_ < 30
    model.set_params(early_stopping=False).fit(X[:60], y[:60], **held_out)
    assert model.n_estimators_ == 30
    assert len(model.history_.validation) == 31
    assert len(model.model_.stages[0].terms[0].model.basis) == 10
