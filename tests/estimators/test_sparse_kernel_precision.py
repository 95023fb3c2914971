"""Kernel machines in single precision find the optimum of double precision, or turn to it."""

import numpy as np
import pytest

from hilboost import KernelBoostingRegressor, SparseKernelClassifier
from hilboost.core.errors import InvalidData
from hilboost.kernels import Additive, Gaussian
from hilboost.learners.kernel_machine import config

X = np.random.default_rng(0).uniform(-2, 2, size=(400, 2))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1]
SETTING = {"n_basis": 200, "standardize": False, "random_state": 0, "n_jobs": 1}


@pytest.fixture(autouse=True)
def single_precision(monkeypatch):
    monkeypatch.setattr(config, "_FLOAT64_UP_TO", 50)


def fitted(loss, bounds, **parameters):
    model = SparseKernelClassifier(loss, **SETTING | parameters)
    return model.fit(X, np.digitize(SCORE, bounds))


def dtypes(model):
    return [stage.terms[0].model.basis.dtype for stage in model.model_.stages]


losses = pytest.mark.parametrize(
    ("loss", "bounds"), [("log_loss", [-0.6, 0.6]), ("squared_hinge", [0.0])], ids=["log", "hinge"]
)


@losses
@pytest.mark.parametrize(("selection", "length_scale"), [("residual", 0.7), ("random", 2.0)])
def test_smooth_kernels(loss, bounds, selection, length_scale):
    """The nearly dependent basis vectors of such kernels have large weights."""
    setting = {"kernel": Gaussian(length_scale), "regularization": 1.0, "selection": selection}
    model = fitted(loss, bounds, **setting)
    expected = fitted(loss, bounds, precision="float64", **setting)
    scores = expected.decision_function(X)
    error = np.sqrt(np.mean((model.decision_function(X) - scores) ** 2))
    assert error < 5e-3 * np.sqrt(np.mean(scores**2))  # steps end at a tolerance
    np.testing.assert_allclose(model.history_.train, expected.history_.train, rtol=1e-3)
    if length_scale == 2.0:
        assert dtypes(model)[-1] == np.float64


@losses
def test_rough_kernels_stay_in_single_precision(loss, bounds):
    setting = {"kernel": Gaussian(0.2), "regularization": 1.0, "selection": "random"}
    model = fitted(loss, bounds, **setting)
    assert set(dtypes(model)) == {np.dtype(np.float32)}
    expected = fitted(loss, bounds, precision="float64", **setting)
    np.testing.assert_allclose(model.history_.train, expected.history_.train, rtol=1e-4)


@losses
def test_single_precision_that_is_demanded_but_inaccurate_is_refused(loss, bounds):
    setting = {"kernel": Gaussian(2.0), "regularization": 1e-6, "selection": "random"}
    with pytest.raises(InvalidData, match="rounding errors make the kernel machine inaccurate"):
        fitted(loss, bounds, precision="float32", **setting)


@pytest.mark.parametrize(("loss", "link"), [("squared_error", np.positive), ("poisson", np.exp)])
def test_values_that_cancel_go_on_in_double_precision(loss, link):
    """Values of this kernel are large, and their sums with the weights are small."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    y = link(np.sin(1.5 * X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=400))
    kernel = Additive(np.array([1.5, 6.0, 1e3, 1e3]), main=0.02, pairs=1e3)
    setting = {"kernel": kernel, "regularization": 0.01, "stages": "full", "standardize": False}
    model = KernelBoostingRegressor(loss, random_state=0, **setting).fit(X, y)
    assert dtypes(model)[-1] == np.float64
    twin = KernelBoostingRegressor(loss, random_state=0, precision="float64", **setting)
    np.testing.assert_allclose(model.predict(X), twin.fit(X, y).predict(X), rtol=1e-6)
