"""Coverage and size of calibrated intervals and sets on held-out rows.

Run ``python benchmarks/coverage_of_intervals.py``.  In each split, 2,000 rows are known.  "Split"
models are fitted to 1,000 of them and calibrated with the other 1,000.  "Folds" models are fitted
to all 2,000 and use their own out-of-fold predictions.  Coverage is measured on up to 4,000 other
rows, in four random splits.  An interrupted run goes on; delete the JSON file to start anew.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from _common import (
    RESULTS,
    data_folder,
    environment,
    environment_markdown,
    markdown_table,
    write_json,
)

COVERAGE, KNOWN, TESTED, SPLITS = 0.9, 2000, 4000, 4
LEVELS = (0.05, 0.95)
Rows = tuple[Any, Any]
Measured = dict[str, float]


@dataclass(frozen=True)
class Split:
    """Rows of one split: all known ones, those for fitting and for calibrating, and the test."""

    known: Rows
    fit: Rows
    calibrate: Rows
    test: Rows

    @classmethod
    def draw(cls, X: Any, y: Any, seed: int) -> Split:
        order = np.random.default_rng(seed).permutation(len(X))[: KNOWN + TESTED]

        def rows(first: int, last: int) -> Rows:
            chosen = order[first:last]
            return (X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]), y[chosen]

        half = KNOWN // 2
        return cls(rows(0, KNOWN), rows(0, half), rows(half, KNOWN), rows(KNOWN, len(order)))


def _arrays(name: str) -> Any:
    return np.load(data_folder() / f"{name}.npz", allow_pickle=False)


def _plain(name: str) -> Callable[[], Rows]:
    def read() -> Rows:
        arrays = _arrays(name)
        return arrays["X"].astype(float), arrays["y"].astype(float).ravel()

    return read


def _abalone() -> Rows:
    table = pd.read_csv(data_folder() / "abalone.csv.gz")
    return table.drop(columns="Rings"), table["Rings"].to_numpy(dtype=float)


def _adult() -> Rows:
    table = pd.read_csv(data_folder() / "adult_ydf.csv.gz")
    return table.drop(columns=["split", "income"]), table["income"].to_numpy(dtype=str)


def _letter() -> Rows:
    arrays = _arrays("letter_recognition")
    return arrays["X"].astype(float), arrays["y"]


def _higgs() -> Rows:
    arrays = _arrays("higgs_lightgbm")
    X = np.concatenate([arrays["X_train"], arrays["X_test"]])
    return X.astype(float), np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(int)


def _rankings() -> Rows:
    arrays = _arrays("label_ranking")
    return arrays["cpu_small_X"].astype(float), arrays["cpu_small_ranks"].astype(int)


def _tags() -> Rows:
    arrays = _arrays("mulan_multilabel")
    X, Y = (
        np.concatenate([arrays[f"scene_{name}_train"], arrays[f"scene_{name}_test"]])
        for name in "XY"
    )
    return X.astype(float), Y.astype(int)


def _images() -> Rows:
    arrays = _arrays("usps")
    images = np.concatenate([arrays["X_train"], arrays["X_test"]]).astype(float)
    return images[:, :128], images[:, 128:]


def regressors(seed: int) -> dict[str, Any]:
    from hilboost import BoostingRegressor

    trees = BoostingRegressor(random_state=seed)
    quantiles = BoostingRegressor("quantile", quantile=LEVELS, random_state=seed)
    return {
        "trees, split": trees,
        "trees, folds": trees,
        "two quantiles, split": quantiles,
        "two quantiles, folds": quantiles,
    }


def smooth_regressors(seed: int) -> dict[str, Any]:
    from hilboost import KernelBoostingRegressor

    machine = KernelBoostingRegressor(random_state=seed)
    return {**regressors(seed), "kernel machine, split": machine}


def classifiers(seed: int) -> dict[str, Any]:
    from hilboost import BoostingClassifier

    trees = BoostingClassifier(n_estimators=100, learning_rate=0.1, random_state=seed)
    return {"trees, split": trees, "trees, folds": trees}


def smooth_classifiers(seed: int) -> dict[str, Any]:
    from hilboost import KernelBoostingClassifier

    machine = KernelBoostingClassifier(random_state=seed)
    return {**classifiers(seed), "kernel machine, split": machine}


def rankers(seed: int) -> dict[str, Any]:
    from hilboost import OutputKernelForestRegressor

    return {"forest, split": OutputKernelForestRegressor("ranking", random_state=seed)}


def taggers(seed: int) -> dict[str, Any]:
    from hilboost import OutputKernelForestRegressor

    return {"forest, split": OutputKernelForestRegressor("label_set", random_state=seed)}


def completers(seed: int) -> dict[str, Any]:
    from hilboost import OutputKernelBoostingRegressor

    model = OutputKernelBoostingRegressor("gaussian", learner="kernel", random_state=seed)
    return {"kernel machine, split": model}


def measure_intervals(model: Any, X: Any, y: Any) -> Measured:
    low, high = model.predict_interval(X, COVERAGE).T
    inside = (low <= y) & (y <= high)
    return {"coverage": inside.mean(), "size": (high - low).mean() / y.std()}


def measure_classes(model: Any, X: Any, y: Any) -> Measured:
    sets = model.predict_set(X, COVERAGE)
    inside = sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    error = 1 - model.score(X, y)
    return {"coverage": inside.mean(), "size": sets.sum(axis=1).mean(), "error": error}


def measure_labels(model: Any, X: Any, y: Any, candidates: Any = None) -> Measured:
    """Sets among the given candidates, or among the test labels."""
    candidates = y if candidates is None else candidates
    sets = model.predict_set(X, COVERAGE, candidates=candidates)
    inside = [
        bool((one.reshape(len(one), -1) == own.ravel()).all(axis=1).any())
        for one, own in zip(sets, y, strict=True)
    ]
    return {"coverage": np.mean(inside), "size": np.mean([len(one) for one in sets])}


def measure_rankings(model: Any, X: Any, y: Any) -> Measured:
    return measure_labels(model, X, y, np.array(list(permutations(range(1, y.shape[1] + 1)))))


def measure_tags(model: Any, X: Any, y: Any) -> Measured:
    every = np.array(list(np.ndindex(*(2,) * y.shape[1])))
    return measure_labels(model, X, y, every)


SETS: dict[str, tuple[str, Callable[[], Rows], Any, Any]] = {
    "kin8nm": ("kin8nm", _plain("kin8nm"), smooth_regressors, measure_intervals),
    "power_plant": ("Power plant", _plain("power_plant"), regressors, measure_intervals),
    "california": (
        "California housing",
        _plain("california_housing"),
        regressors,
        measure_intervals,
    ),
    "abalone": ("Abalone (a category)", _abalone, regressors, measure_intervals),
    "higgs": ("Higgs (2 classes)", _higgs, classifiers, measure_classes),
    "adult": ("Adult (2 classes, categories)", _adult, classifiers, measure_classes),
    "letter": ("Letter (26 classes)", _letter, smooth_classifiers, measure_classes),
    "rankings": ("cpu-small (rankings of 5)", _rankings, rankers, measure_rankings),
    "tags": ("Scene (sets of 6 labels)", _tags, taggers, measure_tags),
    "images": ("USPS (lower halves of digits)", _images, completers, measure_labels),
}
TABLES = {
    "Intervals": (("kin8nm", "power_plant", "california", "abalone"), "width / sd of the target"),
    "Sets of classes": (("higgs", "adult", "letter"), "classes in a set"),
    "Sets of candidates": (("rankings", "tags", "images"), "candidates in a set"),
}


def measured(name: str, done: set[tuple[str, str, int]]) -> Iterator[dict[str, Any]]:
    """Measure all models on all splits of one data set, but those that are done."""
    title, read, models, measure = SETS[name]
    X, y = read()
    for seed in range(SPLITS):
        split = Split.draw(X, y, seed)
        for kind, model in models(seed).items():
            if (name, kind, seed) in done:
                continue
            began = time.perf_counter()
            if kind.endswith("folds"):
                model.fit(*split.known)
            else:
                model.fit(*split.fit).calibrate(*split.calibrate)
            found = {key: float(value) for key, value in measure(model, *split.test).items()}
            spent = time.perf_counter() - began
            record = {
                "set": name,
                "title": title,
                "model": kind,
                "split": seed,
                "tested": len(split.test[1]),
            }
            yield record | found | {"seconds": spent}


def table(records: list[dict[str, Any]], names: tuple[str, ...], size: str) -> str:
    rows = []
    for name in names:
        of_set = [r for r in records if r["set"] == name]
        for kind in dict.fromkeys(r["model"] for r in of_set):
            found = [r for r in of_set if r["model"] == kind]
            coverage = 100 * np.array([r["coverage"] for r in found])
            rows.append(
                [
                    found[0]["title"],
                    kind,
                    f"{coverage.mean():.1f}",
                    f"{coverage.std(ddof=1):.1f}" if len(found) > 1 else "-",
                    f"{np.mean([r['size'] for r in found]):.3g}",
                    f"{np.mean([r['error'] for r in found]):.3f}" if "error" in found[0] else "-",
                    len(found),
                ]
            )
    header = ["data", "model", "coverage, %", "sd over splits", size, "error rate", "splits"]
    return markdown_table(header, rows)


def main() -> None:
    """Measure the named data sets (default: all), write JSON and Markdown."""
    warnings.simplefilter("ignore")
    path = RESULTS / "coverage_of_intervals.json"
    facts, records = environment(2), []
    if path.is_file():  # an interrupted run goes on
        content = json.loads(path.read_text())
        facts, records = content["environment"], content["records"]
    done = {(record["set"], record["model"], record["split"]) for record in records}
    for name in sys.argv[1:] or SETS:
        for record in measured(name, done):
            records.append(record)
            print({k: v for k, v in record.items() if k != "title"}, flush=True)
            write_json(path, {"environment": facts, "records": records})
    parts = [
        f"# Coverage of intervals and sets\n\n{environment_markdown(facts)}\n\n"
        f"Nominal coverage {100 * COVERAGE:g} %. In each random split, {KNOWN:,} rows are known. "
        "“Split” models are fitted to half of them and calibrated with the other half. “Folds” "
        "models are fitted to all and use their out-of-fold predictions. Coverage is that of up "
        f"to {TESTED:,} other rows. With {KNOWN // 2:,} calibration rows, the coverage of one "
        "split has a standard deviation of about 1 point."
    ]
    for title, (names, size) in TABLES.items():
        if any(record["set"] in names for record in records):
            parts.append(f"## {title}\n\n{table(records, names, size)}")
    text = "\n\n".join(parts) + "\n"
    path.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
