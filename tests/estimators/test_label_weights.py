"""Probabilities that labels belong to their rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from hilboost import (
    BoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    label_weights,
)
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.estimators.label_weights import _probabilities

RNG = np.random.default_rng(0)
PIXELS = load_digits().data[:400]
X, IMAGES = PIXELS[:, :32], PIXELS[:, 32:]
WRONG = np.arange(40)
SPOILED = IMAGES.copy()
SPOILED[WRONG] = IMAGES[RNG.permutation(np.arange(40, 400))[:40]]
MODEL = OutputKernelBoostingRegressor(learner="extra_trees", n_estimators=40, random_state=0)


def test_wrong_labels_weigh_less():
    weight = label_weights(MODEL, X, SPOILED, random_state=0)
    assert weight.shape == (400,)
    assert ((weight >= 0) & (weight <= 1)).all()
    right, wrong = np.delete(weight, WRONG), weight[WRONG]
    assert right.mean() > 0.9
    assert wrong.mean() < 0.8
    model = MODEL.fit(X, SPOILED, sample_weight=weight)
    rows = load_digits().data[400:]
    weighted = model.embedding_loss(rows[:, :32], rows[:, 32:])
    plain = MODEL.fit(X, SPOILED).embedding_loss(rows[:, :32], rows[:, 32:])
    assert weighted < plain


def test_right_labels_keep_their_weight():
    assert label_weights(MODEL, X, IMAGES, random_state=0).mean() > 0.95


def test_rankings_in_a_frame_and_forests_and_the_same_numbers_again():
    frame = pd.DataFrame(X[:, 8:16])
    ranks = [[1, 2, 3] if row[10] > 8 else [3, 1, 2] for row in X]
    ranks[:20] = [[2, 3, 1]] * 20
    model = OutputKernelForestRegressor("ranking", n_estimators=10, random_state=0, n_jobs=1)
    weight = label_weights(model, frame, ranks, random_state=1)
    again = label_weights(model.set_params(n_jobs=2), frame, ranks, random_state=1)
    np.testing.assert_array_equal(weight, again)


def test_a_mixture_of_known_densities():
    """Densities 2 - 2d of right labels and 1 of others on [0, 1], a tenth of them wrong."""
    right, wrong = 1 - np.sqrt(RNG.uniform(size=18_000)), RNG.uniform(size=2_000)
    own = np.concatenate([right, wrong])
    found = _probabilities(own, RNG.uniform(size=200_000))
    expected = 0.9 * (2 - 2 * own) / (0.9 * (2 - 2 * own) + 0.1)
    assert np.abs(found - expected).mean() < 0.05
    assert found[:18_000].mean() > found[18_000:].mean()


@pytest.mark.parametrize(
    ("model", "y", "cv", "error", "match"),
    [
        (BoostingRegressor(), IMAGES, 5, InvalidType, "requires a model of an output space"),
        (MODEL, IMAGES, 1, InvalidParameter, "cv must be between 2 and the number of rows, 400"),
        (
            OutputKernelBoostingRegressor("precomputed"),
            IMAGES @ IMAGES.T,
            5,
            InvalidData,
            "does not support Gram matrices",
        ),
    ],
)
def test_what_has_no_weights(model, y, cv, error, match):
    with pytest.raises(error, match=match):
        label_weights(model, X, y, cv=cv)
