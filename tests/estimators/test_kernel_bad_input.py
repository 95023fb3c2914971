"""Degenerate data and wrong parameters: finite predictions, or a sentence."""

import numpy as np
import pytest
from tests.refusals import refused

from hilboost import KernelBoostingClassifier, KernelBoostingRegressor
from hilboost.core.errors import HilboostError
from hilboost.kernels import CallableKernel, Gaussian, Linear, Matern, Precomputed

STAGES = ["full", "sparse", "block"]
all_stages = pytest.mark.parametrize("stages", STAGES)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
PLAIN = {
    "kernel": Gaussian(1.0),
    "regularization": 0.1,
    "n_estimators": 3,
    "n_basis": 15,
    "random_state": 0,
}
AUTO = {"kernel": "auto", "regularization": "auto"}


def build(**parameters):
    return KernelBoostingRegressor(**PLAIN | parameters)


def outcome(model, X, y):
    """What became of a fit: "refused", or predictions "finite" or "not finite"."""
    try:
        model.fit(X, y)
    except HilboostError:
        return "refused"
    return "finite" if np.isfinite(model.predict(X)).all() else "not finite"


@all_stages
@pytest.mark.parametrize("value", [0.0, 1e12])
@pytest.mark.parametrize("given", [{}, AUTO], ids=["given", "auto"])
def test_constant_targets(stages, value, given):
    model = build(stages=stages, **given).fit(X, np.full(60, value))
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-9)


@all_stages
def test_no_regularization_interpolates(stages):
    model = build(stages=stages, kernel=Matern(1.0, 0.5), regularization=0.0, n_basis=60)
    model.fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-6)


@all_stages
@pytest.mark.parametrize("regularization", [0.0, 0.1])
def test_kernels_of_low_rank(stages, regularization):
    model = build(stages=stages, kernel=Linear(), regularization=regularization, n_basis=60)
    assert outcome(model, X, X @ [1.0, -2.0, 0.5]) == "finite"
    if not regularization:
        np.testing.assert_allclose(model.predict(X), X @ [1.0, -2.0, 0.5], atol=1e-3)


@all_stages
@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("regularization", [0.0, 0.1])
def test_length_scales_that_collapse(stages, scale, regularization):
    for make in (Gaussian, lambda s: Matern(s, 1.5), lambda s: Matern(s, 0.5)):
        model = build(stages=stages, kernel=make(scale), regularization=regularization)
        became = outcome(model, X, Y)
        if scale == 1e-8 and stages != "full" and became == "refused":
            continue  # distances within a row's rounding: kernel values are arbitrary
        if scale == 1e8 and regularization == 0 and became == "refused":
            continue  # a matrix of ones: rounding errors decide whether it can be factored
        assert became == "finite"
        assert np.mean((model.predict(X) - Y) ** 2) <= Y.var() * (1 + 1e-6)
        new = np.random.default_rng(1).normal(size=(20, 3))
        assert np.isfinite(model.predict(new)).all()
        if scale == 1e8 and regularization:
            assert np.abs(model.predict(new) - Y.mean()).max() < 1.0


@all_stages
@pytest.mark.parametrize("solver", ["closed_form", "conjugate_gradient"])
@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: -((A[:, None] - B[None]) ** 2).sum(axis=2),
        lambda A, B: np.tanh(A @ B.T - 1),
        lambda A, B: A @ B.T - 5.0,
    ],
    ids=["negative-distance", "sigmoid", "minus-constant"],
)
def test_kernels_that_are_not_positive(stages, kernel, solver):
    given = PLAIN | {"kernel": CallableKernel(kernel), "stages": stages, "solver": solver}
    for make, loss, y in (
        (KernelBoostingRegressor, "squared_error", Y),
        (KernelBoostingRegressor, "absolute_error", Y),
        (KernelBoostingClassifier, "log_loss", (Y > 0).astype(int)),
    ):
        assert outcome(make(loss, **given), X, y) in ("finite", "refused")


@pytest.mark.parametrize("selection", ["residual", "forward", "information_gain", "rp_cholesky"])
def test_a_random_symmetric_table_is_no_kernel(selection):
    table = np.random.default_rng(0).normal(size=(60, 60))
    kernel = Precomputed((table + table.T) / 2)
    model = build(stages="sparse", selection=selection, kernel=kernel, standardize=False)
    assert outcome(model, np.arange(60.0)[:, None], Y) in ("finite", "refused")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("estimator", [KernelBoostingRegressor, KernelBoostingClassifier])
def test_gaps_are_refused_by_column(value, estimator):
    bad = X.copy()
    bad[5, 2] = value
    y = Y if estimator is KernelBoostingRegressor else Y > 0
    refused(ValueError, "column 2", estimator(**{"kernel": "gaussian", **PLAIN}).fit, bad, y)
    model = estimator(**PLAIN).fit(X, y)
    refused(ValueError, r"column 2|NaN|infinity", model.predict, bad)
    refused(ValueError, r"column 2|NaN|infinity", model.fit, X, y, X_val=bad + 1e-9, y_val=y)


@all_stages
@pytest.mark.parametrize("given", [{}, AUTO], ids=["given", "auto"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(stages, given, n):
    model = build(stages=stages, **given).fit(X[:n], Y[:n])
    assert np.isfinite(model.predict(X)).all()
    if n == 1:
        np.testing.assert_allclose(model.predict(X), Y[0], rtol=1e-9)


def test_early_stopping_of_one_row():
    model = build(early_stopping=True).fit(X[:1], Y[:1])
    np.testing.assert_allclose(model.predict(X), Y[0])


@all_stages
def test_only_constant_columns(stages):
    model = build(stages=stages, n_basis=60).fit(np.ones((60, 2)), Y)
    np.testing.assert_allclose(model.predict(np.ones((5, 2))), Y.mean(), atol=1e-6)
    model = build(stages=stages, **AUTO).fit(np.ones((60, 2)), Y)
    assert np.isfinite(model.predict(np.ones((5, 2)))).all()


@pytest.mark.parametrize("kernel", ["gausian", "", 3, None, Gaussian, [], [["gaussian"]]])
def test_wrong_kernels(kernel):
    hint = "Did you mean 'gaussian'" if kernel == "gausian" else "kernel"
    refused(HilboostError, hint, build(kernel=kernel).fit, X, Y)


TABLE_OF_TEXT = np.column_stack([X[:, 0].astype(object), np.repeat(["a", "b"], 30)])
REWEIGHTED = {"stages": "sparse", "reweight": True}


@pytest.mark.parametrize(
    ("parameters", "table", "message"),
    [
        ({"kernel": Gaussian([1.0, 2.0])}, X, "2 length scales, but X has 3 columns"),
        ({"kernel": lambda A, B: -A @ B.T * 100, "stages": "full"}, X, "positive semidefinite"),
        ({"stages": "full", "subsample": 0.5}, X, "subsample=1"),
        (REWEIGHTED | {"learning_rate": 0.5}, X, "reweight"),
        (REWEIGHTED | {"loss": "absolute_error"}, X, "reweight"),
        (REWEIGHTED | {"subsample": 0.5}, X, "reweight"),
        ({}, TABLE_OF_TEXT, "column 1 contains categories, but kernel"),
        ({"device": "nowhere"}, X, "device="),
        ({"device": "cuda:99"}, X, "device="),
    ],
)
def test_parameters_that_do_not_fit_together(parameters, table, message):
    refused(HilboostError, message, build(**parameters).fit, table, Y)
