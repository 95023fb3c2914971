"""Kernel machines whose linear systems are ill-conditioned: near the solution, or a warning."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.reference.machines import Staged, penalized, ridge

from hilboost import KernelBoostingRegressor
from hilboost.core.target import Target
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.losses import SquaredError

N = 2200
BUDGET = 152e6  # enough for conjugate gradients, not for a factor of all rows


def drawn(seed):
    """Rows, noisy values of a function, and a kernel of many more dimensions than landmarks."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    X = rng.uniform(size=(N, d)) if rng.random() < 0.5 else rng.normal(0, 0.3, size=(N, d))
    y = np.sin(6 * X[:, 0]) + X[:, -1] ** 2 + rng.normal(0, 0.1, size=N)
    return X, (y - y.mean())[:, None], Gaussian(rng.uniform(0.7, 1.5) * [0.002, 0.04, 0.15][d - 1])


def machine(kernel, regularization):
    """A learner with fewer landmarks than the kernel has dimensions."""
    setting = KernelMachineConfig(kernel, regularization, standardize=False, memory_budget=BUDGET)
    return FullLearner(setting, n_landmarks=250)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("regularization", "seed"), [(1e-1, 0), (1e-1, 1), (1e-3, 2), (1e-3, 3), (1e-5, 1), (1e-5, 3)]
)
def test_the_search_reaches_the_solution_and_never_rises(regularization, seed):
    X, y, kernel = drawn(seed)
    staged = Staged(machine(kernel, regularization), X, Target(y))
    K, values = kernel.block(X, X), []
    for _ in range(30):
        staged.go()
        alpha = staged.data.component(kernel, 1).alpha
        values.append(penalized(SquaredError(), Target(y), K, alpha, regularization))
        if staged.data.converged:
            break
    assert staged.data.is_settled
    assert max(values) <= 0.5 * np.sum(y**2) * (1 + 1e-9)
    expected = K @ ridge(K, y, regularization)
    assert np.linalg.norm(staged.raw - expected) < 0.01 * np.linalg.norm(y)


def test_the_search_goes_on_ahead_of_a_function_that_its_steps_would_raise():
    X, y, kernel = drawn(0)
    staged = Staged(machine(kernel, 1e-5), X, Target(y)).go(4)
    data, K = staged.data, kernel.block(X, X)
    system, alpha = data.systems[0], data.component(kernel, 1).alpha
    np.testing.assert_allclose(system.ahead.outputs, K @ system.ahead.weights, atol=1e-6)
    left = y - K @ (alpha + system.ahead.weights) - 1e-5 * (alpha + system.ahead.weights)
    np.testing.assert_allclose(system.progress.residual, left, atol=1e-6 * np.linalg.norm(y))
    restored = machine(kernel, 1e-5).prepare(X, None, 0, 1)
    restored.restore(data.snapshot(), [term for stage in staged.stages for term in stage.terms])
    again = Staged(staged.learner, X, Target(y))
    again.data, again.stages, again.raw = restored, staged.stages[:], staged.raw.copy()
    np.testing.assert_array_equal(again.go(3).raw, staged.go(3).raw)


@pytest.mark.slow
@pytest.mark.parametrize("stages", ["full", "block"])
def test_a_machine_that_does_not_converge_warns(stages):
    X, y, kernel = drawn(0)
    model = KernelBoostingRegressor(
        kernel=kernel,
        regularization=1e-11,
        stages=stages,
        n_basis=60 if stages == "block" else "auto",
        standardize=False,
        memory_budget=BUDGET,
    )
    with pytest.warns(ConvergenceWarning, match="did not converge in [23]0 stages; increase reg"):
        model.fit(X, y[:, 0])
    assert np.mean((model.predict(X) - y[:, 0]) ** 2) < np.mean(y**2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user sets the number of stages
        model.set_params(n_estimators=3).fit(X, y[:, 0])


@pytest.mark.parametrize(
    ("parameters", "atol"),
    [
        ({"stages": "block", "n_basis": 70}, 3e-3),
        ({"stages": "block", "n_basis": 70, "loss": "poisson"}, 0.1),
        ({"stages": "sparse", "loss": "poisson"}, 0.1),
    ],
)
def test_stages_on_samples_of_noisy_rows_do_not_warn(parameters, atol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.abs(np.sin(2 * X[:, 0]) + 2 * rng.normal(size=200))
    model = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=10.0, random_state=0)
    whole = model.set_params(loss=parameters.get("loss", "squared_error")).fit(X, y).predict(X)
    for subsample in (0.8, 0.5):
        model.set_params(subsample=subsample, **parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = model.fit(X, y).predict(X)
        assert np.linalg.norm(found - whole) < atol * np.linalg.norm(y)
    if "loss" not in parameters:
        with pytest.warns(ConvergenceWarning, match="did not converge"):
            model.set_params(regularization=1e-3).fit(X, y)


def test_any_number_of_stages_may_be_small():
    X, y, kernel = drawn(1)
    X, y = X[:30], y[:30, 0]
    settings = {"kernel": kernel, "regularization": 0.1, "standardize": False}
    whole = KernelBoostingRegressor(**settings).fit(X, y).predict(X) - y.mean()
    model = KernelBoostingRegressor(**settings, n_estimators=1100, learning_rate=1e-3).fit(X, y)
    assert model.n_estimators_ == 1100
    share = 1 - (1 - 1e-3) ** 1100
    np.testing.assert_allclose(model.predict(X) - y.mean(), share * whole, atol=1e-8)
