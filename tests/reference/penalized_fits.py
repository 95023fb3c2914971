"""Fits of kernel machines on small tables, and their penalized objectives stage by stage."""

from __future__ import annotations

import numpy as np
from tests.reference.penalized import in_units_of_fit, least, objective

from hilboost import BoostingClassifier, KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.core.target import Target
from hilboost.kernels import Gaussian

KERNEL = Gaussian(1.0)
STAGES = ("full", "sparse", "block")


def table(case, n, weighted=False):
    """Rows (n, 2) and a target of this loss that depends on them."""
    rng = np.random.default_rng(3)
    target = case.target(rng, n, weighted)
    X = rng.normal(size=(n, 2))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    order = np.argsort(target.y[:, 0], kind="stable")[np.argsort(np.argsort(signal))]
    return X, Target(target.y[order], target.weight)


def fitted(case, stages, X, target, lam, **parameters):
    """The estimator on these rows; sparse stages span all of them, blocks hold two thirds."""
    is_classes = case.estimator is BoostingClassifier
    estimator = KernelBoostingClassifier if is_classes else KernelBoostingRegressor
    if stages == "block":
        parameters = {"n_basis": 2 * len(X) // 3, "n_estimators": 100, **parameters}
    if case.name == "log_loss":
        # A bound on the hessian: sure steps, but many.
        parameters = {**parameters, "n_estimators": 400, "tol": 1e-9}
    model = estimator(
        case.make(),
        kernel=KERNEL,
        regularization=lam,
        stages=stages,
        standardize=False,
        random_state=0,
        **parameters,
    )
    return model.fit(X, case.labels(target.y), sample_weight=target.weight)


def rows_of(basis, X):
    """The first row of X that each basis vector equals, in tables that are not scaled."""
    equal = (basis[:, None] == X).all(axis=2)
    assert equal.any(axis=1).all()
    return equal.argmax(axis=1)


def objectives(case, model, X, target, lam):
    """The objective before the first stage and after each, from the weights in the model."""
    K, start = KERNEL.block(X, X), model.model_.initial_raw
    loss, of_fit, start = in_units_of_fit(case.make(), target, start)
    alpha = np.zeros((len(X), len(start)))
    found = [objective(loss, of_fit, start + 0 * alpha, 0.0, lam)]
    for stage in model.model_.stages:
        for part in stage.terms:
            rows = rows_of(part.model.basis, X)  # a fit may have sorted the rows
            np.add.at(alpha[:, part.columns], rows, part.coefficient * part.model.weights)
        weights = in_units_of_fit(case.make(), target, alpha)[2]
        function = K @ weights
        found.append(objective(loss, of_fit, start + function, np.sum(weights * function), lam))
    return np.array(found)


def relative_distances(case, stages, n, lam, weighted=False, **parameters):
    """How far the objective lies above the optimum, before the first stage and after each."""
    X, target = table(case, n, weighted)
    model = fitted(case, stages, X, target, lam, **parameters)
    of_fit = in_units_of_fit(case.make(), target, model.model_.initial_raw)
    lowest = least(*of_fit[:2], KERNEL.block(X, X), of_fit[2], lam)
    return objectives(case, model, X, target, lam) / lowest - 1
