"""Block dual boosting: to where it converges, and how it draws its rows."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from tests.reference.machines import Staged, penalized, penalized_optimum, ridge

from hilboost.core.errors import InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Matern
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.kernel_learner import BlockLearner
from hilboost.losses import BinomialLogLoss, MultinomialLogLoss

KERNEL = Matern(1.0, 1.5)
LAMBDA = 0.1
SETTING = KernelMachineConfig(kernel=KERNEL, regularization=LAMBDA, standardize=False)


def draw(n=80, r=1, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    Y = np.column_stack([np.sin((2 + k) * X[:, 0]) for k in range(r)])
    Y += rng.normal(0, 0.2, size=Y.shape)
    return X, Target(Y - Y.mean(axis=0), rng.uniform(0.3, 3, n) if weighted else None)


def codes(n_classes, weighted=False):
    X, target = draw(60, weighted=weighted)
    order = np.argsort(np.argsort(target.y[:, 0]))
    return X, Target((order * n_classes // 60).astype(float)[:, None], target.weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_many_stages_are_kernel_ridge_regression(weighted, r):
    X, target = draw(r=r, weighted=weighted)
    staged = Staged(BlockLearner(SETTING, 30), X, target, r=r).go(150)
    K = KERNEL.block(X, X)
    theirs = KernelRidge(alpha=LAMBDA, kernel="precomputed").fit(K, target.y, target.weight)
    np.testing.assert_allclose(staged.raw, theirs.predict(K).reshape(-1, r), atol=1e-6)
    np.testing.assert_allclose(
        staged.data.component(KERNEL, r).alpha, ridge(K, target.y, LAMBDA, target.weight), atol=1e-5
    )
    np.testing.assert_allclose(staged.predicted(X), staged.raw, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_block_of_all_rows_is_the_solution(weighted):
    X, target = draw(weighted=weighted)
    staged = Staged(BlockLearner(SETTING, 1000), X, target).go()
    K = KERNEL.block(X, X)
    expected = K @ ridge(K, target.y, LAMBDA, target.weight)
    np.testing.assert_allclose(staged.raw, expected, atol=1e-10)
    staged.go()
    np.testing.assert_allclose(staged.raw, expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_stage_lowers_the_dual_objective(weighted):
    X, target = draw(weighted=weighted)
    staged = Staged(BlockLearner(SETTING, 10), X, target)
    w = np.ones(80) if target.weight is None else target.weight
    S = KERNEL.block(X, X) + np.diag(LAMBDA / w)
    values = [0.0]
    for _ in range(20):
        staged.go()
        alpha = staged.data.component(KERNEL, 1).alpha[:, 0]
        values.append(0.5 * alpha @ S @ alpha - target.y[:, 0] @ alpha)
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_stages_converge_to_the_penalised_optimum(n_classes, weighted):
    X, target = codes(n_classes, weighted)
    r = 1 if n_classes == 2 else n_classes
    loss = BinomialLogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)
    staged = Staged(BlockLearner(SETTING, 40), X, target, loss, r=r)
    K = KERNEL.block(X, X)
    values = [penalized(loss, target, K, np.zeros((60, r)), LAMBDA)]
    for _ in range(4):
        staged.go(100)
        alpha = staged.data.component(KERNEL, r).alpha
        values.append(penalized(loss, target, K, alpha, LAMBDA))
    assert (np.diff(values) < 1e-9).all()
    expected = penalized_optimum(loss, target, K, r, LAMBDA)
    np.testing.assert_allclose(staged.raw, expected, atol=1e-4)


def test_rows_of_large_residual_are_drawn_first():
    X, target = draw(200)
    y = np.full_like(target.y, 1e-3)
    y[:20] = 5.0

    def drawn(y):
        """The rows of the first block for ten seeds."""
        learner = BlockLearner(SETTING, 20)
        staged = [Staged(learner, X, Target(y), seed=seed).go() for seed in range(10)]
        return [one.fitted[0][0].term.model.rows for one in staged]

    def mean_share(blocks):
        return np.mean([(rows < 20).mean() for rows in blocks])

    blocks = drawn(y)
    assert all(len(np.unique(rows)) == 20 for rows in blocks)
    assert mean_share(blocks) > 0.4
    assert mean_share(drawn(np.ones_like(y))) == pytest.approx(0.1, abs=0.05)


def test_few_rows_with_a_residual():
    X, target = draw()
    y = np.zeros_like(target.y)
    y[3] = 1.0
    staged = Staged(BlockLearner(SETTING, 10), X, Target(y)).go()
    assert np.isfinite(staged.raw).all()
    assert len(staged.fitted[0][0].term.model.rows) == 10
    staged = Staged(BlockLearner(SETTING, 10), X, Target(0 * y)).go(2)
    np.testing.assert_array_equal(staged.raw, 0 * y)


def test_residuals_of_all_sizes():
    X, target = draw()
    y = target.y * 10.0 ** np.linspace(-170, 100, 80)[:, None]
    staged = Staged(BlockLearner(SETTING, 70), X, Target(y)).go(2)
    assert np.isfinite(staged.raw).all()


def test_rows_outside_the_sample_are_not_used():
    X, target = draw(weighted=True)
    inside = np.arange(0, 80, 2)
    staged = Staged(BlockLearner(SETTING, 100), X, target, rows=inside).go(2)
    rows = staged.fitted[0][0].term.model.rows
    np.testing.assert_array_equal(rows, inside)
    K = KERNEL.block(X[inside], X[inside])
    expected = K @ ridge(K, target.y[inside], LAMBDA, target.weight[inside])
    np.testing.assert_allclose(staged.raw[inside], expected, atol=1e-9)


def test_too_little_memory_is_said():
    setting = KernelMachineConfig(kernel=KERNEL, regularization=1.0, memory_budget=1e5)
    staged = Staged(BlockLearner(setting, 70), *draw())
    with pytest.raises(InvalidParameter, match=r"a block of 70 rows requires 1 MiB"):
        staged.go()
