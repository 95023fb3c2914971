"""Losses with corners reach the optimum of the penalized objective, as computed by its dual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC
from tests.cases import LOSSES
from tests.reference.penalized import in_units_of_fit, least, objective
from tests.reference.penalized_fits import STAGES, rows_of, table

from hilboost import BoostingClassifier, KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.callbacks import Checkpoint
from hilboost.core.target import Target
from hilboost.kernels import Constant, Gaussian, Linear, Matern, OnColumns, Sum

CORNERS = [case for case in LOSSES if not case.smooth]
ABSOLUTE = next(case for case in CORNERS if case.id == "absolute_error")
LIST = [OnColumns(Gaussian(1.0), [0]), OnColumns(Matern(2.0, 1.5), [1]), 0.5 * Linear()]
KERNELS = {"one": [Gaussian(1.0)], "list": LIST}


def fitted(case, stages, kernels, X, target, lam, **parameters):
    is_classes = case.estimator is BoostingClassifier
    estimator = KernelBoostingClassifier if is_classes else KernelBoostingRegressor
    model = estimator(
        case.make(),
        kernel=list(kernels) if len(kernels) > 1 else kernels[0],
        regularization=lam,
        stages=stages,
        standardize=False,
        random_state=0,
        **parameters,
    )
    return model.fit(X, case.labels(target.y), sample_weight=target.weight)


def distance(case, model, kernels, X, target, lam, of_basis=False):
    """How far the objective lies above the optimum, relative to it.

    ``of_basis``: the optimum over the span of the model's basis vectors.
    """
    K, start, loss = Sum(kernels).block(X, X), model.model_.initial_raw, case.make()
    alpha = np.zeros((len(X), len(start)))
    for stage in model.model_.stages:
        for part in stage.terms:
            rows = rows_of(part.model.basis, X)
            np.add.at(alpha[:, part.columns], rows, part.coefficient * part.model.weights)
    alpha = in_units_of_fit(loss, target, alpha)[2]
    loss, target, start = in_units_of_fit(loss, target, start)
    found = objective(loss, target, start + K @ alpha, np.sum(alpha * (K @ alpha)), lam)
    if of_basis:
        basis = alpha.any(axis=1)
        values, vectors = np.linalg.eigh(K[np.ix_(basis, basis)])
        features = K[:, basis] @ (vectors / np.sqrt(np.maximum(values, 1e-13)))
        K = features @ features.T
    return found / least(loss, target, K, start, lam) - 1


def separable(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    score = np.sin(2 * X[:, 0]) + X[:, 1]
    X, score = X[np.abs(score) > 0.1], score[np.abs(score) > 0.1]
    return X, Target((score[:, None] > 0).astype(float))


@pytest.mark.slow
@given(
    case=st.sampled_from(CORNERS),
    stages=st.sampled_from(STAGES),
    kernels=st.sampled_from(sorted(KERNELS)),
    n=st.integers(10, 40),
    lam=st.sampled_from([1e-2, 0.1, 1.0, 10.0]),
    weighted=st.booleans(),
    repeated=st.booleans(),
)
def test_the_optimum_is_reached(case, stages, kernels, n, lam, weighted, repeated):
    X, target = table(case, n, weighted)
    X = X[np.arange(n) // 2] if repeated else X
    model = fitted(case, stages, KERNELS[kernels], X, target, lam)
    assert abs(distance(case, model, KERNELS[kernels], X, target, lam)) < 1e-3


@pytest.mark.slow
@given(
    case=st.sampled_from(CORNERS),
    kernels=st.sampled_from(sorted(KERNELS)),
    n=st.integers(20, 40),
    n_basis=st.integers(3, 12),
    lam=st.sampled_from([1e-2, 0.1, 1.0]),
    stages=st.sampled_from([{"n_estimators": 1}, {"refit_every": 1}, {"refit_every": 3}]),
    weighted=st.booleans(),
    repeated=st.booleans(),
)
def test_few_basis_vectors_of_a_stage_reach_the_optimum(
    case, kernels, n, n_basis, lam, stages, weighted, repeated
):
    """One stage that over the span of its basis vectors, joint stages that of all rows."""
    X, target = table(case, n, weighted)
    X = X[np.arange(n) // 2] if repeated else X
    model = fitted(case, "sparse", KERNELS[kernels], X, target, lam, n_basis=n_basis, **stages)
    of_basis = "n_estimators" in stages
    assert abs(distance(case, model, KERNELS[kernels], X, target, lam, of_basis)) < 1e-3


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_separable_classes_are_learned(stages, kernels):
    case = next(case for case in CORNERS if case.id == "hinge-2")
    X, target = separable(80, 0)
    model = fitted(case, stages, KERNELS[kernels], X, target, 1e-3)
    assert model.score(X, target.y[:, 0]) >= 0.95
    assert abs(distance(case, model, KERNELS[kernels], X, target, 1e-3)) < 1e-3


def test_the_machine_is_a_support_vector_machine():
    """Of balanced classes, with a constant in the kernel in place of a nearly free intercept."""
    X, target = separable(60, 1)
    y = target.y[:, 0]
    rows = np.concatenate(
        [np.flatnonzero(y == k)[: int(min(y.sum(), (1 - y).sum()))] for k in (0, 1)]
    )
    X, y = X[rows], y[rows]
    kernel = Gaussian(1.0) + Constant(1e4)
    model = KernelBoostingClassifier("hinge", kernel=kernel, regularization=0.1, standardize=False)
    K = Gaussian(1.0).block(X, X)
    other = SVC(C=10.0, kernel="precomputed", tol=1e-8).fit(K, y)
    found = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(found, other.decision_function(K), atol=5e-3)


@pytest.mark.parametrize("case", CORNERS, ids=[case.id for case in CORNERS])
@pytest.mark.usefixtures("iterative")
def test_iterative_solvers_reach_the_optimum_too(case):
    X, target = table(case, 60)
    model = fitted(case, "full", [Gaussian(1.0)], X, target, 0.1)
    assert abs(distance(case, model, [Gaussian(1.0)], X, target, 0.1)) < 1e-3


@pytest.mark.parametrize("stages", STAGES)
def test_the_weights_of_the_kernels_are_shares_of_their_functions(stages):
    X, target = table(ABSOLUTE, 40)
    nested = [Gaussian(1.0) + OnColumns(Linear(), [0]), *LIST]
    model = fitted(ABSOLUTE, stages, nested, X, target, 0.3)
    alpha = np.zeros(len(X))
    for stage in model.model_.stages:
        (part,) = stage.terms
        weights = (part.coefficient * part.model.weights)[:, 0]
        np.add.at(alpha, rows_of(part.model.basis, X), weights)
    squares = [((kernel.block(X, X) @ alpha) ** 2).sum() for kernel in nested]
    np.testing.assert_allclose(model.kernel_weights_, np.array(squares) / sum(squares), atol=1e-8)
    assert len(model.kernels_) == model.n_estimators_


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_an_interrupted_fit_continues(tmp_path, stages, kernels):
    X, target = table(ABSOLUTE, 40)
    y, checkpoint = target.y[:, 0], Checkpoint(tmp_path / "fit.checkpoint")
    whole, continued = (
        KernelBoostingRegressor(
            "absolute_error",
            kernel=KERNELS[kernels] if kernels == "list" else Gaussian(1.0),
            regularization=0.1,
            stages=stages,
            n_basis="auto" if stages == "full" else 10,
            learning_rate=0.5,
            n_estimators=6,
            random_state=0,
        )
        for _ in range(2)
    )
    whole.fit(X, y)
    continued.fit(X, y, callbacks=[checkpoint, lambda event: event.stage == 3])
    continued.fit(X, y, callbacks=[checkpoint])
    np.testing.assert_array_equal(continued.predict(X), whole.predict(X))
    if kernels == "list":
        np.testing.assert_array_equal(continued.kernel_weights_, whole.kernel_weights_)
        np.testing.assert_array_equal(continued.kernels_, whole.kernels_)
