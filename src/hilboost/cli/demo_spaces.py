"""Fits of the demo beside trees: completed images, and a kernel machine on a smooth function."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits, make_friedman1

from hilboost import BoostingRegressor, KernelBoostingRegressor, OutputKernelBoostingRegressor
from hilboost.cli.demo_setup import SEED, DemoSize, Floats, timed

__all__ = ["SpacesRun", "run_spaces"]

_N_TEST, _N_SHOWN = 200, 8


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
    smooth_rows : int
    kernel, trees : (float, float)
        R² on test rows of a smooth function, and seconds of the fit.
    """

    upper: Floats
    lower: Floats
    completed: Floats
    error: float
    baseline: float
    image_seconds: float
    smooth_rows: int
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
        size.smooth_rows,
        _smooth(KernelBoostingRegressor(random_state=SEED, n_jobs=1), size),
        _smooth(BoostingRegressor(learner="tree", random_state=SEED, n_jobs=1), size),
    )


def _smooth(
    model: KernelBoostingRegressor | BoostingRegressor, size: DemoSize
) -> tuple[float, float]:
    """R² on test rows of Friedman's first function, and seconds of the fit."""
    n = size.smooth_rows
    X, y = make_friedman1(2 * n, noise=0.5, random_state=SEED)
    fitted, seconds = timed(lambda: model.fit(X[:n], y[:n]))
    return float(fitted.score(X[n:], y[n:])), seconds
