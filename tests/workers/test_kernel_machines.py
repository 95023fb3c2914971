"""Kernel machines: every worker has all rows, and evaluates some of the kernel values."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import (
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.kernels import Gaussian, Linear, gram, symmetric
from hilboost.learners.kernel_machine import full

RNG = np.random.default_rng(0)
N = 512
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
GIVEN = {"kernel": Gaussian(1.0), "regularization": 0.01, "random_state": 0}
SPARSE = {"stages": "sparse", "n_basis": 60, "n_estimators": 3}
FULL = {"stages": "full", "n_estimators": 3}
MODELS = [
    KernelBoostingRegressor(**SPARSE | GIVEN),
    KernelBoostingRegressor(**SPARSE, tuning="mean_distance", random_state=0),
    KernelBoostingRegressor(**SPARSE | GIVEN | {"subset_size": 200, "refit_every": 1}),
    KernelBoostingRegressor("huber", **SPARSE | GIVEN),
    KernelBoostingClassifier(**SPARSE | GIVEN, early_stopping=True),
    SparseKernelRidge(n_basis=60, **GIVEN),
    SparseKernelClassifier(n_basis=40, **GIVEN),
    KernelBoostingRegressor(**FULL | GIVEN),
    KernelBoostingRegressor(**FULL, tuning="mean_distance", random_state=0),
    KernelBoostingRegressor("huber", **FULL | GIVEN),
    KernelBoostingClassifier(**FULL | GIVEN),
    KernelBoostingClassifier("exponential", **FULL | GIVEN, early_stopping=True),
    KernelBoostingRegressor(stages="block", n_basis=100, n_estimators=3, **GIVEN),
    KernelBoostingRegressor(**FULL | GIVEN | {"kernel": [Gaussian(1.0), Linear()]}),
]


@pytest.fixture
def small_blocks(monkeypatch):
    """Workers divide kernel values and matrices of few rows, too."""
    for place, rows in (
        ("gram._ROWS_OF_A_WORKER", 128),
        ("gram._ROWS_AT_ONCE", 128),
        ("symmetric._ROWS", 32),
    ):
        monkeypatch.setattr(f"hilboost.kernels.{place}", rows)
    monkeypatch.setattr(full, "DIRECT_UP_TO", 300)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.usefixtures("small_blocks")
def test_the_model_of_one_process(model, weighted):
    """Sums over rows do not depend on their order, nor do the basis vectors that they decide on."""
    n = 416
    inputs, y = X[:n], Y[:n]
    y = np.digitize(y, [-0.5, 0.7]) if hasattr(model, "predict_proba") else y
    weight = RNG.uniform(0.5, 2, size=n) if weighted else None
    alone = clone(model).fit(inputs, y, weight)
    for owners in ([0, 1, 0], [2, 1, 0]):
        parts = partitions_of(inputs, y, weight, cuts=[100, 300])
        for found in fit_together(model, parts, owners):
            assert saved(found) == saved(alone)


@pytest.mark.usefixtures("small_blocks")
def test_workers_divide_the_kernel_values(monkeypatch):
    counted = []
    plain = gram.Gram.block

    def block(self, rows):
        if self.exchange is not None:
            counted.append((self.exchange.rank, rows.stop - rows.start))
        return plain(self, rows)

    monkeypatch.setattr(gram.Gram, "block", block)
    fit_together(MODELS[0], partitions_of(X, Y, cuts=[256]), [0, 1])
    n_rows = [sum(n for rank, n in counted if rank == worker) for worker in (0, 1)]
    assert sum(n_rows) % N == 0
    assert min(n_rows) > 0.4 * sum(n_rows)


@pytest.mark.usefixtures("small_blocks")
def test_workers_divide_the_matrix_of_all_pairs(monkeypatch):
    stored = {}
    plain = symmetric.SymmetricGram.times

    def times(self, V):
        found = plain(self, V)
        stored[self.exchange.rank] = sum(block.size for block in self._triangle)
        return found

    monkeypatch.setattr(symmetric.SymmetricGram, "times", times)
    model = KernelBoostingRegressor(**FULL | GIVEN)
    fit_together(model, partitions_of(X, Y, cuts=[256]), [0, 1])
    whole = 0.5 * N * (N + 32)
    assert sum(stored.values()) == pytest.approx(whole, rel=0.01)
    assert max(stored.values()) < 0.55 * whole
