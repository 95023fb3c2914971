"""Fits of the demo beside trees: completed images, and a kernel machine on a smooth function."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits, make_friedman1

from hilboost import BoostingRegressor, KernelBoostingRegressor, OutputKernelBoostingRegressor
from hilboost.cli.demo_setup import SEED, DemoSize, Floats, timed

__all__ = ["SpacesRun", "run_spaces"]

_N_TRAIN, _N_TEST, _N_SHOWN = 800, 200, 8
_SMOOTH_ROWS = 400


@dataclass(frozen=True)
class SpacesRun:
    """Results of the fits.

    Attributes
    ----------
    upper, lower, completed : (n_shown, 4, 8) float64
        Halves of test images, and the predicted lower halves.
    error, baseline : float
        Mean squared error of the completed pixels, and of the mean image of the training rows.
    image_seconds : float
    kernel, trees : (float, float)
        R² on test rows of a smooth function, and seconds of the fit.
    """

    upper: Floats
    lower: Floats
    completed: Floats
    error: float
    baseline: float
    image_seconds: float
    kernel: tuple[float, float]
    trees: tuple[float, float]


def run_spaces(size: DemoSize) -> SpacesRun:
    """Complete lower halves of digits, and compare a kernel machine with trees.

    Parameters
    ----------
    size : DemoSize

    Returns
    -------
    SpacesRun
    """
    images = load_digits().images / 16
    upper, lower = images[:, :4], images[:, 4:]
    X = upper.reshape(len(images), -1)
    images_model = OutputKernelBoostingRegressor(
        "gaussian", n_estimators=size.image_rounds, random_state=SEED, n_jobs=1
    )
    fitted, seconds = timed(lambda: images_model.fit(X[:_N_TRAIN], lower[:_N_TRAIN]))
    test = slice(_N_TRAIN, _N_TRAIN + _N_TEST)
    completed = fitted.predict(X[test])
    mean = lower[:_N_TRAIN].mean(axis=0)
    shown = slice(_N_TRAIN, _N_TRAIN + _N_SHOWN)
    return SpacesRun(
        upper[shown],
        lower[shown],
        completed[:_N_SHOWN],
        float(np.mean((completed - lower[test]) ** 2)),
        float(np.mean((mean - lower[test]) ** 2)),
        seconds,
        _smooth(KernelBoostingRegressor(random_state=SEED, n_jobs=1)),
        _smooth(BoostingRegressor(random_state=SEED, n_jobs=1)),
    )


def _smooth(model: KernelBoostingRegressor | BoostingRegressor) -> tuple[float, float]:
    """R² on test rows of Friedman's first function, and seconds of the fit."""
    X, y = make_friedman1(2 * _SMOOTH_ROWS, noise=0.5, random_state=SEED)
    fitted, seconds = timed(lambda: model.fit(X[:_SMOOTH_ROWS], y[:_SMOOTH_ROWS]))
    return float(fitted.score(X[_SMOOTH_ROWS:], y[_SMOOTH_ROWS:])), seconds
