"""Sizes and models of the demo: a curve, completed images, and tables."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor
from hilboost.cli.progress import StageProgress

Floats = NDArray[np.float64]
Fitted = TypeVar("Fitted")

SEED = 0
LOSSES = ("squared_error", "absolute_error", "huber", "quantile")


@dataclass(frozen=True)
class DemoSize:
    """Size of the demo."""

    digits_rows: int = 1797
    curve_rounds: int = 100
    friedman_rows: int = 1200
    image_rounds: int = 60
    image_rows: int = 800
    smooth_rows: int = 400

    @classmethod
    def quick(cls) -> "DemoSize":
        """Return a small size for a first look and for tests."""
        return cls(
            digits_rows=300,
            curve_rounds=30,
            friedman_rows=350,
            image_rounds=5,
            image_rows=200,
            smooth_rows=200,
        )

    @property
    def total_rounds(self) -> int:
        """Number of rounds that the progress bar shows."""
        return len(LOSSES) * self.curve_rounds


def one_thread() -> AbstractContextManager[Any]:
    """Limit scikit-learn to one thread, like hilboost with ``n_jobs=1``.

    Data this small does not benefit from more threads.  On busy machines, more threads cost
    minutes, because OpenMP threads spin while they wait.
    """
    return threadpool_limits(limits=1)


def timed(work: Callable[[], Fitted]) -> tuple[Fitted, float]:
    """Run a function; return its result and the elapsed seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


OUTLIER_EVERY = 20
# Narrow enough to exclude the outliers, so that the band shows the noise only.
LEVELS = (0.1, 0.5, 0.9)
SETTINGS: dict[str, Any] = {
    "early_stopping": False,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 30,
    "random_state": SEED,
    "n_jobs": 1,
}


@dataclass(frozen=True)
class CurveRun:
    """Fits of a noisy sine with outliers, on a grid."""

    x: Floats
    y: Floats
    is_outlier: NDArray[np.bool_]
    grid: Floats
    truth: Floats
    fits: dict[str, Floats]


def run_curve(size: DemoSize, progress: StageProgress) -> CurveRun:
    """Fit a noisy sine with outliers; the quantile fit has one column per level."""
    rng = np.random.default_rng(SEED)
    x = np.sort(rng.uniform(0.0, 10.0, size=500))
    y = np.sin(x) + rng.normal(scale=0.25, size=len(x))
    # All outliers are on one side, because outliers on both sides would cancel out in the
    # squared-error fit. They are evenly spread, because the band would follow a dense cluster.
    is_outlier = np.zeros(len(x), dtype=bool)
    is_outlier[rng.permuted(np.arange(len(x)).reshape(-1, OUTLIER_EVERY), axis=1)[:, 0]] = True
    y[is_outlier] += rng.uniform(2.5, 5.0, size=int(is_outlier.sum()))
    grid = np.linspace(0.0, 10.0, 500)
    fits = {}
    for loss in LOSSES:
        model = BoostingRegressor(
            loss,
            quantile=LEVELS if loss == "quantile" else 0.5,
            n_estimators=size.curve_rounds,
            **SETTINGS,
        )
        model.fit(x[:, None], y, callbacks=(progress.callback(f"noisy sine: {loss}"),))
        fits[loss] = model.predict(grid[:, None])
    return CurveRun(x, y, is_outlier, grid, np.sin(grid), fits)


_N_TEST, _N_SHOWN = 200, 8


@dataclass(frozen=True)
class SpacesRun:
    """Results of the fits."""

    upper: Floats  # (n_shown, 4, 8) float64: halves of test images
    lower: Floats  # (n_shown, 4, 8) float64
    completed: Floats  # (n_shown, 4, 8) float64: the predicted lower halves
    error: float  # mean squared error of the completed pixels
    baseline: float  # that of the mean image of the training rows
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


COVERAGE = 0.9


@dataclass(frozen=True)
class Score:
    """A score on test rows, where ``measure`` tells which, and the seconds of the fit."""

    table: str
    library: str
    measure: str
    value: float
    seconds: float


@dataclass(frozen=True)
class Intervals:
    """Ends of intervals (m, 2) for the true values (m,) of test rows."""

    table: str
    library: str
    ends: Floats
    true: Floats

    @property
    def coverage(self) -> float:
        """Share of the test rows that lie in their intervals."""
        return float(np.mean((self.ends[:, 0] <= self.true) & (self.true <= self.ends[:, 1])))

    @property
    def width(self) -> float:
        """Mean width."""
        return float(np.mean(self.ends[:, 1] - self.ends[:, 0]))


def run_defaults(size: DemoSize, progress: StageProgress) -> list[Score]:
    """Fit digits and a smooth function with both libraries at their defaults."""
    pixels, digits = load_digits(return_X_y=True)
    n = size.digits_rows
    smooth = make_friedman1(2 * size.smooth_rows, noise=0.5, random_state=SEED)
    ours: dict[str, Any] = {"random_state": SEED, "n_jobs": 1}
    theirs: dict[str, Any] = {"random_state": SEED}
    found = []
    for table, measure, (X, y), models in (
        (
            "digits, 8 x 8 pixels",
            "log-loss",
            (pixels[:n], digits[:n]),
            (BoostingClassifier(**ours), HistGradientBoostingClassifier(**theirs)),
        ),
        (
            "smooth function",
            "R²",
            smooth,
            (BoostingRegressor(**ours), HistGradientBoostingRegressor(**theirs)),
        ),
    ):
        X, X_test, y, y_test = train_test_split(X, y, random_state=SEED)
        for library, model in zip(("hilboost", "scikit-learn"), models, strict=True):
            progress.describe(f"{table}: {library}")
            fitted, seconds = _fitted(model, X, y)
            if measure == "R²":
                value = r2_score(y_test, fitted.predict(X_test))
            else:
                value = log_loss(y_test, fitted.predict_proba(X_test))
            found.append(Score(table, library, measure, float(value), seconds))
    return found


def run_intervals(size: DemoSize, progress: StageProgress) -> list[Intervals]:
    """Predict intervals of 90 %: calibrated ones, and quantiles of scikit-learn."""
    tables = {
        "diabetes": load_diabetes(return_X_y=True),
        "Friedman 1": make_friedman1(size.friedman_rows, noise=1.0, random_state=SEED),
    }
    found = []
    for table, (X, y) in tables.items():
        progress.describe(f"{table}: intervals")
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=SEED)
        model = BoostingRegressor(random_state=SEED, n_jobs=1).fit(X, y)
        found.append(Intervals(table, "hilboost", model.predict_interval(X_test, COVERAGE), y_test))
        ends = []
        for level in (0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2):
            other = HistGradientBoostingRegressor(
                loss="quantile", quantile=level, random_state=SEED
            )
            ends.append(_fitted(other, X, y)[0].predict(X_test))
        found.append(Intervals(table, "scikit-learn", np.column_stack(ends), y_test))
    return found


def _fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    with one_thread():
        return timed(lambda: model.fit(X, y))
