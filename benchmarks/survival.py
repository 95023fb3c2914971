"""Survival times: hilboost, scikit-survival, lifelines and XGBoost, each at its defaults.

Run ``python benchmarks/survival.py``.
Five folds of the data sets of scikit-survival, of rotterdam (from the package SurvSet), METABRIC
and SUPPORT, stratified by event, five times (the number of folds is in the last table), and the
training and test parts of those of DeepSurv as published.  Every method gets the same matrix:
categories as indicators, missing values as medians.
*C* is Harrell's concordance.  *IBS* is the integrated Brier score of scikit-survival between the
10th and 90th percentile of the times of the test events, weighted by the censoring of the training
rows; XGBoost's Cox model has no survival function, and that of lifelines, with a penalty of 0.001,
does not converge on some folds of flchain.  On flchain and SUPPORT, the forest of scikit-survival
takes half a minute and more a fold, and 6 GB, and its boosting 50 s on SUPPORT, so that they were
run on some of the folds there.  A mean is over the folds that a method was run on, and a rank
compares two methods on the folds of both.
*hilboost cox, 100 rounds* grows as many trees as scikit-survival's boosting and XGBoost, without
early stopping.  The seconds are those that the fit takes on the processor, with one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sksurv import datasets
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored, integrated_brier_score

from _common import arrays, markdown_table, study
from hilboost import BoostingSurvival

FOLDS, REPEATS, SEED = 5, 5, 0
LARGEST = float(np.finfo(np.float32).max)  # some risks of XGBoost are infinite


def rotterdam() -> tuple[pd.DataFrame, np.ndarray]:
    """Rotterdam breast cancer: the columns of the table, and events and times."""
    from SurvSet.data import SurvLoader

    table = SurvLoader().load_dataset("rott2")["df"]
    y = labels(table["event"].to_numpy() > 0, table["time"].to_numpy())
    return table.drop(columns=["pid", "event", "time"]), y


def deepsurv(name: str) -> list[np.ndarray]:
    """Training matrix and labels of a table of DeepSurv's, then those of the test part."""
    found = arrays("survival_deepsurv")
    parts = []
    for part in ("train", "test"):
        X, e, t = (found[f"{name}_{kind}_{part}"] for kind in "xet")
        parts += [X.astype(np.float64), labels(e > 0, t)]
    return parts


def whole(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Both parts of a table of DeepSurv's."""
    X, y, X_test, y_test = deepsurv(name)
    return pd.DataFrame(np.concatenate([X, X_test])), np.concatenate([y, y_test])


FOLDED: dict[str, Callable[[], Any]] = {
    "veteran": datasets.load_veterans_lung_cancer,
    "whas500": datasets.load_whas500,
    "GBSG2": datasets.load_gbsg2,
    "actg320": lambda: datasets.load_aids(endpoint="aids"),
    "flchain": datasets.load_flchain,
    "rotterdam": rotterdam,
    "metabric": lambda: whole("metabric"),
    "support": lambda: whole("support"),
}
PUBLISHED = {f"{name}, published": name for name in ("gbsg", "metabric", "support")}
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def labels(event: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Structured array of events and times, which are positive."""
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, np.maximum(time, 1e-3)
    return y


def matrix(table: pd.DataFrame) -> np.ndarray:
    """Numbers: indicators of categories, and medians for missing values."""
    table = table.drop(columns=[c for c in table if c == "chapter"])  # flchain: the cause of death
    table = pd.get_dummies(table, drop_first=True).astype(float)
    return table.fillna(table.median()).to_numpy()


def splits(name: str) -> Iterator[Split]:
    if name in PUBLISHED:
        X, y, X_test, y_test = deepsurv(PUBLISHED[name])
        yield X, y, X_test, y_test
        return
    table, y = FOLDED[name]()
    first, second = y.dtype.names
    X, y = matrix(table), labels(y[first], y[second])
    for repeat in range(REPEATS):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED + repeat)
        for train, test in folds.split(X, y["event"]):
            yield X[train], y[train], X[test], y[test]


def xgboost(loss: str) -> Callable[[np.ndarray, np.ndarray], Any]:
    import xgboost as xgb

    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        data = xgb.DMatrix(X)
        if loss == "survival:cox":
            data.set_label(np.where(y["event"], y["time"], -y["time"]))
        else:
            data.set_float_info("label_lower_bound", y["time"])
            data.set_float_info("label_upper_bound", np.where(y["event"], y["time"], np.inf))
        model = xgb.train({"objective": loss, "nthread": 1}, data, 100)
        sign = 1 if loss == "survival:cox" else -1
        return lambda rows, times: (sign * model.predict(xgb.DMatrix(rows)), None)

    return fit


def of_scikit_survival(make: Callable[[], Any]) -> Callable[[np.ndarray, np.ndarray], Any]:
    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        model = make().fit(X, y)

        def predict(rows: np.ndarray, times: np.ndarray) -> Any:
            functions = model.predict_survival_function(rows)
            return model.predict(rows), np.array([f(times) for f in functions])

        return predict

    return fit


def lifelines() -> Callable[[np.ndarray, np.ndarray], Any]:
    from lifelines import CoxPHFitter

    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        varies = np.ptp(X, axis=0) > 0  # it does not converge with constant columns
        table = pd.DataFrame(X[:, varies]).assign(event=y["event"], time=y["time"])
        model = CoxPHFitter(penalizer=1e-3).fit(table, "time", "event")
        return lambda rows, times: (
            model.predict_log_partial_hazard(pd.DataFrame(rows[:, varies])).to_numpy(),
            model.predict_survival_function(pd.DataFrame(rows[:, varies]), times).to_numpy().T,
        )

    return fit


def hilboost(**parameters: Any) -> Callable[[np.ndarray, np.ndarray], Any]:
    def fit(X: np.ndarray, y: np.ndarray) -> Any:
        model = BoostingSurvival(random_state=0, n_jobs=1, **parameters).fit(X, y)
        return lambda rows, times: (
            model.loss_.inverse_link(model.predict_raw(rows))[:, 0],
            model.predict_survival_function(rows, times),
        )

    return fit


METHODS: dict[str, Callable[[], Any]] = {
    "hilboost cox": lambda: hilboost(),
    "hilboost cox, 100 rounds": lambda: hilboost(n_estimators=100, early_stopping=False),
    "hilboost aft": lambda: hilboost(loss="aft"),
    "hilboost discrete_hazard": lambda: hilboost(loss="discrete_hazard"),
    "scikit-survival boosting": lambda: of_scikit_survival(
        lambda: GradientBoostingSurvivalAnalysis(random_state=0)
    ),
    "scikit-survival forest": lambda: of_scikit_survival(
        lambda: RandomSurvivalForest(n_jobs=1, random_state=0, low_memory=False)
    ),
    "scikit-survival Cox": lambda: of_scikit_survival(lambda: CoxPHSurvivalAnalysis(alpha=1e-3)),
    "lifelines Cox": lifelines,
    "XGBoost cox": lambda: xgboost("survival:cox"),
    "XGBoost aft": lambda: xgboost("survival:aft"),
}


@cache
def splits_of(name: str) -> list[Split]:
    return list(splits(name))


@cache
def warm_up(method: str) -> None:
    """Compile, and load libraries, before the clock starts."""
    X, y, *_ = splits_of("veteran")[0]
    METHODS[method]()(X, y)


def measure(data: str, split: int, method: str) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):
        warm_up(method)
        return scores(method, *splits_of(data)[split])


def scores(
    method: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> dict[str, Any]:
    began = time.process_time()
    predict = METHODS[method]()(X, y)
    seconds = time.process_time() - began
    times = np.percentile(y_test["time"][y_test["event"]], np.linspace(10, 90, 50))
    inside = y_test["time"] < y["time"].max()  # where the weights of censoring are known
    times = np.unique(np.clip(times, None, y_test["time"][inside].max() - 1e-9))
    risk, survival = predict(X_test, times)
    risk = np.clip(risk, -LARGEST, LARGEST)
    row = {"seconds": seconds}
    row["C"] = concordance_index_censored(y_test["event"], y_test["time"], risk)[0]
    if survival is not None:
        row["IBS"] = integrated_brier_score(y, y_test[inside], survival[inside], times)
    return row


def table_of(rows: list[dict[str, Any]], key: str, names: list[str]) -> str:
    sign = -1 if key in ("IBS", "seconds") else 1
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if key in row:
            found.setdefault((row["method"], row["data"]), {})[row["split"]] = row[key]

    def is_better(other: dict[int, float], own: dict[int, float]) -> bool:
        both = [k for k in own if k in other]
        return bool(both) and sign * sum(other[k] - own[k] for k in both) > 0

    lines = []
    for method in METHODS:
        own = {n: found[method, n] for n in names if (method, n) in found}
        cells = [f"{np.mean([*own[n].values()]):.4f}" if n in own else "" for n in names]
        ranks = [
            1 + sum(is_better(found[o, n], values) for o in METHODS if (o, n) in found)
            for n, values in own.items()
        ]
        lines.append([method, *cells, f"{np.mean(ranks):.2f}" if ranks else ""])
    return markdown_table([key, *names, "mean rank"], lines)


def folds_of(rows: list[dict[str, Any]], names: list[str]) -> str:
    """How many folds each method was run on."""
    counts = [
        [str(sum((r["method"], r["data"]) == (m, n) for r in rows) or "") for n in names]
        for m in METHODS
    ]
    lines = [[m, *found] for m, found in zip(METHODS, counts, strict=True)]
    return markdown_table(["folds", *names], lines)


def page(records: list[dict[str, Any]], facts: str) -> str:
    names = [name for name in (*FOLDED, *PUBLISHED) if any(r["data"] == name for r in records)]
    texts = ["# Survival times", "", __doc__.split("\n\n")[1].split("\n", 1)[1].strip(), ""]
    for key in ("C", "IBS", "seconds"):
        texts += [table_of(records, key, names), ""]
    return "\n".join([*texts, folds_of(records, names), "", facts])


def main() -> None:
    numbers = dict.fromkeys(FOLDED, FOLDS * REPEATS) | dict.fromkeys(PUBLISHED, 1)
    cases = [
        {"data": data, "split": split, "method": method}
        for data, number in numbers.items()
        for split in range(number)
        for method in METHODS
    ]
    study("survival", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()
