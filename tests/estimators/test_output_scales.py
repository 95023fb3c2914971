"""``predict(X, return_std=True)`` of output kernel models."""

import numpy as np
import pytest
from tests.reloaded import reloaded

from hilboost import (
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
)
from hilboost.core.errors import InvalidData
from hilboost.outputs.distances import to_points

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(2000, 3))
NOISE = np.where(X[:, 0] > 0.5, 0.8, 0.1)[:, None]
ROWS = np.column_stack([X[:, 0] * 4, X[:, 1]]) + NOISE * RNG.normal(size=(2000, 2))
RANKS = np.argsort(np.argsort(X + 0.1 * RNG.normal(size=X.shape), axis=1), axis=1) + 1
FIT, KNOWN, NEW = slice(0, 200), slice(200, 1000), slice(1000, 2000)
MODELS = {
    "boosted trees": lambda output: OutputKernelBoostingRegressor(
        output, learner="extra_trees", n_estimators=30, random_state=0
    ),
    "kernel machine": lambda output: OutputKernelBoostingRegressor(
        output, learner="kernel", random_state=0
    ),
    "forest": lambda output: OutputKernelForestRegressor(output, n_estimators=20, random_state=0),
    "tree": lambda output: OutputKernelTreeRegressor(output, min_samples_leaf=5),
}


def calibrated(name, output, labels, **more):
    model = MODELS[name](output).fit(X[FIT], labels[FIT])
    return model.calibrate(X[KNOWN], labels[KNOWN], **more)


@pytest.mark.parametrize(
    ("name", "output", "labels"),
    [
        ("boosted trees", "linear", ROWS),
        ("kernel machine", "gaussian", ROWS),
        ("forest", "ranking", RANKS),
        ("tree", "gaussian", ROWS),
    ],
)
def test_the_mean_squared_distance_in_these_units_is_near_one(name, output, labels):
    model = MODELS[name](output).fit(X[FIT], labels[FIT])
    each, whole = [], []
    for known, new in ((KNOWN, NEW), (NEW, KNOWN)):  # the mean of both does not depend on the draw
        model.calibrate(X[known], labels[known])
        predicted, std = model.predict(X[new], return_std=True)
        np.testing.assert_array_equal(predicted, model.predict(X[new]))
        assert std.shape == (len(X[new]),)
        assert (std > 0).all()
        square = to_points(model.output_, labels[new], model.predict_embedding(X[new]))
        each.append((square / std**2).mean())
        whole.append(square.mean() / (std**2).mean())
    assert 0.8 < np.mean(each) < 1.25
    assert 0.85 < np.mean(whole) < 1.15


def test_the_scale_follows_the_noise():
    model = calibrated("forest", "linear", ROWS)
    _, std = model.predict(X[NEW], return_std=True)
    loud = X[NEW, 0] > 0.5
    clear = np.abs(X[NEW, 0] - 0.5) > 0.1
    assert np.median(std[loud & clear]) > 1.5 * np.median(std[~loud & clear])


def test_files():
    model = calibrated("forest", "gaussian", ROWS)
    loaded = reloaded(model)
    for found, expected in zip(
        loaded.predict(X[NEW], return_std=True), model.predict(X[NEW], return_std=True), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_model_without_calibration_refuses():
    model = MODELS["tree"]("linear").fit(X[FIT], ROWS[FIT])
    with pytest.raises(InvalidData, match="return_std=True needs rows .*: call calibrate"):
        model.predict(X[NEW], return_std=True)
