"""Single sparse kernel machines are the minimizers they say they are."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hilboost import SparseKernelClassifier, SparseKernelRidge
from hilboost.core.errors import DataWarning, InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.kernels import Gaussian, Laplace
from hilboost.kernels.gram import evaluate
from hilboost.learners.kernel_machine.basis import SELECTIONS
from hilboost.learners.kernel_machine.steps import doubling, regular

RNG = np.random.default_rng(0)
N = 160
X = RNG.normal(size=(N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=N)
LABELS = (Y > 1).astype(int)
THREE = np.digitize(Y, [0.3, 1.2])
WEIGHT = RNG.uniform(0.2, 3.0, N)
KERNEL, LAMBDA = Gaussian(1.5), 0.3
PLAIN = {"kernel": KERNEL, "regularization": LAMBDA, "random_state": 0, "n_jobs": 1}


def ridge(**parameters):
    return SparseKernelRidge(**{**PLAIN, "n_basis": 60, **parameters})


def classifier(loss="log_loss", **parameters):
    return SparseKernelClassifier(loss, **{**PLAIN, "n_basis": 60, **parameters})


def parts(model, k=-1):
    """K, K_DD, weights and rows of the machine after stage k."""
    from hilboost.learners.kernel_machine.expansion import merge

    stages = model.model_.stages
    stages = stages[: k + 1] if k >= 0 else stages
    ((expansion, _),) = merge([part for stage in stages for part in stage.terms])
    scaled = expansion.inputs(X)
    K = evaluate(model.kernel_, scaled, expansion.basis)
    return K, evaluate(model.kernel_, expansion.basis, expansion.basis), expansion.weights


# Squared error


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_ridge_solves_equation_6(weight):
    """The direct solution of ``(K'WK + λ K_DD) α = K'W (y - mean)``, for every nested machine."""
    model = ridge().fit(X, Y, weight)
    w = np.ones(N) if weight is None else weight
    y = Y - np.average(Y, weights=w)
    assert model.path_.tolist() == [50, 60]
    for k in range(len(model.path_)):
        K, K_DD, alpha = parts(model, k)
        assert len(alpha) == model.path_[k]
        direct = np.linalg.solve((K.T * w) @ K + LAMBDA * K_DD, (K.T * w) @ y)
        np.testing.assert_allclose(K @ alpha[:, 0], K @ direct, atol=1e-8)
        gradient = (K.T * w) @ (y - K @ alpha[:, 0]) - LAMBDA * K_DD @ alpha[:, 0]
        np.testing.assert_allclose(gradient, 0, atol=1e-8)


def test_staged_predictions_are_those_of_smaller_machines():
    """Forward selection is greedy: its first 50 vectors are those of a search for 50."""
    large, small = ridge(n_candidates=None).fit(X, Y), ridge(n_candidates=None, n_basis=50)
    staged = list(large.staged_predict(X))
    np.testing.assert_allclose(staged[0], small.fit(X, Y).predict(X), atol=1e-8)
    np.testing.assert_allclose(staged[-1], large.predict(X), atol=1e-10)
    errors = [0.5 * np.mean((Y - p) ** 2) for p in staged]
    np.testing.assert_allclose(large.history_.train[1:], errors, atol=1e-10)


def test_all_rows_as_basis_is_kernel_ridge_regression():
    from sklearn.kernel_ridge import KernelRidge

    model = ridge(n_basis=1000, selection="random", regularization=0.5, kernel=Laplace(2.0))
    Z = (X - X.mean(0)) / X.std(0)
    full = KernelRidge(alpha=0.5, kernel="precomputed")
    K = evaluate(Laplace(2.0), Z, Z)
    full.fit(K, Y - Y.mean())
    predicted = model.fit(X, Y).predict(X)
    assert model.n_basis_ == N
    np.testing.assert_allclose(predicted, full.predict(K) + Y.mean(), atol=1e-7)


def test_several_targets_are_as_many_machines_on_one_basis():
    Y2 = np.column_stack([Y, -2 * Y + 1])
    both = ridge().fit(X, Y2).predict(X)
    np.testing.assert_allclose(both[:, 1], -2 * both[:, 0] + 1, atol=1e-8)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_selection(selection):
    model = ridge(selection=selection, n_basis=40, subset_size=120).fit(X, Y)
    assert model.n_basis_ <= 40
    assert model.score(X, Y) > 0.8


def test_kernel_by_itself():
    model = SparseKernelRidge(n_basis=30, random_state=0).fit(X[:60], Y[:60])
    assert model.score(X[60:], Y[60:]) > 0.5
    assert model.regularization_ > 0


def test_held_out_rows_choose_the_number_of_basis_vectors():
    noise = np.random.default_rng(1).normal(size=N)
    model = ridge(n_basis=150, regularization=1e-6, kernel=Gaussian(0.5))
    model.fit(X[:150], Y[:150] + noise[:150], X_val=X[150:], y_val=Y[150:])
    losses = model.history_.validation
    assert len(losses) == 4
    assert losses[model.n_estimators_] == losses.min()
    assert model.path_.tolist() == [50, 100, 150][: model.n_estimators_]
    assert model.n_basis_ == model.path_[-1] < 150


# Other losses, against SciPy


def minimum(model, loss, target, start):
    """Values of the machine on the same basis that SciPy finds, and the objective's gradient."""
    K, K_DD, alpha = parts(model)
    w = np.ones(N) if target.weight is None else target.weight

    def objective(flat):
        a = flat.reshape(alpha.shape)
        raw = start + K @ a
        value = w @ loss.value(target, raw) + 0.5 * LAMBDA * (a * (K_DD @ a)).sum()
        pull = K.T @ (w[:, None] * loss.gradients(target, raw).negative_gradient)
        return value, (LAMBDA * K_DD @ a - pull).ravel()

    found = minimize(
        objective,
        np.zeros(alpha.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50},
    )
    value, gradient = objective(alpha.ravel())
    return start + K @ found.x.reshape(alpha.shape), found.fun, value, gradient


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_other_losses_reach_their_minimum(loss, weight, y):
    model = classifier(loss, n_basis=25, tol=1e-14).fit(X, y, weight)
    target = Target(y[:, None].astype(float), weight)
    raw, lowest, value, gradient = minimum(model, model.loss_, target, model.model_.initial_raw)
    assert np.abs(gradient).max() < 1e-4
    assert value <= lowest + 1e-9 * abs(lowest)
    own = model.decision_function(X).reshape(raw.shape)
    np.testing.assert_allclose(own, raw, atol=1e-3)


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_squared_error_is_least_squares_on_indicators(y):
    model = classifier("squared_error").fit(X, y)
    K, K_DD, alpha = parts(model)
    indicators = (y[:, None] == ([1] if y is LABELS else [0, 1, 2])).astype(float)
    r = indicators - indicators.mean(axis=0)
    direct = np.linalg.solve(K.T @ K + LAMBDA * K_DD, K.T @ r)
    np.testing.assert_allclose(K @ alpha, K @ direct, atol=1e-8)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_each_nested_machine_is_fitted(loss):
    model = classifier(loss, n_basis=120, regularization=0.01).fit(X, LABELS)
    assert model.path_.tolist() == doubling(model.n_basis_)
    assert len(model.model_.stages) == len(model.path_)
    assert model.n_iter_ > len(model.path_)
    staged = list(model.staged_predict(X))
    assert len(staged) == len(model.path_)
    np.testing.assert_array_equal(staged[-1], model.predict(X))


def test_squared_hinge_has_no_probabilities():
    model = classifier("squared_hinge").fit(X, LABELS)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "staged_predict_proba")
    with pytest.raises(AttributeError) as caught:
        _ = model.predict_proba
    assert "fit with loss='log_loss'" in str(caught.value.__cause__)
    for loss in ("log_loss", "squared_error"):
        proba = classifier(loss).fit(X, THREE).predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_regularization_by_the_held_out_loss(loss, y):
    """Separable classes: least squares would take λ far too small for log loss."""
    model = classifier(loss, regularization="auto", n_basis=40).fit(X[:100], y[:100])
    small = classifier(loss, regularization=1e-7, n_basis=40).fit(X[:100], y[:100])
    target = Target(y[100:, None].astype(float))

    def held_out(m):
        raw = m.decision_function(X[100:]).reshape(60, -1)
        return m.loss_.value(target, raw).mean()

    assert 1e-6 < model.regularization_ < 10
    assert held_out(model) < held_out(small)
    assert len(pickle.dumps(model.learner_)) < 2000  # without the training rows


def test_steps_that_do_not_suffice():
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps; increase max_iter"):
        classifier(max_iter=1, regularization=1e-4).fit(X, LABELS)


# Weights, odd data


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ridge, Y),
        (classifier, LABELS),
        (classifier, THREE),
        (lambda **p: classifier("squared_hinge", **p), LABELS),
    ],
)
def test_a_weight_of_two_is_the_row_twice(model, y):
    counts = np.random.default_rng(3).integers(0, 4, 70)
    rows = np.repeat(np.arange(70), counts)
    made = model(n_basis=70, n_candidates=None, selection="random")
    once = clone(made).set_params(**({} if model is ridge else {"tol": 1e-13}))
    twice = clone(once).set_params(n_basis=1000)
    weighted = once.fit(X[:70], y[:70], counts)
    repeated = twice.fit(X[rows], y[rows])
    score = "predict" if model is ridge else "decision_function"
    np.testing.assert_allclose(getattr(weighted, score)(X), getattr(repeated, score)(X), atol=2e-5)


@pytest.mark.parametrize("kernel", [KERNEL, "auto"])
def test_constant_target(kernel):
    model = ridge(kernel=kernel).fit(X[:40], np.full(40, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)
    assert model.n_basis_ == 1


@pytest.mark.parametrize("model", [ridge, classifier])
def test_missing_values_are_refused(model):
    holed = X.copy()
    holed[3, 1] = np.nan
    with pytest.raises(InvalidData, match="NaN in column 1, which is supported only with kernel="):
        model(kernel="gaussian").fit(holed, LABELS)


# Memory


def test_the_basis_ends_where_memory_does():
    budget = 2.0**27 + 8 * N * 20 + 8 * N * N  # 20 columns of float64, and the kernel of the search
    with pytest.warns(DataWarning, match="suffices for 20 instead of 60 basis vectors .* Increase"):
        model = ridge(memory_budget=budget).fit(X, Y)
    assert model.n_basis_ == 20
    assert model.score(X, Y) > 0.5
    with pytest.raises(InvalidParameter, match="one basis vector, chosen among 160 rows, requires"):
        ridge(memory_budget=1e6).fit(X, Y)


def test_all_candidates_of_many_rows_are_refused():
    many = np.random.default_rng(0).normal(size=(6100, 1))
    with pytest.raises(InvalidParameter, match="scores all 6100 rows .* set subset_size"):
        ridge(n_candidates=None).fit(many, -many[:, 0])
    model = ridge(n_candidates=None, subset_size=50, n_basis=5).fit(many, -many[:, 0])
    assert model.score(many, -many[:, 0]) > 0.9


# The rest of the shell


def test_time_budget():
    model = classifier(n_basis=120, time_budget=1e-9).fit(X, LABELS)
    assert model.n_iter_ == 1
    assert model.path_[-1] == model.n_basis_ < 120


def test_the_same_seed_the_same_model_on_any_threads():
    one, two = (ridge(n_jobs=k).fit(X, Y).predict(X) for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    other = ridge(random_state=1, n_candidates=5).fit(X, Y).predict(X)
    assert not np.array_equal(one, other)


def test_sizes_of_nested_machines():
    assert [regular(D) for D in (7, 50, 120)] == [[7], [50], [50, 100, 120]]
    assert len(regular(5000)) == 20
    assert regular(5000)[-1] == 5000
    assert doubling(680) == [85, 170, 340, 680]
    assert doubling(99) == [99]
