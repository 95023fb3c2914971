"""Learning rates with which the training loss grows: an error or a warning, never garbage."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from tests.cases import PLAIN

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
)
from hilboost.core.errors import FitWarning, InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.kernels import Gaussian
from hilboost.losses import SquaredError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = np.exp(0.3 * X[:, 0]) + RNG.uniform(size=120) / 10
TALL = np.resize(X, (300, 2))
GROWN = r"training loss had grown from .* after stage \d+ with learning_rate=5; set a smaller"
LONG = {"n_estimators": 60, "early_stopping": False, "random_state": 0}
KERNEL = {"kernel": Gaussian(1.0), "regularization": 0.1, "random_state": 0, "n_estimators": 60}


@pytest.mark.parametrize(
    ("loss", "learner"),
    [
        ("squared_error", "tree"),
        ("absolute_error", "tree"),
        ("poisson", "tree"),
        ("squared_error", "linear"),
        ("squared_error", "kernel"),
        ("squared_error", Ridge()),
        ("squared_error", ["tree", "linear"]),
        ("hinge", "tree"),
        ("squared_hinge", "linear"),
    ],
)
def test_losses_and_learners(loss, learner):
    make, y = (BoostingClassifier, Y > 1.1) if "hinge" in loss else (BoostingRegressor, Y)
    with pytest.raises(InvalidParameter, match=GROWN):
        make(loss, learner=learner, learning_rate=5, **LONG).fit(X, y)


def test_a_loss_that_grows_to_a_bound_is_a_warning():
    model = BoostingRegressor("tweedie", learning_rate=5, **LONG)
    with pytest.warns(FitWarning, match=GROWN):
        model.fit(X, Y)
    assert model.history_.train[-1] > 1.1 * model.history_.train[0]


@pytest.mark.parametrize("stages", ["sparse", "full", "block"])
def test_kernel_machines(stages):
    given = KERNEL | {"stages": stages, "learning_rate": 5, "early_stopping": False}
    with pytest.raises(InvalidParameter, match=GROWN):
        KernelBoostingRegressor(**given).fit(X, Y)
    if stages != "full":
        with pytest.raises(InvalidParameter, match=GROWN):
            KernelBoostingClassifier(**given).fit(X, Y > 1.1)


def test_early_stopping_keeps_the_constant_and_warns():
    stopped = {"early_stopping": True, "learning_rate": 5, "cv_folds": 1, "learner": "tree"}
    model = BoostingRegressor(**PLAIN | stopped)
    with pytest.warns(FitWarning, match=GROWN):
        model.fit(X, Y)
    assert model.n_estimators_ == 0


@pytest.mark.parametrize("unit", [1e-30, 1e140])
def test_losses_are_in_the_units_of_the_target(unit):
    with pytest.raises(InvalidParameter) as error:
        BoostingRegressor(learning_rate=5, **LONG).fit(X, Y * unit)
    first, last = map(float, re.findall(r"[\d.]+(?:e[+-]\d+)?(?= to| after)", str(error.value)))
    assert first == pytest.approx(np.var(Y * unit) / 2, rel=1e-3)
    assert last > 1000 * first


class Ascending(SquaredError):
    """Squared error with gradients of the wrong sign."""

    evaluates_both = False
    compiled_name = None

    def gradients(self, target, raw):
        return Gradients(raw - target.y)


def test_wrong_gradients_of_a_loss_are_named():
    with pytest.raises(InvalidParameter, match="correct the gradients of the loss if it is your"):
        BoostingRegressor(Ascending(), **LONG).fit(X, Y)


@given(
    rate=st.floats(0.01, 1.5),
    level=st.sampled_from([0.0, 1e-9, 1.0, 1e9]),
    spread=st.sampled_from([0.0, 1e-12, 1.0, 1e6]),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber", "poisson"]),
    n_shards=st.sampled_from([1, 3]),
)
def test_ordinary_rates_do_not_warn(rate, level, spread, loss, n_shards):
    """Neither does the rounding of constant targets."""
    y = level + spread * np.abs(np.random.default_rng(0).standard_cauchy(300))
    if loss == "poisson":
        rate, y = rate / 10, y + 1e-6
    BoostingRegressor(
        loss, learner="tree", learning_rate=rate, n_shards=n_shards, n_estimators=12,
        early_stopping=False, random_state=0,
    ).fit(TALL, y)  # fmt: skip
