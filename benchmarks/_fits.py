"""Fits of every library at its own defaults, with the splits and scores of ``quality.py``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from _common import describe_error, version_of
from tables import KEPT_BACK, TABLES, Table

TEST_SHARE = 0.25
COMPILING = ("hilboost", "hilboost-tree", "chimeraboost")
EVERY = TABLES | KEPT_BACK
WARM_UP_ROWS = (600, 3_000)

Record = dict[str, Any]


def hilboost_model(regression: bool, seed: int, threads: int) -> Any:
    import hilboost

    make = hilboost.BoostingRegressor if regression else hilboost.BoostingClassifier
    return make(random_state=seed, n_jobs=threads)


def tree_model(regression: bool, seed: int, threads: int) -> Any:
    return hilboost_model(regression, seed, threads).set_params(learner="tree")


def lightgbm_model(regression: bool, seed: int, threads: int) -> Any:
    import lightgbm

    make = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
    return make(random_state=seed, n_jobs=threads, verbose=-1)


def xgboost_model(regression: bool, seed: int, threads: int) -> Any:
    import xgboost

    make = xgboost.XGBRegressor if regression else xgboost.XGBClassifier
    return make(random_state=seed, n_jobs=threads)


def catboost_model(regression: bool, seed: int, threads: int) -> Any:
    import catboost

    make = catboost.CatBoostRegressor if regression else catboost.CatBoostClassifier
    return make(random_seed=seed, thread_count=threads, verbose=0, allow_writing_files=False)


def sklearn_model(regression: bool, seed: int, threads: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return make(random_state=seed)


def chimeraboost_model(regression: bool, seed: int, threads: int) -> Any:
    import chimeraboost

    regressor, classifier = chimeraboost.ChimeraBoostRegressor, chimeraboost.ChimeraBoostClassifier
    return (regressor if regression else classifier)(random_state=seed, thread_count=threads)


def xrfm_model(regression: bool, seed: int, threads: int) -> Any:
    from _xrfm import XRFM

    return XRFM(regression=regression, random_state=seed, threads=threads)


MODELS: dict[str, Callable[[bool, int, int], Any]] = {
    "hilboost": hilboost_model,
    "hilboost-tree": tree_model,
    "lightgbm": lightgbm_model,
    "xgboost": xgboost_model,
    "catboost": catboost_model,
    "sklearn": sklearn_model,
    "chimeraboost": chimeraboost_model,
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


def measure(library: str, name: str, table: Table, seed: int, threads: int) -> Record:
    X, X_test, y, y_test = split(table, seed)
    record: Record = {
        "table": name,
        "library": library,
        "version": version_of(library.partition("-")[0]),
        "seed": seed,
        "task": table.task,
        "rows": len(table.X),
        "columns": table.X.shape[1],
        "reused": False,
        "clock": "processor" if threads == 1 else "wall",
    }
    try:
        model = MODELS[library](table.task == "regression", seed, threads)
        clock = time.process_time if threads == 1 else time.perf_counter
        start = clock()
        model.fit(X, y)
        record["seconds"] = clock() - start
        record["score"] = score(model, table, X_test, y_test)
        if library.startswith("hilboost"):
            record["chosen"] = chosen(model)
    except Exception as error:
        record["error"] = describe_error(error)
    return record


def warm_up(library: str, task: str, threads: int) -> None:
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
    start = time.perf_counter()
    for rows in WARM_UP_ROWS:
        table = Table(X[:rows], targets[task][:rows], task)
        measure(library, "warm-up", table, 0, threads)
    print(f"{library} warm-up, {task}: {time.perf_counter() - start:.1f} s", flush=True)


@dataclass(frozen=True)
class Fit:
    """A fit to measure.

    Attributes
    ----------
    key : dict
        The entries of its record that no other record has.
    library, task : str
        What is fitted first, untimed, if the library compiles.
    measure : callable
        Fits, and returns the record.
    """

    key: Record
    library: str
    task: str
    measure: Callable[[], Record]


def print_at_once(record: Record) -> None:
    print(record, flush=True)


def measure_missing(
    fits: Iterable[Fit],
    results: Record,
    threads: int,
    save: Callable[[Record], None],
    report: Callable[[Record], None] = print_at_once,
) -> None:
    """Add the records of the fits that have none; save the results after each."""
    warm: set[tuple[str, str]] = set()
    with threadpool_limits(threads):
        for fit in fits:
            if any(fit.key.items() <= record.items() for record in results["records"]):
                continue
            if (fit.library, fit.task) not in warm:
                warm_up(fit.library, fit.task, threads)
                warm.add((fit.library, fit.task))
            record = fit.measure()
            results["records"].append(record)
            report(record)
            save(results)
