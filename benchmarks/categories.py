"""Tables with text columns: every library at its defaults, told which columns are categories.

AUC (larger is better) for two classes, R² for numbers, over five stratified folds (plain ones for
numbers); the seconds are those of the fit and mean something only on an otherwise idle machine.
Nothing but verbosity, seed, thread count and the list of category columns is set. hilboost, which
compiles at run time, makes an untimed fit on 2,000 rows of every table first.

Run ``python benchmarks/categories.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from _common import data_folder, describe_error, estimator, markdown_table, study, timed, version_of

FLIGHTS = 60_000
N_FOLDS, THREADS = 5, 1
Prepared = tuple[Any, pd.DataFrame, dict[str, Any]]
"""A model, what it gets as ``X``, and further arguments of ``fit``."""


class Table(NamedTuple):
    """``frame`` holds the category columns ``categories`` as text (None for missing)."""

    frame: pd.DataFrame
    y: np.ndarray
    categories: list[str]
    task: str


def with_categories(frame: pd.DataFrame, y: np.ndarray, categories: list[str], task: str) -> Table:
    frame = frame.copy()
    for name in categories:
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return Table(frame.reset_index(drop=True), y, categories, task)


def classes(name: str, target: str, positive: Any, dropped: tuple[str, ...] = ()) -> Table:
    frame = pd.read_csv(data_folder() / f"{name}.csv.gz").drop(columns=list(dropped))
    y = (frame.pop(target) == positive).to_numpy().astype(np.int64)
    texts = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    return with_categories(frame, y, texts, "binary")


def adult() -> Table:
    return classes("adult_ydf", "income", ">50K", ("split",))


def bank() -> Table:
    return classes("bank_marketing_small", "y", "yes")


def amazon() -> Table:
    frame = pd.read_csv(data_folder() / "amazon_employee_access.csv.gz")
    y = frame.pop("ACTION").to_numpy().astype(np.int64)
    return with_categories(frame.astype(str), y, list(frame.columns), "binary")


def flights() -> Table:
    """Arrival delay from what is known before departure, a fixed sample of the rows."""
    frame = pd.read_parquet(data_folder() / "nycflights13.parquet")
    frame = frame[frame["arr_delay"].notna()]
    frame = frame.sample(FLIGHTS, random_state=0)
    y = frame["arr_delay"].to_numpy(np.float64)
    known_later = ["dep_time", "dep_delay", "arr_time", "air_time", "arr_delay"]
    frame = frame.drop(columns=[*known_later, "year", "time_hour"])
    return with_categories(frame, y, ["carrier", "tailnum", "origin", "dest"], "regression")


TABLES: dict[str, Callable[[], Table]] = {f.__name__: f for f in (adult, bank, amazon, flights)}


def prepared(library: str, table: Table) -> Prepared:
    model = estimator(library, table.task == "regression", 0, THREADS)
    if library == "chimeraboost":
        return model, table.frame, {"cat_features": table.categories or None}
    if library == "catboost":
        frame = table.frame.fillna(dict.fromkeys(table.categories, "missing"))
        return model, frame, {"cat_features": table.categories}
    if library == "xgboost":
        model.set_params(enable_categorical=True)
    return model, table.frame.astype(dict.fromkeys(table.categories, "category")), {}


LIBRARIES = ("hilboost", "lightgbm", "catboost", "xgboost")


def folds(table: Table, n: int = N_FOLDS) -> list[tuple[np.ndarray, np.ndarray]]:
    kind = KFold if table.task == "regression" else StratifiedKFold
    return list(kind(n, shuffle=True, random_state=0).split(table.frame, table.y))


@cache
def warm_up(library: str, name: str) -> None:
    if library == "hilboost":
        table = TABLES[name]()
        few = slice(0, 2_000)
        fit(library, table._replace(frame=table.frame[few], y=table.y[few]), 0)


def measure(table: str, library: str, fold: int) -> dict[str, Any]:
    warm_up(library, table)
    record: dict[str, Any] = {"version": version_of(library)}
    try:
        return record | fit(library, TABLES[table](), fold)
    except Exception as error:
        return record | {"error": describe_error(error)}


def fit(library: str, table: Table, fold: int) -> dict[str, Any]:
    learn, test = folds(table)[fold]
    model, X, further = prepared(library, table)
    seconds, _ = timed(lambda: model.fit(X.iloc[learn], table.y[learn], **further))
    if table.task == "regression":
        score = r2_score(table.y[test], model.predict(X.iloc[test]))
    else:
        score = roc_auc_score(table.y[test], model.predict_proba(X.iloc[test])[:, 1])
    return {"seconds": seconds, "score": float(score)}


def page(records: list[dict[str, Any]], facts: str) -> str:
    rows, notes = [], []
    for name in TABLES:
        row: list[Any] = [name]
        for library in LIBRARIES:
            found = [r for r in records if (r["table"], r["library"]) == (name, library)]
            done = [record for record in found if "score" in record]
            if len(done) == N_FOLDS:
                score = np.mean([record["score"] for record in done])
                seconds = np.mean([record["seconds"] for record in done])
                row.append(f"{score:.4f} ({seconds:.1f} s)")
            else:
                row.append(f"{len(done)} of {N_FOLDS} folds" if done else "-")
            notes += [f"{name} {library}: {r['error']}" for r in found if "error" in r]
        rows.append(row)
    return "\n\n".join(
        [
            "# Categories: libraries at their defaults",
            facts,
            "AUC (adult, bank, amazon) or R² (flights, a sample of 60,000 rows), larger is "
            "better: mean over five folds, with the time of one fit in parentheses. Some runs "
            "shared the machine with other processes, so the times are only a rough guide.",
            markdown_table(["table", *LIBRARIES], rows),
            *sorted(set(notes)),
        ]
    )


def main() -> None:
    cases = [
        {"table": table, "library": library, "fold": fold}
        for table in TABLES
        for fold in range(N_FOLDS)
        for library in LIBRARIES
    ]
    study("categories", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()
