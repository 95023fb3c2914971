"""Bars of the weights of several kernels."""

import matplotlib
import numpy as np
import pytest
from tests.refusals import refused

from hilboost import BoostingRegressor, KernelBoostingRegressor, plot_kernels
from hilboost.core.errors import IncompatibleParts, InvalidParameter, InvalidType
from hilboost.kernels import Gaussian, Linear, OnColumns
from hilboost.report.about import kernel_facts

matplotlib.use("Agg")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 2]
KERNELS = [OnColumns(Gaussian(1.0), [0, 1]), OnColumns(Linear(), [2, 3])]


@pytest.fixture(scope="module")
def model():
    return KernelBoostingRegressor(kernel=KERNELS, random_state=0).fit(X, Y)


def test_bars_are_the_weights(model):
    ax = plot_kernels(model)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.kernel_weights_)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["kernel 0", "kernel 1"]
    counts = [int(text.get_text().split()[0]) for text in ax.texts]
    assert counts == np.bincount(model.kernels_, minlength=2).tolist()
    other = matplotlib.figure.Figure().add_subplot()
    assert plot_kernels(model, ["cost $", "b"], ax=other) is other


def test_models_without_a_list_are_refused(model):
    with pytest.raises(InvalidType, match="BoostingRegressor"):
        plot_kernels(BoostingRegressor(n_estimators=1).fit(X, Y))
    with pytest.raises(IncompatibleParts, match="list of kernels"):
        plot_kernels(KernelBoostingRegressor(kernel=Linear(), regularization=1.0).fit(X, Y))
    refused(InvalidParameter, "each of the 2 kernels; got 1", plot_kernels, model, ["one"])


def test_reports_list_the_weights(model):
    facts = kernel_facts(model)
    assert [one["stages"] for one in facts["listed"]] == np.bincount(model.kernels_).tolist()
    weights = [one["weight"] for one in facts["listed"]]
    np.testing.assert_allclose(weights, model.kernel_weights_)
    page = model.report(X[:40], Y[:40]).html
    assert "share of each kernel" in page
    assert "linear on columns 2, 3" in page


def test_reports_of_one_kernel_have_no_list():
    alone = KernelBoostingRegressor(kernel=Linear(), regularization=1.0).fit(X, Y)
    assert kernel_facts(alone)["listed"] is None
    assert "share of each kernel" not in alone.report(X[:40], Y[:40]).html
