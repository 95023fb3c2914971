"""Images as targets: lower halves of digits, completed by ``hilboost demo``."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from hilboost import OutputKernelBoostingRegressor
from hilboost.cli.demo_setup import SEED, DemoSize, Floats, timed

_N_TEST, _N_SHOWN = 200, 8


@dataclass(frozen=True)
class SpacesRun:
    """Results of the fits."""

    upper: Floats  # (n_shown, 4, 8) float64: halves of test images, and the predicted lower halves
    lower: Floats  # (n_shown, 4, 8) float64: halves of test images, and the predicted lower halves
    # (n_shown, 4, 8) float64: halves of test images, and the predicted lower halves
    completed: Floats
    # mean squared error of the completed pixels, and of the mean image of the training rows
    error: float
    # mean squared error of the completed pixels, and of the mean image of the training rows
    baseline: float
    image_seconds: float


def run_spaces(size: DemoSize) -> SpacesRun:
    """Complete lower halves of digits."""
    n = size.image_rows
    images = load_digits().images / 16
    upper, lower = images[:, :4], images[:, 4:]
    X = upper.reshape(len(images), -1)
    images_model = OutputKernelBoostingRegressor(
        "gaussian", n_estimators=size.image_rounds, random_state=SEED, n_jobs=1
    )
    fitted, seconds = timed(lambda: images_model.fit(X[:n], lower[:n]))
    test = slice(n, n + _N_TEST)
    completed = fitted.predict(X[test])
    mean = lower[:n].mean(axis=0)
    shown = slice(n, n + _N_SHOWN)
    return SpacesRun(
        upper[shown],
        lower[shown],
        completed[:_N_SHOWN],
        float(np.mean((completed - lower[test]) ** 2)),
        float(np.mean((mean - lower[test]) ** 2)),
        seconds,
    )
