"""Threads change no bit of a model, and fits in several Python threads share the cores."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hilboost import (
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelRidge,
)
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=100)


def numbers_of_blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.slow
def test_default_fits_at_once():
    n_threads, seen = 3, set()

    def predicted(seed):
        model = BoostingRegressor(n_estimators=10, random_state=seed)
        return model.fit(X, Y, callbacks=[look]).predict(X)

    def look(_):
        seen.update(numbers_of_blas_threads())

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(predicted, range(n_threads)))
        assert seen == {1}  # several each would take the cores from each other
        assert numbers_of_blas_threads() == {2}
    np.testing.assert_array_equal(found, [predicted(seed) for seed in range(n_threads)])


KERNEL_MACHINES = {
    "full": lambda: KernelBoostingRegressor(stages="full"),
    "full-robust": lambda: KernelBoostingRegressor("huber", stages="full"),
    "full-classes": lambda: KernelBoostingClassifier("log_loss", stages="full"),
    "block": lambda: KernelBoostingRegressor(stages="block", n_basis=300, n_estimators=3),
    "sparse": lambda: KernelBoostingRegressor(stages="sparse", n_basis=300, n_estimators=2),
    "ridge": lambda: SparseKernelRidge(n_basis=300),
    "several targets": lambda: KernelBoostingRegressor(stages="full"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNEL_MACHINES)
def test_kernel_machines_have_the_same_bits_on_any_number_of_threads(name):
    rng = np.random.default_rng(0)
    n = 270 if name == "ridge" else 500
    X = rng.normal(size=(n, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)
    y = (y > 0).astype(int) if name == "full-classes" else y
    y = y[:, None] + rng.normal(size=(n, 30)) if name == "several targets" else y
    model = KERNEL_MACHINES[name]().set_params(random_state=0)
    if name != "ridge":  # which chooses its kernel as the others do, for seconds
        model.set_params(kernel=Gaussian(2.0))
    found = [model.set_params(n_jobs=n_jobs).fit(X, y).predict(X) for n_jobs in (1, 3)]
    np.testing.assert_array_equal(*found)
