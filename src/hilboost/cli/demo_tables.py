"""Tables of ``hilboost demo``: hilboost and scikit-learn at their defaults."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.cli.demo_setup import SEED, DemoSize, Floats, one_thread, timed
from hilboost.cli.progress import StageProgress

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
