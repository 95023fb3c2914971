import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import KernelBoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Gaussian

PLAIN = {"kernel": Gaussian(1.0), "regularization": 0.05, "standardize": False}


def table(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


@given(st.integers(0, 100))
def test_joint_refit_is_the_direct_solution_over_all_basis_vectors(seed):
    X, y = table()
    weight = np.random.default_rng(seed).integers(1, 3, len(X)).astype(float)
    model = KernelBoostingRegressor(
        **PLAIN,
        stages="sparse",
        n_basis=8,
        n_estimators=4,
        refit_every=3,
        cg_iterations=300,
        random_state=seed,
    ).fit(X, y, weight)
    parts = [part for stage in model.model_.stages for part in stage.terms]
    basis = np.unique(np.concatenate([part.model.basis for part in parts]), axis=0)
    kernel = Gaussian(1.0)
    K, K_SS = kernel.block(X, basis), kernel.block(basis, basis)
    middle = np.average(y, weights=weight)
    right = K.T @ (weight * (y - middle))
    a = np.linalg.solve((K.T * weight) @ K + 0.05 * K_SS + 1e-12 * np.eye(len(basis)), right)
    np.testing.assert_allclose(model.predict(X), K @ a + middle, atol=2e-4)


def test_joint_refit_lowers_the_loss_more_than_a_stage_does():
    X, y = table(400)
    plain = {**PLAIN, "stages": "sparse", "n_basis": 15, "n_estimators": 8, "random_state": 0}
    without = KernelBoostingRegressor(**plain).fit(X, y).history_.train[-1]
    with_refit = KernelBoostingRegressor(**plain, refit_every=3).fit(X, y).history_.train[-1]
    assert with_refit < without


@pytest.mark.parametrize("stages", ["full", "sparse", "block"])
def test_a_budget_too_small_says_what_is_needed(stages):
    X, y = table()
    model = KernelBoostingRegressor(**PLAIN, stages=stages, memory_budget=1000)
    with pytest.raises(InvalidParameter, match=r"requires \d+ MiB"):
        model.fit(X, y)
