"""A noisy sine with outliers, fitted with four losses by ``hilboost demo``."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost import BoostingRegressor
from hilboost.cli.demo_setup import LOSSES, SEED, DemoSize, Floats
from hilboost.cli.progress import StageProgress

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
