"""Tiny fits that make the compiler do its work once."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.cli.progress import StageProgress

__all__ = ["WARMUP_FITS", "warm_up"]

LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie")
N_CLASSES = (2, 3)
WARMUP_FITS = len(LOSSES) + 1 + len(N_CLASSES)
N_ROWS = 400


def warm_up(progress: "StageProgress") -> float:
    """Fit and predict with every kind of model on a few rows.

    Parameters
    ----------
    progress : StageProgress
        Moved by one for each of ``WARMUP_FITS`` fits.

    Returns
    -------
    float
        Seconds it took; nearly nothing where compiled code was already stored.
    """
    import numpy as np

    from hilboost import BoostingClassifier, BoostingRegressor

    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    # Missing values have code of their own.
    X[::17, 0] = np.nan
    y = np.exp(0.3 * rng.normal(size=N_ROWS))
    settings: dict[str, Any] = {"n_estimators": 2, "early_stopping": False, "random_state": 0}
    levels: list[float | list[float]] = [0.5] * len(LOSSES) + [[0.05, 0.5, 0.95]]
    for loss, quantile in zip((*LOSSES, "quantile"), levels, strict=True):
        progress.describe(f"compiling: {loss}")
        model = BoostingRegressor(loss=loss, quantile=quantile, **settings)
        model.fit(X, y, X_val=X, y_val=y).predict(X)
        list(model.staged_predict(X))
        progress.advance(1)
    for n_classes in N_CLASSES:
        progress.describe(f"compiling: {n_classes} classes")
        labels = rng.integers(n_classes, size=N_ROWS)
        classifier = BoostingClassifier(**settings).fit(X, labels, X_val=X, y_val=labels)
        classifier.predict_proba(X)
        list(classifier.staged_predict_proba(X))
        progress.advance(1)
    return time.perf_counter() - start
