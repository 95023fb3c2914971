"""Speed, memory and quality of tree boosting at equal settings.

Every library gets the same rounds, leaves, learning rate, bins and thread count, no early stopping
and no L2 penalty. What is measured:

=============  ====================================================================================
case           content
=============  ====================================================================================
reg-31         1,000,000 x 28 synthetic regression, 31 leaves: fit seconds, R2, peak memory;
               prediction of 100,000 rows and of one row
reg-255        the same with 255 leaves
binary-31      the same inputs with a binary target, 31 leaves: log-loss, AUC
letter-100     Letter Recognition, 26 classes, 100 rounds of 31 leaves: log-loss, accuracy
letter-300     the same with 300 rounds
letter-1000    its first 1,000 rows, 1,000 rounds
small          2,000 x 20 regression, 31 leaves, nine repeats
=============  ====================================================================================

Fits are timed in one process, the libraries taking turns. Each library first makes one untimed tiny
fit of the same kind, which takes compilation and start-up out of the timed runs; its seconds are
reported as ``warm-up``. Peak memory comes from a fresh process per library, counted from just
before the fit.

Run ``python benchmarks/trees.py``, or with ``--only small,lightgbm``.

Settings that have no equal: XGBoost bounds the sum of the second derivatives in a leaf, not the
number of rows (20 for regression, where both are the same; its default of 1 for classification).
CatBoost and ``multi_output="shared"`` grow one tree for all classes in a round, the others one tree
per class. XGBoost's second derivative of the multi-class loss is twice that of the others, so that
its steps are shorter. ``catboost-symmetric`` grows CatBoost's default kind of tree, with
2**depth >= leaves.
"""

from __future__ import annotations

import gc
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

from _common import (
    Record,
    arrays,
    by,
    describe_error,
    estimator,
    failures_section,
    importable,
    markdown_table,
    median,
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    study,
    timed,
)

LEARNING_RATE = 0.1
BINS = 255
MIN_SAMPLES_LEAF = 20
WARM_UP_ROWS = 5_000
WARM_UP_ROUNDS = 2
THREADS = 2


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    task: str
    rows: int
    test_rows: int
    columns: int
    leaves: int = 31
    rounds: int = 100
    repeats: int = 3


CASES = {
    case.name: case
    for case in (
        Case("reg-31", "synthetic", "regression", 1_000_000, 100_000, 28),
        Case("reg-255", "synthetic", "regression", 1_000_000, 100_000, 28, leaves=255),
        Case("binary-31", "synthetic", "binary", 1_000_000, 100_000, 28),
        Case("letter-100", "letter", "multiclass", 16_000, 4_000, 16),
        Case("letter-300", "letter", "multiclass", 16_000, 4_000, 16, rounds=300),
        Case("letter-1000", "letter", "multiclass", 1_000, 4_000, 16, rounds=1000),
        Case("small", "synthetic", "regression", 2_000, 10_000, 20, repeats=9),
    )
}
PREDICTED = "reg-31"
CALLS = {"100,000 rows": 4, "one row": 60}
"""Timed predictions after each fit of ``PREDICTED``."""


def signal(X: np.ndarray) -> np.ndarray:
    """Nonlinear function of the first eight columns, with interactions; mean about zero.

    Every column acts by itself too.  A pure product of centered columns is left out on purpose: no
    split on one of its columns gains anything, greedy trees find it by luck only, and R2 then
    differs more between two seeds of one library (.76 to .835) than between libraries.
    """
    return (
        3 * np.sin(2 * X[:, 0])
        + 2 * (X[:, 1] + 1) * (X[:, 2] + 1)
        + 1.5 * np.abs(X[:, 3]) * (X[:, 4] > 0)
        + X[:, 5] ** 2
        + 4 * X[:, 7] * np.exp(-(X[:, 6] ** 2))
        + 0.5 * X[:, 0] * X[:, 5]
        - 3.6
    )


def _synthetic(task: str, rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    if task == "regression":
        return X, signal(X) + rng.standard_normal(rows)
    return X, (rng.random(rows) < 1 / (1 + np.exp(-signal(X)))).astype(np.int64)


@lru_cache(maxsize=1)
def load(source: str, task: str, rows: int, test_rows: int, columns: int) -> Data:
    if source == "letter":
        file = arrays("letter_recognition")
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
        test = slice(16_000, 16_000 + test_rows)
        return Data(X[:rows], y[:rows], X[test], y[test])
    return Data(
        *_synthetic(task, rows, columns, seed=1), *_synthetic(task, test_rows, columns, seed=2)
    )


def data_of(case: Case) -> Data:
    return load(case.source, case.task, case.rows, case.test_rows, case.columns)


VARIANTS: dict[str, Record] = {
    "hilboost": {},
    "hilboost-shared": {"multi_output": "shared"},
    "hilboost-separate": {"multi_output": "separate"},
    "lightgbm": {},
    "xgboost": {},
    "sklearn": {},
    "catboost-symmetric": {},
}


def package_of(library: str) -> str:
    return library.split("-")[0]


def settings_of(package: str, case: Case) -> Record:
    """The same trees in the words of each package."""
    leaf_rows = MIN_SAMPLES_LEAF if case.task == "regression" else 1
    settings: dict[str, Record] = {
        "hilboost": {
            "n_estimators": case.rounds,
            "max_leaf_nodes": case.leaves,
            "max_depth": None,
            "max_bins": BINS,
            "min_samples_leaf": MIN_SAMPLES_LEAF,
            "l2_regularization": 0.0,
            "max_features": 1.0,
            "subsample": 1.0,
            "line_search": False,
            "early_stopping": False,
        },
        "lightgbm": {
            "n_estimators": case.rounds,
            "num_leaves": case.leaves,
            "max_bin": BINS,
            "min_child_samples": MIN_SAMPLES_LEAF,
            "reg_lambda": 0.0,
        },
        "xgboost": {
            "n_estimators": case.rounds,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": case.leaves,
            "max_depth": 0,
            "max_bin": BINS,
            "min_child_weight": leaf_rows,
            "reg_lambda": 0.0,
        },
        "sklearn": {
            "max_iter": case.rounds,
            "max_leaf_nodes": case.leaves,
            "max_bins": BINS,
            "min_samples_leaf": MIN_SAMPLES_LEAF,
            "l2_regularization": 0.0,
            "early_stopping": False,
        },
        "catboost": {
            "iterations": case.rounds,
            "depth": math.ceil(math.log2(case.leaves)),
            "border_count": BINS - 1,
            "l2_leaf_reg": 0.0,
            "bootstrap_type": "No",
            "boosting_type": "Plain",
            "random_strength": 0.0,
            "leaf_estimation_iterations": 1,
        },
    }
    return {"learning_rate": LEARNING_RATE, **settings[package]}


def model_of(package: str, case: Case, **more: Any) -> Any:
    regression = case.task == "regression"
    return estimator(package, regression, 0, THREADS, **settings_of(package, case), **more)


def fitted(library: str, case: Case, data: Data) -> Any:
    return model_of(package_of(library), case, **VARIANTS[library]).fit(data.X, data.y)


@cache
def warm_up(library: str, case: Case) -> float:
    """Seconds of a first small fit and its predictions."""
    small = Data(*(part[:WARM_UP_ROWS] for part in data_of(case)))

    def use() -> None:
        model = fitted(library, replace(case, rounds=WARM_UP_ROUNDS), small)
        predict = model.predict if case.task == "regression" else model.predict_proba
        predict(small.X)
        predict(small.X[:1])

    return timed(use)[0]


def quality(model: Any, case: Case, data: Data) -> dict[str, float]:
    if case.task == "regression":
        return {"R2": float(r2_score(data.y_test, np.ravel(model.predict(data.X_test))))}
    chance = np.clip(np.asarray(model.predict_proba(data.X_test), np.float64), 1e-7, 1)
    chance /= chance.sum(axis=1, keepdims=True)
    labels = np.arange(chance.shape[1])
    scores = {"log-loss": float(log_loss(data.y_test, chance, labels=labels))}
    if case.task == "binary":
        return scores | {"AUC": float(roc_auc_score(data.y_test, chance[:, 1]))}
    return scores | {"accuracy": float(accuracy_score(data.y_test, chance.argmax(axis=1)))}


def memory_of(library: str, case: Case) -> Record:
    """Peak memory and seconds of one fit after a warm-up, in this fresh process."""
    data = data_of(case)
    warm_up(library, case)
    before = resident_mb()
    reset_peak_memory()
    with threadpool_limits(THREADS):
        seconds, _ = timed(lambda: fitted(library, case, data))
    peak = peak_memory_mb()
    added = None if before is None else peak - before
    return {"peak_mb": peak, "added_mb": added, "fresh_seconds": seconds}


def predict_seconds(library: str, model: Any, X: np.ndarray) -> dict[str, list[float]]:
    predict = model.predict
    if package_of(library) == "catboost":
        predict = partial(predict, thread_count=THREADS)
    found = {}
    for (label, calls), batch in zip(CALLS.items(), (X, X[:1]), strict=True):
        predict(batch)
        found[label] = [timed(lambda batch=batch: predict(batch))[0] for _ in range(calls)]
    return found


def sized(name: str, quick: bool) -> Case:
    case = CASES[name]
    return replace(case, rows=1_000, test_rows=1_000, rounds=5) if quick else case


def measure(case: str, library: str, repeat: int, quick: bool = False) -> Record:
    whole = sized(case, quick)
    data = data_of(whole)
    record: Record = {"rows": whole.rows, "rounds": whole.rounds}
    try:
        record["warm_up_seconds"] = warm_up(library, whole)
        gc.collect()
        with threadpool_limits(THREADS):
            record["seconds"], model = timed(lambda: fitted(library, whole, data))
            if case == PREDICTED:
                record["predict_seconds"] = predict_seconds(library, model, data.X_test)
        record["quality"] = quality(model, whole, data)
    except Exception as error:
        return record | {"failure": describe_error(error)}
    if repeat > 0:
        return record
    fresh = run_fresh(__file__, ["--memory", json.dumps([case, library, quick])])
    return record | ({"failure": fresh["error"]} if "error" in fresh else fresh)


def spread(times: list[float]) -> str:
    return f"{min(times):.3g}-{max(times):.3g}"


def by_library(records: list[Record]) -> dict[str, list[Record]]:
    """Finished runs of each library, the fastest first."""
    libraries = by((record for record in records if "failure" not in record), "library")
    ordered = sorted(libraries.items(), key=lambda item: median(r["seconds"] for r in item[1]))
    return dict(ordered)


def ratio_to(reference: str, medians: dict[str, float], library: str) -> float | None:
    return medians[library] / medians[reference] if reference in medians else None


def fit_section(name: str, records: list[Record]) -> str:
    case, libraries = CASES[name], by_library(records)
    times = {library: [r["seconds"] for r in runs] for library, runs in libraries.items()}
    medians = {library: median(found) for library, found in times.items()}
    metrics = list(next(iter(libraries.values()))[0]["quality"]) if libraries else []
    rows = []
    for library, runs in libraries.items():
        first = runs[0]
        ratio = ratio_to("lightgbm", medians, library)
        scores = [round(first["quality"][metric], 5) for metric in metrics]
        tail = [first.get("peak_mb"), first.get("added_mb"), first["warm_up_seconds"]]
        rows.append([library, medians[library], spread(times[library]), ratio, *scores, *tail])
    header = ["library", "fit s (median)", "range", "ratio to LightGBM", *metrics]
    header += ["peak MiB", "added by fit MiB", "warm-up s"]
    return (
        f"## {name}: {records[0]['rows']:,} x {case.columns} {case.task}, "
        f"{records[0]['rounds']} rounds, {case.leaves} leaves, "
        f"{max(map(len, times.values()), default=0)} repeats\n\n{markdown_table(header, rows)}"
    )


def predict_section(label: str, records: list[Record]) -> str:
    times = {
        library: [seconds for r in runs for seconds in r.get("predict_seconds", {}).get(label, [])]
        for library, runs in by_library(records).items()
    }
    medians = {library: median(found) for library, found in times.items() if found}
    rows = [
        [library, 1000 * medians[library], ratio_to("xgboost", medians, library)]
        for library in sorted(medians, key=medians.__getitem__)
    ]
    calls = max(map(len, times.values()), default=0)
    title = f"## Prediction, {label}, {calls} timed calls, models of {PREDICTED}"
    return f"{title}\n\n{markdown_table(['library', 'median ms', 'ratio to XGBoost'], rows)}"


def page(records: list[Record], facts: str) -> str:
    cases = by(records, "case")
    parts = [
        f"# Tree boosting at equal settings\n\n{facts}",
        f"Learning rate {LEARNING_RATE}, {BINS} bins, at least {MIN_SAMPLES_LEAF} rows per leaf, "
        "no L2 penalty, no early stopping. Each library makes one small untimed fit first "
        f"({WARM_UP_ROUNDS} rounds on at most {WARM_UP_ROWS:,} rows), so that fit times exclude "
        "compilation. The column *warm-up s* shows the time of this fit. Libraries take turns; "
        "times are medians. Peak memory is measured in a fresh process with the same data, "
        "starting just before the fit.",
        *(fit_section(*found) for found in cases.items()),
        *(predict_section(label, cases[PREDICTED]) for label in CALLS if PREDICTED in cases),
        failures_section(records, ("case", "library", "repeat")),
    ]
    return "\n\n".join(part for part in parts if part)


def all_cases() -> Iterator[Record]:
    """Hilboost's two ways to many outputs take part only where there are several classes."""
    libraries = [library for library in VARIANTS if importable(package_of(library))]
    for name, case in CASES.items():
        multiclass = case.task == "multiclass"
        skipped = {"hilboost"} if multiclass else {"hilboost-shared", "hilboost-separate"}
        for repeat in range(case.repeats):
            for library in libraries:
                if library not in skipped:
                    yield {"case": name, "library": library, "repeat": repeat}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        name, library, quick = json.loads(sys.argv[2])
        print(json.dumps(memory_of(library, sized(name, quick))))
    else:
        few = partial(measure, quick=True)
        study("trees", all_cases(), measure, page, about=__doc__, threads=THREADS, quick=few)
