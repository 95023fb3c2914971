"""Kernel ridge regression on all rows: both solvers against dense algebra."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from tests.reference.machines import Staged, penalized, penalized_optimum

from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Matern
from hilboost.kernels.symmetric import SymmetricGram
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.conjugate_gradients import (
    ConjugateGradients,
    Features,
    Nystroem,
    nystroem_factor,
    solve_rows,
)
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.losses import AbsoluteError, BinomialLogLoss, MultinomialLogLoss, Poisson

KERNEL = Matern(1.0, 1.5)
LAMBDA = 0.1
SETTING = KernelMachineConfig(kernel=KERNEL, regularization=LAMBDA, standardize=False)


def draw(n=150, r=1, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    Y = np.column_stack([np.sin((2 + k) * X[:, 0]) for k in range(r)])
    Y += rng.normal(0, 0.2, size=Y.shape)
    return X, Target(Y - Y.mean(axis=0), rng.uniform(0.3, 3, n) if weighted else None)


def codes(n_classes, weighted=False, n=60):
    X, target = draw(n, weighted=weighted)
    order = np.argsort(np.argsort(target.y[:, 0]))
    return X, Target((order * n_classes // n).astype(float)[:, None], target.weight)


def theirs(X, target):
    K = KERNEL.block(X, X)
    model = KernelRidge(alpha=LAMBDA, kernel="precomputed").fit(K, target.y, target.weight)
    return model.predict(K).reshape(target.y.shape)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
def test_one_direct_stage_is_the_solution(weighted, r):
    X, target = draw(r=r, weighted=weighted)
    staged = Staged(FullLearner(SETTING), X, target, r=r).go()
    assert staged.data.converged
    np.testing.assert_allclose(staged.raw, theirs(X, target), atol=1e-10)
    np.testing.assert_allclose(staged.predicted(X), staged.raw, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_conjugate_steps_reach_it(weighted, r, kept, iterative, monkeypatch):
    X, target = draw(700, r=r, weighted=weighted)
    if not kept:
        monkeypatch.setattr(SymmetricGram, "n_bytes", np.inf)
    learner = FullLearner(SETTING, n_landmarks=100, tolerance=1e-9)
    staged = Staged(learner, X, target, r=r)
    n_stages = 0
    while not staged.data.converged and n_stages < 30:
        staged.go()
        n_stages += 1
    assert staged.data.converged
    assert n_stages > 1
    np.testing.assert_allclose(staged.raw, theirs(X, target), atol=1e-6)
    alpha = staged.data.component(KERNEL, r).alpha
    K = KERNEL.block(X, X)
    np.testing.assert_allclose(K @ alpha, staged.raw, atol=1e-8)


def test_the_tolerance_is_of_the_first_residual(iterative):
    X, target = draw(700)
    learner = FullLearner(SETTING, n_landmarks=50, iterations=1, tolerance=1e-2)
    staged = Staged(learner, X, target)
    K = KERNEL.block(X, X)
    first = np.linalg.norm(target.y)
    for _ in range(60):
        staged.go()
        alpha = staged.data.component(KERNEL, 1).alpha
        left = np.linalg.norm(target.y - K @ alpha - LAMBDA * alpha) / first
        assert staged.data.converged == (left <= 1e-2)
        if staged.data.converged:
            break
    assert staged.data.converged


def test_iterations_do_not_outlast_the_solution(iterative):
    X, target = draw(100)
    staged = Staged(FullLearner(SETTING, tolerance=0.0), X, target).go(5)
    np.testing.assert_allclose(staged.raw, theirs(X, target), atol=1e-8)
    staged = Staged(FullLearner(SETTING), X, Target(0 * target.y)).go(2)
    np.testing.assert_array_equal(staged.raw, 0 * target.y)


def spd(n=40, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T / n + np.diag(rng.uniform(0.1, 2, n)), rng.normal(size=(n, 3))


def test_going_on_equals_one_long_search():
    S, b = spd()
    search = ConjugateGradients(lambda v: S @ v, lambda v: v / np.diag(S)[:, None])
    long = search.run(b, 12, 0.0)
    y, residual, progress = np.zeros_like(b), b, None
    for _ in range(4):
        short = search.run(residual, 3, 0.0, progress)
        y, residual, progress = y + short.x, residual - short.Sx, short.progress
    np.testing.assert_allclose(y, long.x, rtol=1e-10)
    np.testing.assert_allclose(long.Sx, S @ long.x, rtol=1e-9)
    assert short.left == pytest.approx(long.left, rel=1e-6)
    assert long.left == pytest.approx(np.linalg.norm(b - S @ long.x, axis=0).max(), rel=1e-6)


def test_another_residual_begins_anew():
    S, b = spd()
    search = ConjugateGradients(lambda v: S @ v, lambda v: v)
    progress = search.run(b, 5, 0.0).progress
    np.testing.assert_array_equal(
        search.run(2 * b, 5, 0.0, progress).x, search.run(2 * b, 5, 0.0).x
    )


def test_conjugate_gradients_end_where_nothing_is_left():
    S, b = spd(10)
    search = ConjugateGradients(lambda v: S @ v, lambda v: v)
    found = search.run(b, 200, 0.0)
    np.testing.assert_allclose(found.x, np.linalg.solve(S, b), rtol=1e-8)
    assert found.left < 1e-10
    found = search.run(0 * b, 5, 0.0)
    assert found.left == 0
    assert not found.x.any()
    b[:, 1] = 0  # one column of several is done before the others
    found = search.run(b, 60, 1e-12)
    np.testing.assert_allclose(found.x, np.linalg.solve(S, b), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("varied", [False, True])
def test_the_preconditioner_inverts(varied):
    rng = np.random.default_rng(0)
    Q, R = rng.normal(size=(60, 7)), rng.normal(size=(60, 2))
    D = rng.uniform(0.1, 2, 60) if varied else np.full(60, 0.3)
    blocks = [(rows, Q[rows]) for rows in (slice(0, 40), slice(40, 60))]
    inverse = Nystroem(Features(60, blocks, np.abs(Q).max(), ThreadTeam()), D)
    np.testing.assert_allclose((Q @ Q.T + np.diag(D)) @ inverse(R), R, atol=1e-10)
    np.testing.assert_allclose(inverse((Q @ Q.T + np.diag(D)) @ R), R, atol=1e-10)


def test_the_factor_is_that_of_nystroem():
    X, _ = draw(600)
    landmarks = np.arange(0, 600, 20)
    gram = SymmetricGram(KERNEL, X, 0.0, ThreadTeam())
    Q, _ = nystroem_factor(gram, landmarks, 0.1)
    K = KERNEL.block(X, X)
    expected = K[:, landmarks] @ np.linalg.solve(K[np.ix_(landmarks, landmarks)], K[landmarks])
    ((_, whole),) = Q.blocks
    np.testing.assert_allclose(whole @ whole.T, expected, atol=1e-4)


def test_rows_are_solved_in_blocks():
    rng = np.random.default_rng(0)
    factor = np.tril(rng.normal(size=(1100, 1100))) / 100 + np.eye(1100)
    rows = rng.normal(size=(5, 1100))
    found = rows.copy()
    solve_rows(factor, [found[:2], found[2:]], ThreadTeam())
    np.testing.assert_allclose(found @ factor.T, rows, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("direct", [True, False])
def test_log_loss_converges_to_the_penalised_optimum(n_classes, weighted, direct, request):
    if not direct:
        request.getfixturevalue("iterative")
    X, target = codes(n_classes, weighted)
    r = 1 if n_classes == 2 else n_classes
    loss = BinomialLogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)
    learner = FullLearner(SETTING, tolerance=1e-9)
    staged = Staged(learner, X, target, loss, r=r)
    K = KERNEL.block(X, X)
    values = [penalized(loss, target, K, np.zeros((60, r)), LAMBDA)]
    for _ in range(600):
        staged.go()
        alpha = staged.data.component(KERNEL, r).alpha
        values.append(penalized(loss, target, K, alpha, LAMBDA))
        if staged.data.converged:
            break
    assert (np.diff(values) < 1e-9).all()
    expected = penalized_optimum(loss, target, K, r, LAMBDA)
    np.testing.assert_allclose(staged.raw, expected, atol=1e-4)


def test_one_factor_serves_all_logistic_stages():
    X, target = codes(2)
    staged = Staged(FullLearner(SETTING), X, target, BinomialLogLoss()).go()
    factored = staged.data.equations[0].factored
    staged.go(3)
    assert factored is not None
    assert staged.data.equations[0].factored is factored


def test_a_moving_hessian_is_bounded_anew():
    X, target = draw(60)
    counts = Target(np.round(np.exp(target.y)))
    staged = Staged(FullLearner(SETTING), X, counts, Poisson()).go(5)
    assert np.isfinite(staged.raw).all()


@pytest.mark.parametrize("direct", [True, False])
def test_shrunken_stages_go_on(direct, request):
    """What is left of the linear system is known only when the stage is added whole."""
    if not direct:
        request.getfixturevalue("iterative")
    X, target = draw()
    staged = Staged(FullLearner(SETTING, tolerance=1e-6), X, target)
    n_stages = 0
    while not staged.data.converged and n_stages < 60:
        staged.go(factor=0.5)
        n_stages += 1
    assert 15 < n_stages < 40
    np.testing.assert_allclose(staged.raw, theirs(X, target), atol=1e-5)


def test_a_loss_without_hessian_is_not_solved_by_one_stage():
    X, target = draw()
    staged = Staged(FullLearner(SETTING), X, target, AbsoluteError()).go(factor=0.7)
    assert not staged.data.converged


def test_rows_cannot_be_left_out():
    X, target = draw()
    with pytest.raises(IncompatibleParts, match="subsample=1"):
        Staged(FullLearner(SETTING), X, target, rows=np.arange(50)).go()


def test_too_little_memory_is_said():
    setting = KernelMachineConfig(kernel=KERNEL, regularization=1.0, memory_budget=2**20)
    staged = Staged(FullLearner(setting), *draw(600))
    with pytest.raises(
        InvalidParameter, match=r"is 1 MiB, but preconditioning .* requires \d+ MiB"
    ):
        staged.go()
