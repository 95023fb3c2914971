"""Messages number rows as the user passed them, though those of zero weight are left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost import (
    BoostingRegressor,
    BoostingSurvival,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)
from hilboost.core.errors import InvalidData
from hilboost.kernels import Gaussian

N = 40
X = np.random.default_rng(0).uniform(size=(N, 2))
POSITIVE = X[:, 0] / 2 + 0.25
RANKS = np.tile([1, 2, 3], (N, 1))
TIMES = np.column_stack([POSITIVE, POSITIVE])
IMPOSSIBLE = {"poisson": -1.0, "gamma": 0.0, "lognormal": -1.0, "beta": 2.0, "weibull": 0.0}
MODELS = {
    "trees": lambda loss: BoostingRegressor(loss, learner="tree", n_estimators=2),
    "kernel machine": lambda loss: KernelBoostingRegressor(loss=loss, kernel=Gaussian(1.0)),
}


@st.composite
def weights_and_a_row(draw):
    """Weights, some of which are zero, and a row whose weight is not."""
    counts = draw(st.lists(st.booleans(), min_size=N, max_size=N).filter(any))
    return np.array(counts, dtype=float), draw(st.sampled_from(np.flatnonzero(counts).tolist()))


def replaced(array, row, value):
    array = array.copy()
    array[row] = value
    return array


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("loss", IMPOSSIBLE)
@given(weights_and_a_row())
def test_a_target_that_the_loss_cannot_take(loss, make, drawn):
    weight, row = drawn
    y = replaced(POSITIVE, row, IMPOSSIBLE[loss])
    with pytest.raises(InvalidData, match=rf"^(the|loss=).*; row {row} has"):
        make(loss).fit(X, y, sample_weight=weight)
    with pytest.raises(InvalidData, match=rf"^y_val: (the|loss=).*; row {row} has"):
        make(loss).fit(X, POSITIVE, X_val=X, y_val=y, sample_weight_val=weight)
    others = np.where(np.arange(N) == row, 0.0, 1.0)
    make(loss).fit(X, y, sample_weight=others)


@pytest.mark.parametrize(
    ("loss", "times"), [("aft", (0, 0)), ("cox", (1, 2)), ("discrete_hazard", (1, 2))]
)
@given(weights_and_a_row())
def test_a_time_that_the_loss_cannot_take(loss, times, drawn):
    weight, row = drawn
    weight[row - 1] = 1.0  # another one, whose time is exact
    with pytest.raises(InvalidData, match=f"row {row} of y has an event"):
        BoostingSurvival(loss).fit(X, replaced(TIMES, row, times), sample_weight=weight)


def test_what_a_message_quotes_is_left_as_it_is():
    tags = [{"a", "b"}, *[{"a"}] * (N - 2), "row 99"]
    message = f"row {N - 1} of Y is 'row 99', not a set"
    with pytest.raises(InvalidData, match=message):
        OutputKernelForestRegressor("label_set").fit(X, tags, sample_weight=[0, *[1] * (N - 1)])


@pytest.mark.parametrize("model", [OutputKernelBoostingRegressor, OutputKernelForestRegressor])
@given(weights_and_a_row())
def test_a_label_that_is_not_in_the_output_space(model, drawn):
    weight, row = drawn
    ranks = replaced(RANKS, row, (1, 2, 2))
    with pytest.raises(InvalidData, match=rf"^row {row} of Y, \(1, 2, 2\), has tied ranks"):
        model("ranking").fit(X, ranks, sample_weight=weight)
    if model is OutputKernelBoostingRegressor:
        with pytest.raises(InvalidData, match=f"row {row}"):
            model("ranking").fit(X, RANKS, sample_weight=weight, X_val=X, y_val=ranks)
