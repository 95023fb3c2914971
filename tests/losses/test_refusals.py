"""Parameters and targets that a loss refuses."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.losses import (
    AFT,
    DiscreteHazard,
    Gamma,
    Huber,
    LambdaRank,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(0), "delta must be a positive number"),
        (lambda: Huber(-1.0), "delta must be a positive number"),
        (lambda: Huber(np.nan), "delta must be a positive number"),
        (lambda: Huber(np.inf), "delta must be a positive number"),
        (lambda: Huber(alpha=0), "alpha must lie strictly between 0 and 1"),
        (lambda: Huber(alpha=1.0), "alpha must lie strictly between 0 and 1"),
        (lambda: Quantile(0.0), "strictly between 0 and 1"),
        (lambda: Quantile(1.0), "strictly between 0 and 1"),
        (lambda: Quantile(np.nan), "strictly between 0 and 1"),
        (lambda: Quantile([0.1, 1.5]), "strictly between 0 and 1"),
        (lambda: Quantile([0.1, 0.1]), "distinct numbers"),
        (lambda: Quantile([]), "at least one level; got \\[\\]"),
        (lambda: Quantile([[0.1, 0.2]]), "distinct numbers"),
        (lambda: Tweedie(1.0), "Use 'poisson' for 1 and 'gamma' for 2"),
        (lambda: Tweedie(2.0), "Use 'poisson' for 1 and 'gamma' for 2"),
        (lambda: Tweedie(np.nan), "Use 'poisson' for 1 and 'gamma' for 2"),
        (lambda: Quantile("0.1"), "quantile levels must be numbers; got '0.1'"),
        (lambda: Quantile([0.5, "0.9"]), "must be numbers; got"),
        (lambda: Huber("1"), "delta must be a positive number; got '1'"),
        (lambda: Huber(alpha="0.9"), "alpha must lie strictly between 0 and 1; got '0.9'"),
        (lambda: Tweedie("1.5"), "power must lie strictly between 1 and 2; got '1.5'"),
        (lambda: AFT(scale="1"), "aft: scale must be a positive number; got '1'"),
        (lambda: AFT(scale=0), "aft: scale must be a positive number; got 0"),
        (lambda: LambdaRank("5"), "k must be an integer of at least 1; got '5'"),
        (lambda: LambdaRank(1.5), "k must be an integer of at least 1; got 1.5"),
        (lambda: DiscreteHazard(["1"]), "ends must contain numbers"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Poisson(), [1.0, -2.0, 3.0], "zero or positive targets; row 1 has -2.*Remove such rows"),
        (Tweedie(), [1.0, 0.0, -3.0], "zero or positive targets; row 2 has -3.*Remove such rows"),
        (Gamma(), [1.0, 2.0, 0.0], "positive targets; row 2 has 0.*Remove such rows.*'tweedie'"),
        (Gamma(), [0.0, 2.0, -1.0], "positive targets; row 2 has -1"),
        (Poisson(), [0.0, 0.0], "not zero in every row"),
        (Tweedie(), [0.0, 0.0], "not zero in every row"),
    ],
)
def test_targets_without_a_likelihood_are_refused(loss, y, message):
    with pytest.raises(InvalidData, match=message):
        loss.check(Target(np.array(y)[:, None]))


def test_quantiles_of_two_targets_are_refused():
    with pytest.raises(InvalidData, match="one target column; got 2.*Fit one model per column"):
        Quantile(0.5).check(Target(np.zeros((4, 2))))


def test_most_losses_take_every_target():
    assert SquaredError().check(Target(np.array([[-1.0], [0.0]]))) is None
