"""Reports on targets that a loss does not accept end in one sentence."""

import numpy as np
import pytest
from tests.cases import PLAIN
from tests.refusals import refused

from hilboost import BoostingRegressor
from hilboost.core.errors import InvalidData

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.exp(X[:, 0]) + 0.1


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_targets_outside_the_support(loss):
    model = BoostingRegressor(loss, **PLAIN).fit(X, Y)
    wrong = np.where(np.arange(60) == 3, -1.0, Y)
    refused(InvalidData, "requires .*positive targets; row 3 has -1", model.report, X, wrong)
    weight = (wrong > 0).astype(float)
    assert "<html" in model.report(X, wrong, sample_weight=weight).html


def test_rows_without_a_count():
    model = BoostingRegressor("poisson", **PLAIN).fit(X, Y)
    assert "<html" in model.report(X, np.zeros(60)).html


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_targets_without_squares(size):
    model = BoostingRegressor(**PLAIN).fit(X, Y)
    refused(InvalidData, "whose square exceeds the range of float64", model.report, X, Y * size)
