"""Loss objects of scikit-learn stand for the losses of the same name."""

import numpy as np
import pytest
from sklearn._loss import (
    AbsoluteError,
    HalfBinomialLoss,
    HalfGammaLoss,
    HalfMultinomialLoss,
    HalfPoissonLoss,
    HalfSquaredError,
    HalfTweedieLoss,
    PinballLoss,
)
from sklearn._loss.loss import ExponentialLoss, HuberLoss
from tests.cases import PLAIN

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import InvalidParameter
from hilboost.losses import Huber, Quantile, Tweedie

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.exp(X[:, 0])
SETTING = PLAIN | {"n_estimators": 3}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (HalfSquaredError(), "squared_error"),
        (AbsoluteError(), "absolute_error"),
        (PinballLoss(quantile=0.2), Quantile(0.2)),
        (HuberLoss(quantile=0.7), Huber(alpha=0.7)),
        (HalfPoissonLoss(), "poisson"),
        (HalfGammaLoss(), "gamma"),
        (HalfTweedieLoss(power=1.3), Tweedie(1.3)),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_numbers(theirs, ours):
    models = [BoostingRegressor(loss, **SETTING).fit(X, Y) for loss in (theirs, ours)]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


@pytest.mark.parametrize(
    ("theirs", "ours", "n_classes"),
    [
        (HalfBinomialLoss(), "log_loss", 2),
        (ExponentialLoss(), "exponential", 2),
        (HalfMultinomialLoss(n_classes=3), "log_loss", 3),
    ],
    ids=["binomial", "exponential", "multinomial"],
)
def test_classes(theirs, ours, n_classes):
    y = np.arange(80) % n_classes
    models = [BoostingClassifier(loss, **SETTING).fit(X, y) for loss in (theirs, ours)]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


def test_the_range_of_parameters_is_ours():
    with pytest.raises(InvalidParameter, match="tweedie: power must lie strictly between 1 and 2"):
        BoostingRegressor(HalfTweedieLoss(power=2.5)).fit(X, Y)
