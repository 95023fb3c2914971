"""Fits of every library at its own defaults, with the splits and scores of ``quality.py``."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from _common import Record, describe_error, estimator, importable, version_of
from tables import KEPT_BACK, TABLES, Table

TEST_SHARE = 0.25
COMPILING = ("hilboost", "hilboost-tree", "chimeraboost")
EVERY = TABLES | KEPT_BACK
THREADS = 1
WARM_UP_ROWS = (600, 3_000)


def model_of(library: str, regression: bool, seed: int) -> Any:
    return estimator(library, regression, seed, THREADS)


def xrfm_model(regression: bool, seed: int) -> Any:
    from _xrfm import XRFM

    return XRFM(regression=regression, random_state=seed, threads=THREADS)


MODELS: dict[str, Callable[[bool, int], Any]] = {
    "hilboost": partial(model_of, "hilboost"),
    "hilboost-tree": lambda *case: model_of("hilboost", *case).set_params(learner="tree"),
    **{
        library: partial(model_of, library)
        for library in ("lightgbm", "xgboost", "catboost", "sklearn", "chimeraboost")
    },
    "xrfm": xrfm_model,
}


def split(table: Table, seed: int) -> list[np.ndarray]:
    strata = None if table.task == "regression" else table.y
    return train_test_split(
        table.X, table.y, test_size=TEST_SHARE, random_state=seed, stratify=strata
    )


def score(model: Any, table: Table, X: np.ndarray, y: np.ndarray) -> float:
    if table.task == "regression":
        residual = y - np.ravel(model.predict(X))
        return float(np.sqrt(np.mean(residual**2)) / np.std(table.y))
    chance = np.clip(np.asarray(model.predict_proba(X), np.float64), 1e-7, 1)
    chance /= chance.sum(axis=1, keepdims=True)
    return float(log_loss(y, chance, labels=np.unique(table.y)))


def chosen(model: Any) -> dict[str, Any]:
    """What the fit chose: settings of the trees, and the kernel machine."""
    resolved, parts = model.fitted_.resolved, model.fitted_.parts
    names = ("max_features", "l2_regularization", "max_leaf_nodes", "learning_rate", "cv_folds")
    found = {name: getattr(resolved, name) for name in names} | {"stages": model.n_estimators_}
    if parts is not None:
        kernel = parts["kernel"]
        found["kernel"] = {
            name: getattr(kernel, name)
            for name in ("weight", "gain", "standard_error", "share", "seconds", "n_centers")
        }
    return found


@cache
def table_of(name: str) -> Table:
    return EVERY[name]()


def measure_fit(library: str, table: Table, seed: int) -> Record:
    """Seconds of the processor, score, and what hilboost chose, of a fit to three quarters."""
    X, X_test, y, y_test = split(table, seed)
    record: Record = {
        "version": version_of(library.partition("-")[0]),
        "task": table.task,
        "rows": len(table.X),
        "columns": table.X.shape[1],
    }
    try:
        with threadpool_limits(THREADS):
            model = MODELS[library](table.task == "regression", seed)
            start = time.process_time()
            model.fit(X, y)
            record["seconds"] = time.process_time() - start
        record["score"] = score(model, table, X_test, y_test)
        if library.startswith("hilboost"):
            record["chosen"] = chosen(model)
    except Exception as error:
        record["error"] = describe_error(error)
    return record


@cache
def warm_up(library: str, task: str) -> None:
    """Fit a library that compiles twice, untimed."""
    if library not in COMPILING:
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(WARM_UP_ROWS), 5))
    smooth = X[:, 0] + X[:, 1] * X[:, 2]
    targets = {
        "regression": smooth,
        "binary": (smooth > 0).astype(np.int64),
        "multiclass": np.digitize(smooth, [-1.0, 1.0]),
    }
    for rows in WARM_UP_ROWS:
        measure_fit(library, Table(X[:rows], targets[task][:rows], task), 0)


def installed(libraries: list[str]) -> list[str]:
    return [library for library in libraries if importable(library.partition("-")[0])]
