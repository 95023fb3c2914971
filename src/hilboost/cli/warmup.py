"""Small fits that trigger the compilation of what usual fits need."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilboost.cli.progress import StageProgress

N_ROWS = 400
COMMON: dict[str, Any] = {"n_estimators": 2, "early_stopping": False, "random_state": 0}
LEVELS = [0.05, 0.5, 0.95]
MONOTONE = {"monotonic_cst": [1, 0, 0, 0]}
# Everything with its own compiled code: losses, row sampling, trees with vector leaves, and trees
# with constraints.
REGRESSIONS: dict[str, dict[str, Any]] = {
    "squared error": {},
    "absolute error": {"loss": "absolute_error"},
    "Huber": {"loss": "huber"},
    "quantiles": {"loss": "quantile", "quantile": LEVELS},
    "quantiles, shared trees": {"loss": "quantile", "quantile": LEVELS, "multi_output": "shared"},
    "Poisson": {"loss": "poisson"},
    "gamma": {"loss": "gamma"},
    "Tweedie": {"loss": "tweedie"},
    "row sample": {"subsample": 0.5, "max_features": 0.5},
    "monotone columns": MONOTONE,
    "monotone columns, shared trees": {
        "loss": "quantile",
        "quantile": LEVELS,
        "multi_output": "shared",
        **MONOTONE,
    },
    "early stopping": {"early_stopping": True},
}
# Trees of points in an output space, with the best and with random splits; geometric medians.
POINTS: dict[str, dict[str, Any]] = {
    "output kernel trees": {"learner": "ok3"},
    "random output kernel trees": {"learner": "extra_trees", "loss": "absolute_error"},
}
# Symmetric trees, and loops over groups and over times.
RANKINGS = ("lambdarank", "xendcg", "pairwise_logistic", "query_rmse")
LIFETIMES = ("cox", "aft", "discrete_hazard")
N_CLASSES = (2, 3)
# Trees that two threads share, and gradients whose counts do not fit into the same integers.
N_ROWS_SHARED, N_ROWS_COUNTED = 70_000, 30_000
N_ROWS_RANKED, N_COLUMNS_RANKED = (20_000, N_ROWS_COUNTED), 60
CONSTRAINTS: tuple[dict[str, Any], ...] = ({}, MONOTONE)
FITS_OF_TABLES = 2 * len(REGRESSIONS) + len(POINTS) + 2 * len(N_CLASSES) + 2 * len(CONSTRAINTS) + 3
WARMUP_FITS = FITS_OF_TABLES + len(RANKINGS) + len(LIFETIMES) + len(N_ROWS_RANKED)


def warm_up(progress: "StageProgress", groups_and_times: bool = True) -> float:
    """Fit and predict with every kind of model on a few rows.

    ``progress``: advanced by one for each of ``WARMUP_FITS`` fits, or ``FITS_OF_TABLES`` without
    rankings and survival times. ``groups_and_times``: whether to fit rankings and survival times,
    too.

    Returns float: elapsed seconds; close to zero if the compiled code is cached.
    """
    import numpy as np

    from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor

    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    # Missing values have their own code path.
    X[::17, 0] = np.nan
    y = np.exp(0.3 * rng.normal(size=N_ROWS))
    weight = rng.uniform(0.5, 1.5, size=N_ROWS)
    for name, settings in REGRESSIONS.items():
        # Both input precisions, the second with weights.
        for inputs, sample_weight in ((X, None), (X.astype(np.float32), weight)):
            progress.describe(f"compiling: {name}")
            model = BoostingRegressor(**{**COMMON, **settings})
            model.fit(inputs, y, sample_weight, X_val=inputs + 1, y_val=y)
            _predict(model.predict, model.staged_predict, inputs)
            progress.advance(1)
    for name, settings in POINTS.items():
        progress.describe(f"compiling: {name}")
        points = OutputKernelBoostingRegressor(n_estimators=2, random_state=0, **settings)
        points.fit(X, np.column_stack([y, -y])).predict(X)
        progress.advance(1)
    if groups_and_times:
        _fit_groups_and_times(X, np.random.default_rng(1), progress)
    for n_classes in N_CLASSES:
        labels = rng.integers(n_classes, size=N_ROWS)
        for settings, kind in ({}, ""), ({"early_stopping": True}, ", early stopping"):
            progress.describe(f"compiling: {n_classes} classes{kind}")
            classifier = BoostingClassifier(**{**COMMON, **settings})
            classifier.fit(X, labels, X_val=X + 1, y_val=labels)
            _predict(classifier.predict_proba, classifier.staged_predict_proba, X)
            progress.advance(1)
    X = rng.normal(size=(N_ROWS_SHARED, 4)).astype(np.float32)
    few = X[:N_ROWS_COUNTED]
    for constraints in CONSTRAINTS:
        progress.describe("compiling: many rows")
        BoostingRegressor(**COMMON, **constraints).fit(X, X[:, 0])
        progress.advance(1)
        BoostingClassifier(**COMMON, **constraints).fit(few, few[:, 0] > 0)
        progress.advance(1)
    if groups_and_times:
        _fit_many_groups(few, progress)
    # Groups of columns of few values.
    for inputs in (X, few):
        progress.describe("compiling: few values")
        BoostingRegressor(**COMMON).fit(np.round(inputs), inputs[:, 0])
        progress.advance(1)
    BoostingClassifier(**COMMON).fit(np.round(few), rng.integers(3, size=len(few)))
    progress.advance(1)
    return time.perf_counter() - start


def _fit_groups_and_times(X: Any, rng: Any, progress: "StageProgress") -> None:
    import numpy as np

    from hilboost import BoostingRanker, BoostingSurvival

    labels, groups = rng.integers(3, size=len(X)).astype(float), np.arange(len(X)) // 10
    for loss in RANKINGS:
        progress.describe(f"compiling: {loss}")
        ranker = BoostingRanker(loss, **COMMON, eval_metric=["ndcg", "map", "mrr"])
        held_out = {"X_val": X + 1, "y_val": labels, "groups_val": groups}
        ranker.fit(X, labels, groups=groups, **held_out).predict(X)
        progress.advance(1)
    times = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = labels > 0, 1.0 + labels
    for loss in LIFETIMES:
        progress.describe(f"compiling: {loss}")
        model = BoostingSurvival(loss, **COMMON, eval_metric="concordance")
        model.fit(X, times, X_val=X + 1, y_val=times).predict(X)
        progress.advance(1)


def _fit_many_groups(X: Any, progress: "StageProgress") -> None:
    """Fit symmetric trees that two threads share."""
    import numpy as np

    from hilboost import BoostingRanker

    X = np.tile(X[:, :1], N_COLUMNS_RANKED)
    for n in N_ROWS_RANKED:
        progress.describe("compiling: many groups")
        ranker = BoostingRanker(**COMMON)
        ranker.fit(X[:n], np.arange(n) % 3, groups=np.arange(n) // 10)
        progress.advance(1)


def _predict(predict: Any, staged: Any, X: Any) -> None:
    predict(X)
    predict(X[:1])  # a few rows have a loop of their own
    for _ in staged(X):
        pass
