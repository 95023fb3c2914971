"""The marginal likelihood against scikit-learn's, and its gradient against differences."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs

from hilboost.backends.threads import ThreadTeam
from hilboost.kernels import (
    CallableKernel,
    Constant,
    Delta,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    RationalQuadratic,
    SklearnKernel,
)
from hilboost.kernels.marginal_likelihood import (
    Evidence,
    maximize,
    mean_squared_distance,
    negative_log_likelihood,
)

N = 30
NOISE = 0.1


def draw(n_targets=1, n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1, 2, 4] + [0, 50, 0]
    Y = np.sin(X @ rng.normal(size=(3, n_targets))) + 0.3 * rng.normal(size=(n, n_targets))
    return X, Y


PAIRS = {
    "gaussian": (Gaussian(2.0), theirs.RBF(2.0)),
    "gaussian-3": (Gaussian((1.0, 2.0, 3.0)), theirs.RBF([1.0, 2.0, 3.0])),
    "laplace": (Laplace(2.0), theirs.Matern(2.0, nu=0.5)),
    "matern12": (Matern((1.0, 2.0, 3.0), 0.5), theirs.Matern([1.0, 2.0, 3.0], nu=0.5)),
    "matern32": (Matern(2.0, 1.5), theirs.Matern(2.0, nu=1.5)),
    "matern52": (Matern((1.0, 2.0, 3.0), 2.5), theirs.Matern([1.0, 2.0, 3.0], nu=2.5)),
    "rational_quadratic": (
        RationalQuadratic(2.0, 0.7),
        theirs.RationalQuadratic(alpha=0.7, length_scale=2.0),
    ),
    "scaled": (Gaussian(2.0) * 3, theirs.RBF(2.0) * theirs.ConstantKernel(3.0)),
    "sum": (
        Laplace(2.0) + Constant(0.5) + Gaussian(1.0),
        theirs.Matern(2.0, nu=0.5) + theirs.ConstantKernel(0.5) + theirs.RBF(1.0),
    ),
    "product": (
        Matern(2.0, 2.5) * Laplace((1.0, 3.0, 9.0)) * 0.7,
        theirs.Matern(2.0, nu=2.5)
        * theirs.Matern([1.0, 3.0, 9.0], nu=0.5)
        * theirs.ConstantKernel(0.7),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_value_and_gradient_are_those_of_scikit_learn(name, n_targets):
    ours, other = PAIRS[name]
    X, Y = draw(n_targets)
    X[1] = X[0]  # the slope of some kernels is infinite there
    process = GaussianProcessRegressor(
        other + theirs.WhiteKernel(NOISE), alpha=0.0, optimizer=None
    ).fit(X, Y)
    expected, slope = process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)
    value, gradient = negative_log_likelihood(ours, NOISE, X, Y)
    constant = 0.5 * Y.size * np.log(2 * np.pi)
    np.testing.assert_allclose(-value - constant, expected, rtol=1e-8)
    if name != "rational_quadratic":  # whose theta stands in another order
        np.testing.assert_allclose(gradient, -slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [
        *(ours for ours, _ in PAIRS.values()),
        SklearnKernel(theirs.RBF(2.0)),
        OnColumns(Laplace(2.0), [1, 2]) + OnColumns(Linear(), [0]) * 0.3,
        Linear(),
    ],
    ids=[*PAIRS, "sklearn", "columns", "nothing-to-fit"],
)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_gradient_is_the_derivative_of_the_value(kernel, n_targets):
    X, Y = draw(n_targets)
    theta = np.append(kernel.log_parameters, np.log(NOISE))

    def value(theta):
        moved = kernel.with_log_parameters(theta[:-1])
        return negative_log_likelihood(moved, np.exp(theta[-1]), X, Y)[0]

    step = 1e-5
    numeric = [
        (value(theta + move) - value(theta - move)) / (2 * step)
        for move in step * np.eye(len(theta))
    ]
    gradient = negative_log_likelihood(kernel, NOISE, X, Y)[1]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_threads", [None, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_most_likely_amplitude(weighted, n_threads):
    X, Y = draw(2)
    kernel, weight = Matern((0.5, 0.8, 2.0), 2.5), np.linspace(0.5, 2, N) if weighted else None
    C = kernel.block(X, X) + np.diag(NOISE / (np.ones(N) if weight is None else weight))
    amplitude = np.trace(Y.T @ np.linalg.solve(C, Y)) / Y.size
    densities = [multivariate_normal(cov=amplitude * C).logpdf(y) for y in Y.T]

    def likelihood(theta):
        moved, noise = kernel.with_log_parameters(theta[:-1]), np.exp(theta[-1])
        team = None if n_threads is None else ThreadTeam(n_threads)
        return negative_log_likelihood(moved, noise, X, Y, weight, True, team)

    theta = np.append(kernel.log_parameters, np.log(NOISE))
    value, gradient = likelihood(theta)
    constant = Y.size * 0.5 * np.log(2 * np.pi)
    assert value == pytest.approx(-np.sum(densities) - constant, rel=1e-8)
    slope = approx_fprime(theta, lambda theta: likelihood(theta)[0], 1e-6)
    np.testing.assert_allclose(gradient, slope, rtol=1e-3, atol=1e-4)


def test_gradient_of_categories():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(N, 2)).astype(float)
    Y = X[:, :1] + rng.normal(size=(N, 1))
    kernel, step = Delta((0.5, 2.0)), 1e-6
    numeric = [
        (
            negative_log_likelihood(kernel.with_log_parameters(up), NOISE, X, Y)[0]
            - negative_log_likelihood(kernel.with_log_parameters(down), NOISE, X, Y)[0]
        )
        / (2 * step)
        for up, down in (
            (kernel.log_parameters + move, kernel.log_parameters - move)
            for move in step * np.eye(2)
        )
    ]
    gradient = negative_log_likelihood(kernel, NOISE, X, Y)[1]
    np.testing.assert_allclose(gradient[:2], numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", PAIRS)
def test_maximize_improves_and_stops_where_it_is_flat(name):
    kernel, _ = PAIRS[name]
    X, Y = draw(2, n=60)
    start = negative_log_likelihood(kernel, NOISE, X, Y)[0] / Y.size
    best = maximize(kernel, NOISE, X, Y)
    assert isinstance(best, Evidence)
    assert type(best.kernel) is type(kernel)
    assert best.value < start
    value, _ = negative_log_likelihood(best.kernel, best.noise, X, Y)
    np.testing.assert_allclose(value / Y.size, best.value, rtol=1e-9)


def test_maximize_finds_what_drew_the_targets():
    rng = np.random.default_rng(1)
    X = rng.uniform(-5, 5, size=(200, 2))
    truth = Gaussian((1.0, 3.0)) * 4
    K = truth.block(X, X) + 0.01 * np.eye(200)
    Y = np.linalg.cholesky(K) @ rng.normal(size=(200, 5))
    best = maximize(Gaussian((2.0, 2.0)) * 1, 1.0, X, Y)
    np.testing.assert_allclose(best.kernel.log_parameters, truth.log_parameters, atol=0.25)
    np.testing.assert_allclose(np.log(best.noise), np.log(0.01), atol=0.25)


def test_maximize_gives_the_start_back_where_there_is_no_likelihood():
    X, Y = draw()
    kernel = CallableKernel(lambda A, B: -10 * A @ B.T)
    best = maximize(kernel, NOISE, X, Y)
    assert best == Evidence(kernel, NOISE, np.inf)


def test_mean_squared_distance():
    X, _ = draw()
    expected = np.mean(((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(mean_squared_distance(X), expected)
