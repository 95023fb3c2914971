"""The regressions of ``hilboost demo``, compared with scikit-learn at the same settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from hilboost import BoostingRegressor
from hilboost.cli.demo_setup import (
    COMMON,
    LEARNING_RATE,
    LOSSES,
    OURS,
    SEED,
    DemoSize,
    Floats,
    one_thread,
    timed,
)
from hilboost.cli.progress import StageProgress

__all__ = [
    "LEVELS",
    "CurveRun",
    "LossRun",
    "RegressionData",
    "RegressionRun",
    "regression_data",
    "run_curve",
    "run_regression",
]

LEVELS = (0.05, 0.5, 0.95)
OUTLIER_SHARE = 0.05
TABLE_TREES: dict[str, Any] = {"max_leaf_nodes": 8, "min_samples_leaf": 20}

CURVE_OUTLIER_EVERY = 20
# Narrow enough to exclude the outliers, so that the band shows the noise only.
CURVE_LEVELS = (0.1, 0.5, 0.9)
CURVE_TREES: dict[str, Any] = {"max_leaf_nodes": 4, "min_samples_leaf": 30}


@dataclass(frozen=True)
class RegressionData:
    """A data set with outliers in the training targets and clean test targets."""

    name: str
    X_train: Floats
    y_train: Floats
    X_test: Floats
    y_test: Floats


@dataclass(frozen=True)
class LossRun:
    """One loss on one data set, fitted by both libraries."""

    loss: str
    ours: Floats
    theirs: Floats
    our_seconds: float
    their_seconds: float
    train_loss: Floats
    held_out_loss: Floats


@dataclass(frozen=True)
class RegressionRun:
    """All losses on one data set."""

    data: RegressionData
    losses: tuple[LossRun, ...]


@dataclass(frozen=True)
class CurveRun:
    """Fits of a noisy sine with outliers, on a grid."""

    x: Floats
    y: Floats
    is_outlier: NDArray[np.bool_]
    grid: Floats
    truth: Floats
    fits: dict[str, Floats]


def regression_data(size: DemoSize) -> tuple[RegressionData, RegressionData]:
    """Make the two regression data sets of the demo.

    Parameters
    ----------
    size : DemoSize
        The number of rows.

    Returns
    -------
    tuple of RegressionData
        Diabetes and Friedman's first function, both with outliers in the training targets.
    """
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED)
    diabetes = RegressionData("Diabetes", X_train, _with_outliers(y_train), X_test, y_test)
    n_rows = size.friedman_rows
    X, y = make_friedman1(n_samples=2 * n_rows, noise=1.0, random_state=SEED)
    friedman = RegressionData(
        "Friedman 1", X[:n_rows], _with_outliers(y[:n_rows]), X[n_rows:], y[n_rows:]
    )
    return diabetes, friedman


def _with_outliers(y: Floats) -> Floats:
    rng = np.random.default_rng(SEED)
    rows = rng.choice(len(y), size=round(OUTLIER_SHARE * len(y)), replace=False)
    spoiled = y.astype(float)
    shift = rng.choice([-1.0, 1.0], size=len(rows)) * rng.uniform(5.0, 10.0, size=len(rows))
    spoiled[rows] += shift * y.std()
    return spoiled


def run_regression(data: RegressionData, size: DemoSize, progress: StageProgress) -> RegressionRun:
    """Fit one data set with every loss and both libraries.

    Parameters
    ----------
    data : RegressionData
        The data set.
    size : DemoSize
        The number of rounds.
    progress : StageProgress
        The progress bar to advance.

    Returns
    -------
    RegressionRun
        Test predictions, fit times, and learning curves.
    """
    return RegressionRun(
        data, tuple(_run_loss(data, loss, size.regression_rounds, progress) for loss in LOSSES)
    )


def _run_loss(data: RegressionData, loss: str, rounds: int, progress: StageProgress) -> LossRun:
    after_stage = progress.callback(f"{data.name}, {loss}: hilboost")
    ours = _our_regressor(loss, rounds, TABLE_TREES)
    _, our_seconds = timed(
        lambda: ours.fit(
            data.X_train,
            data.y_train,
            X_val=data.X_test,
            y_val=data.y_test,
            callbacks=(after_stage,),
        )
    )
    progress.describe(f"{data.name}, {loss}: scikit-learn")
    models = _their_regressors(loss, rounds)
    with one_thread():
        _, their_seconds = timed(
            lambda: [model.fit(data.X_train, data.y_train) for model in models]
        )
        theirs = np.column_stack([model.predict(data.X_test) for model in models])
    progress.advance(rounds)
    return LossRun(
        loss=loss,
        ours=ours.predict(data.X_test).reshape(len(data.y_test), -1),
        theirs=theirs,
        our_seconds=our_seconds,
        their_seconds=their_seconds,
        train_loss=np.asarray(ours.history_.train),
        held_out_loss=np.asarray(ours.history_.validation),
    )


def _our_regressor(
    loss: str, rounds: int, trees: dict[str, Any], levels: tuple[float, ...] = LEVELS
) -> Any:
    return BoostingRegressor(
        loss=loss,
        quantile=levels if loss == "quantile" else 0.5,
        n_estimators=rounds,
        **COMMON,
        **OURS,
        **trees,
    )


def _their_regressors(loss: str, rounds: int) -> Sequence[Any]:
    if loss == "huber":
        return [
            GradientBoostingRegressor(
                loss=loss,
                n_estimators=rounds,
                learning_rate=LEARNING_RATE,
                random_state=SEED,
                max_depth=None,
                **TABLE_TREES,
            )
        ]
    common = {"max_iter": rounds, **COMMON, **TABLE_TREES}
    if loss == "quantile":
        return [
            HistGradientBoostingRegressor(loss=loss, quantile=level, **common) for level in LEVELS
        ]
    return [HistGradientBoostingRegressor(loss=loss, **common)]


def run_curve(size: DemoSize, progress: StageProgress) -> CurveRun:
    """Fit a noisy sine with outliers.

    Parameters
    ----------
    size : DemoSize
        The number of rounds.
    progress : StageProgress
        The progress bar to advance.

    Returns
    -------
    CurveRun
        The points and the fits on a grid; the quantile fit has one column per level.
    """
    rng = np.random.default_rng(SEED)
    x = np.sort(rng.uniform(0.0, 10.0, size=500))
    y = np.sin(x) + rng.normal(scale=0.25, size=len(x))
    # All outliers are on one side, because outliers on both sides would cancel out in the
    # squared-error fit. They are evenly spread, because the band would follow a dense cluster.
    is_outlier = np.zeros(len(x), dtype=bool)
    is_outlier[rng.permuted(np.arange(len(x)).reshape(-1, CURVE_OUTLIER_EVERY), axis=1)[:, 0]] = (
        True
    )
    y[is_outlier] += rng.uniform(2.5, 5.0, size=int(is_outlier.sum()))
    grid = np.linspace(0.0, 10.0, 500)
    fits = {}
    for loss in LOSSES:
        after_stage = progress.callback(f"noisy sine: {loss}")
        model = _our_regressor(loss, size.curve_rounds, CURVE_TREES, CURVE_LEVELS)
        model.fit(x[:, None], y, callbacks=(after_stage,))
        fits[loss] = model.predict(grid[:, None])
    return CurveRun(x, y, is_outlier, grid, np.sin(grid), fits)
