"""Length scales from the gradients of fitted functions."""

import numpy as np
import pytest

from hilboost import KernelBoostingRegressor
from hilboost.backends.threads import ThreadTeam
from hilboost.kernels import Mapped
from hilboost.learners.kernel_machine.tuning.refined_metrics import by_gradients, dependence
from hilboost.learners.kernel_machine.tuning.scoring import Rows
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns


def sampled(X, y):
    y = (y - y.mean()) / (y.std() or 1.0)
    return Rows(X, y[:, None], np.ones(len(X)), np.arange(len(X)))


def test_dependence_finds_effects_curves_and_interactions():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3000, 40))
    for y in (Z[:, 5] + Z[:, 7] ** 2, Z[:, 5] * Z[:, 7]):
        found = dependence(Z, sampled(Z, y).Y)
        assert set(np.argsort(-found)[:2]) == {5, 7}
        assert np.count_nonzero(found) <= 4


@pytest.mark.slow
def test_few_of_many_columns_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 100)) * 10.0 ** rng.uniform(-3, 3, 100)
    scale = X.std(axis=0)
    y = np.sin(2 * X[:, 0] / scale[0]) + X[:, 50] / scale[50] * X[:, 99] / scale[99]
    model = KernelBoostingRegressor(random_state=0).fit(X[:600], y[:600])
    assert model.score(X[600:], y[600:]) > 0.9  # 0.05 with one length scale


@pytest.mark.parametrize("kind", ["constant", "one varies", "two rows"])
def test_degenerate_columns(kind):
    rng = np.random.default_rng(2)
    X = np.ones((2 if kind == "two rows" else 50, 3))
    if kind != "constant":
        X[:, 1] = rng.normal(size=len(X))
    found = by_gradients(Columns.of(3, ()), sampled(X, X[:, 1]), ThreadTeam())
    assert [one.kernel.columns.numeric for one in found[:1]] == [(1,)] * (kind == "one varies")
    for one in found:
        assert np.isfinite(one.kernel.plain.block(X, X)).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_any_loss_can_have_an_additive_kernel(loss):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(400, 6))
    y = 7 + np.sin(3 * X).sum(axis=1)
    assert KernelBoostingRegressor(loss, random_state=0).fit(X, y).score(X, y) > 0.9


def test_a_linear_map_and_a_sum_of_functions_are_found():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(1000, 6))
    families = {
        (one.kernel.family, isinstance(one.kernel.numeric, Mapped))
        for y in (
            np.tanh(X[:, :3].sum(axis=1)) * X[:, 3:].sum(axis=1),
            np.sin(3 * X).sum(axis=1),
        )
        for one in by_gradients(Columns.of(6, ()), sampled(X, y), ThreadTeam())
    }
    assert families == {("matern52", False), ("matern52", True), ("additive", False)}
