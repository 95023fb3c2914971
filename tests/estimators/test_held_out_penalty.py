"""λ of losses other than squared error is chosen by the loss itself."""

import numpy as np
import pytest

from hilboost import BoostingRegressor, KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.core.target import Target
from hilboost.kernels import Gaussian
from hilboost.losses import Gamma, Huber, Poisson

N = 150


def table(name, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + 1000, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    if name == "poisson":
        return X, rng.poisson(np.exp(1 + f)).astype(float)
    if name == "gamma":
        return X, rng.gamma(2.0, np.exp(f) / 2)
    return X, f + 0.2 * rng.standard_t(1.5, size=len(f))


def model(name, **parameters):
    return KernelBoostingRegressor(name, kernel=Gaussian(1.0), random_state=0, **parameters)


def error(fitted, name, X, y):
    mean = fitted.predict(X[N:])
    if name == "huber":
        return np.abs(y[N:] - mean).mean()
    loss = {"poisson": Poisson(), "gamma": Gamma()}[name]
    return loss.value(Target(y[N:, None]), np.log(mean)[:, None]).mean()


@pytest.mark.parametrize("name", ["poisson", "gamma", "huber"])
def test_it_predicts_about_as_well_as_the_best(name):
    X, y = table(name)
    chosen = error(model(name).fit(X[:N], y[:N]), name, X, y)
    grid = [model(name, regularization=10.0**k).fit(X[:N], y[:N]) for k in (-2, -1, 0, 1)]
    assert chosen < 1.1 * min(error(fitted, name, X, y) for fitted in grid)


@pytest.mark.parametrize("stages", ["full", "sparse", "block"])
def test_scores_of_the_exponential_loss_stay_small_on_other_rows(stages):
    X, f = table("huber")
    y = (f > 0).astype(int)
    fitted = KernelBoostingClassifier(
        "exponential", kernel=Gaussian(1.0), stages=stages, random_state=0
    ).fit(X[:N], y[:N])
    p = fitted.predict_proba(X[N:])[np.arange(1000), 1 - y[N:]]
    assert np.sqrt(p / (1 - p)).mean() < 0.8  # exp(-s F), 1 for a constant


@pytest.mark.parametrize("name", ["poisson", "huber"])
def test_it_is_in_units_of_the_sample_weights(name):
    X, y = table(name)
    plain = model(name).fit(X[:N], y[:N])
    weighted = model(name).fit(X[:N], y[:N], np.full(N, 8.0))
    assert weighted.regularization_ == pytest.approx(8 * plain.regularization_, rel=0.02)
    np.testing.assert_allclose(weighted.predict(X[N:]), plain.predict(X[N:]), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_it_is_in_units_of_the_curvature(factor):
    X, y = table("huber")
    plain = model(Huber(1.0)).fit(X[:N], y[:N]).predict(X[N:])
    scaled = model(Huber(factor)).fit(X[:N], factor * y[:N]).predict(X[N:])
    np.testing.assert_allclose(scaled / factor, plain, rtol=1e-3, atol=1e-3)


def test_the_boosting_estimator_chooses_it_too():
    X, y = table("poisson")
    fitted = BoostingRegressor("poisson", learner="kernel", random_state=0).fit(X[:N], y[:N])
    constant = error(_Constant(y[:N].mean()), "poisson", X, y)
    assert error(fitted, "poisson", X, y) < 0.7 * constant


class _Constant:
    def __init__(self, mean):
        self.mean = mean

    def predict(self, X):
        return np.full(len(X), self.mean)
