"""SY2006, eq. (27), against solving for all weights anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.machines import Staged, penalized

from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Gaussian, Linear, Matern
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.kernel_machine.stage_system import Reweighting
from hilboost.losses import BinomialLogLoss


def direct(F, Q, y, regularization):
    return np.linalg.solve(F.T @ F + regularization * Q, F.T @ y)


def recursion(F, Q, y, regularization):
    """The weights after every stage."""
    machine, c = Reweighting(regularization), np.empty(0)
    for j in range(F.shape[1]):
        residual = y - F[:, :j] @ c
        machine, own, change = machine.after(F[:, j], Q[:j, j], Q[j, j], residual)
        c = np.append(c + change, own)
        yield c


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(1e-3, 10))
def test_random_stages(seed, n_stages, regularization):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(30, n_stages))
    root = rng.normal(size=(n_stages, n_stages + 5))
    Q, y = root @ root.T, rng.normal(size=30)
    for j, c in enumerate(recursion(F, Q, y, regularization), 1):
        expected = direct(F[:, :j], Q[:j, :j], y, regularization)
        np.testing.assert_allclose(c, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("regularization", [1e-3, 0.1, 10.0])
def test_stages_of_kernel_machines(regularization):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, 60)
    A = np.zeros((60, 10))
    for column in A.T:
        column[rng.choice(60, 5, replace=False)] = rng.normal(size=5)
    K = Matern(1.0, 1.5).block(X, X)
    F, Q = K @ A, A.T @ K @ A
    for j, c in enumerate(recursion(F, Q, y, regularization), 1):
        expected = direct(F[:, :j], Q[:j, :j], y, regularization)
        np.testing.assert_allclose(F[:, :j] @ c, F[:, :j] @ expected, atol=1e-10)
        np.testing.assert_allclose(c, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("nearly", [0.0, 1e-14, 1e-9, 1e-5])
def test_dependent_stages_stay_finite(nearly):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    K = Matern(1.0, 1.5).block(X, X)
    A = rng.normal(size=(40, 3))
    A = np.hstack([A, A @ rng.normal(size=(3, 8)) + nearly * rng.normal(size=(40, 8))])
    y = rng.normal(size=40)
    F, Q = K @ A, A.T @ K @ A
    falls = [0.5 * y @ y]
    for j, c in enumerate(recursion(F, Q, y, 0.1), 1):
        assert np.isfinite(c).all()
        residual = y - F[:, :j] @ c
        falls.append(0.5 * residual @ residual + 0.05 * c @ Q[:j, :j] @ c)
    assert (np.diff(falls) <= 1e-6 * falls[0]).all()
    best = direct(F[:, :3], Q[:3, :3], y, 0.1)
    reached = y - F[:, :3] @ best
    limit = 0.5 * reached @ reached + 0.05 * best @ Q[:3, :3] @ best
    assert falls[-1] <= limit * (1 + 1e-6)


def test_a_stage_of_zeros_changes_nothing():
    machine = Reweighting(0.5)
    y = np.arange(4.0)
    machine, _, _ = machine.after(np.ones(4), np.empty(0), 1.0, y)
    _, own, change = machine.after(np.zeros(4), np.zeros(1), 0.0, y - y.mean())
    assert np.isfinite(own)
    np.testing.assert_array_equal(change, [0.0])


def refitted(staged, regularization, r):
    """What all stages give with weights solved for at once, column by column."""
    X, target = staged.X, staged.target
    weight = np.ones(len(X)) if target.weight is None else target.weight
    models = [fitted[0].term.model for fitted in staged.fitted]
    raw = np.empty((len(X), r))
    for k in range(r):
        Q = np.zeros((len(models), len(models)))
        for i, one in enumerate(models):
            for j, other in enumerate(models):
                if one.kernel is other.kernel:
                    block = one.kernel.block(one.basis, other.basis)
                    Q[i, j] = one.weights[:, k] @ block @ other.weights[:, k]
        F = np.column_stack([model.predict_raw(X)[:, k] for model in models])
        root = np.sqrt(weight)
        c = direct(root[:, None] * F, Q, root * target.y[:, k], regularization)
        raw[:, k] = F @ c
    return raw


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [1, 2])
@pytest.mark.parametrize("factors", [(), (0.4, 1.0, 2.0)], ids=["one-kernel", "several"])
@pytest.mark.parametrize("solver", ["closed_form", "conjugate_gradient"])
def test_the_model_is_the_direct_solution(weighted, r, factors, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.column_stack([np.sin((2 + k) * X[:, 0]) for k in range(r)])
    Y += rng.normal(0, 0.2, size=Y.shape)
    target = Target(Y, rng.uniform(0.3, 3, 60) if weighted else None)
    learner = SparseLearner(
        KernelMachineConfig(kernel=Gaussian(1.0), regularization=0.2, standardize=False),
        n_basis=4,
        subset_size=30,
        reweight=True,
        length_scale_factors=factors,
        solver=solver,
    )
    staged = Staged(learner, X, target, r=r)
    for _ in range(5):
        staged.go()
        expected = refitted(staged, 0.2, r)
        np.testing.assert_allclose(staged.raw, expected, atol=1e-8)
    if factors:
        assert len(staged.data.record.components) > 1
    np.testing.assert_allclose(staged.predicted(X), staged.raw, atol=1e-9)
    parts = [part for stage in staged.stages for part in stage.terms]
    total = np.zeros_like(staged.raw)
    type(parts[0].model).sum_of(parts).add_to(total, X, 1)
    np.testing.assert_allclose(total, staged.raw, atol=1e-9)


def test_stages_with_all_basis_vectors_are_reweighted_and_resumed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    target = Target(np.sin(2 * X[:, :1]) + rng.normal(0, 0.2, size=(60, 1)))
    setting = KernelMachineConfig(kernel=Gaussian(1.0), regularization=0.2, standardize=False)
    learner = SparseLearner(setting, n_basis=4, reweight=True, refit_every=2)
    staged = Staged(learner, X, target)
    for _ in range(6):
        staged.go()
        np.testing.assert_allclose(staged.raw, refitted(staged, 0.2, 1), atol=1e-8)
    again = Staged(learner, X, target)
    again.stages, again.raw = staged.stages[:], staged.raw.copy()
    terms = [term for stage in staged.stages for term in stage.terms]
    learner.restore(again.data, learner.snapshot(staged.data), terms)
    np.testing.assert_array_equal(again.go().raw, staged.go().raw)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factors", [(), (0.4, 1.0)], ids=["kernels", "kernels-and-scales"])
def test_several_kernels_give_the_direct_solution(weighted, factors):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[1] = X[0]  # equal rows are merged
    Y = np.column_stack([np.sin(3 * X[:, 0]) + X[:, 1], X[:, 1] - X[:, 0]])
    Y += rng.normal(0, 0.2, size=Y.shape)
    target = Target(Y, rng.uniform(0.3, 3, 60) if weighted else None)
    kernels = (Linear(), Gaussian(1.0), Matern(1.0, 1.5))
    setting = KernelMachineConfig(regularization=0.2, standardize=False, kernels=kernels)
    own = {"n_basis": 4, "subset_size": 30, "length_scale_factors": factors, "reweight": True}
    staged = Staged(SparseLearner(setting, **own), X, target, r=2)
    for _ in range(7):
        staged.go()
        np.testing.assert_allclose(staged.raw, refitted(staged, 0.2, 2), atol=1e-8)
        record = staged.data.record
        total = sum(part.function for part in record.components)
        np.testing.assert_allclose(sum(record.functions), total, atol=1e-9)
        distinct = staged.data.workspace.distinct
        np.testing.assert_allclose(total[distinct.group], staged.raw, atol=1e-9)
    found = staged.data.record.stage_kernels
    assert len(set(found.chosen)) > 1
    assert (found.norms[-1] > 0).sum() == len(set(found.chosen))
    np.testing.assert_allclose(staged.predicted(X), staged.raw, atol=1e-9)


def test_several_kernels_need_squared_error_and_the_memory_of_all_stages():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    target = Target((X[:, :1] > 0).astype(float))
    setting = KernelMachineConfig(
        regularization=0.2,
        memory_budget=2.0**27 + 3 * 16 * 60 + 3 * 8 * 4**2,
        kernels=(Linear(), Gaussian(1.0)),
    )
    learner = SparseLearner(setting, n_basis=4, reweight=True)
    with pytest.raises(IncompatibleParts, match="reweight=True requires squared error"):
        Staged(learner, X, target, BinomialLogLoss()).go()
    with pytest.raises(IncompatibleParts, match="requires the same rows in all stages"):
        Staged(learner, X, target, rows=np.arange(30)).go()
    staged = Staged(learner, X, target).go(3)
    with pytest.raises(InvalidParameter, match="reweighting 4 stages on 60 rows requires"):
        staged.go()


def test_new_weights_lower_the_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    target = Target(np.sin(3 * X[:, :1]) + rng.normal(0, 0.2, size=(60, 1)))
    kernel = Gaussian(1.0)
    K = kernel.block(X, X)
    reached = []
    for reweight in (False, True):
        setting = KernelMachineConfig(kernel=kernel, regularization=0.2, standardize=False)
        learner = SparseLearner(setting, n_basis=4, reweight=reweight)
        staged = Staged(learner, X, target)
        falls = []
        for _ in range(8):
            staged.go()
            alpha = staged.data.component(kernel, 1).alpha
            np.testing.assert_allclose(K @ alpha, staged.raw, atol=1e-9)
            falls.append(penalized(staged.loss, target, K, alpha, 0.2))
        assert (np.diff(falls) < 1e-10).all()
        reached.append(falls)
    assert reached[1][1] <= reached[0][1] + 1e-12  # the same two stages, better weights


@pytest.mark.parametrize("r", [1, 2])
def test_memory_of_all_stages_is_counted(r):
    """16 n r bytes a stage, 2 or 4 MiB here, beside the 128 MiB that any stage may take."""
    n = 2**17
    X = np.linspace(-3, 3, n)[:, None]
    setting = KernelMachineConfig(
        kernel=Gaussian(1.0),
        regularization=0.2,
        standardize=False,
        memory_budget=2.0**27 + 2 * 16 * n * r + 2.0**19,
    )
    learner = SparseLearner(setting, n_basis=4, subset_size=30, reweight=True)
    staged = Staged(learner, X, Target(np.sin(X) * np.ones(r)), r=r).go(2)
    budget, needed = 128 + 4 * r + 1, 128 + 6 * r
    message = (
        rf"is {budget} MiB, but reweighting 3 stages on {n} rows requires {needed} MiB. .* fewer"
    )
    with pytest.raises(InvalidParameter, match=message + r" stages \(n_estimators\)"):
        staged.go()
    assert len(staged.stages) == 2
