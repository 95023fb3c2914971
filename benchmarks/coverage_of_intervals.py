"""Coverage and size of calibrated intervals and sets on held-out rows.

Run ``python benchmarks/coverage_of_intervals.py``.  In each split, 2,000
rows are known.  "Split" models are fitted to 1,000 of them and calibrated with the other 1,000.
"Folds" models are fitted to all 2,000 and use their own out-of-fold predictions.  Coverage is
measured on up to 4,000 other rows, in four random splits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from _common import arrays, data_folder, markdown_table, parts, study, timed
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
)

COVERAGE, KNOWN, TESTED, SPLITS = 0.9, 2000, 4000, 4
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
            return (X.iloc[chosen] if isinstance(X, pd.DataFrame) else X[chosen]), y[chosen]

        half = KNOWN // 2
        return cls(rows(0, KNOWN), rows(0, half), rows(half, KNOWN), rows(KNOWN, len(order)))


def _plain(name: str) -> Rows:
    return arrays(name)["X"].astype(float), arrays(name)["y"].astype(float).ravel()


def _abalone() -> Rows:
    table = pd.read_csv(data_folder() / "abalone.csv.gz")
    return table.drop(columns="Rings"), table["Rings"].to_numpy(dtype=float)


def _adult() -> Rows:
    table = pd.read_csv(data_folder() / "adult_ydf.csv.gz")
    return table.drop(columns=["split", "income"]), table["income"].to_numpy(dtype=str)


def _letter() -> Rows:
    found = arrays("letter_recognition")
    return found["X"].astype(float), found["y"]


def _higgs() -> Rows:
    X, y = parts("higgs_lightgbm", "X", "y")
    return X.astype(float), y.astype(int)


def _rankings() -> Rows:
    found = arrays("label_ranking")
    return found["cpu_small_X"].astype(float), found["cpu_small_ranks"].astype(int)


def _tags() -> Rows:
    X, Y = parts("mulan_multilabel", "scene_X", "scene_Y")
    return X.astype(float), Y.astype(int)


def _images() -> Rows:
    images = parts("usps", "X")[0].astype(float)
    return images[:, :128], images[:, 128:]


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


TREES = BoostingRegressor()
QUANTILES = BoostingRegressor("quantile", quantile=(0.05, 0.95))
REGRESSORS = {
    "trees, split": TREES,
    "trees, folds": TREES,
    "two quantiles, split": QUANTILES,
    "two quantiles, folds": QUANTILES,
}
SMOOTH_REGRESSORS = REGRESSORS | {"kernel machine, split": KernelBoostingRegressor()}
CLASSIFIERS = dict.fromkeys(
    ("trees, split", "trees, folds"), BoostingClassifier(n_estimators=100, learning_rate=0.1)
)
SMOOTH_CLASSIFIERS = CLASSIFIERS | {"kernel machine, split": KernelBoostingClassifier()}
RANKERS = {"forest, split": OutputKernelForestRegressor("ranking")}
TAGGERS = {"forest, split": OutputKernelForestRegressor("label_set")}
COMPLETERS = {"kernel machine, split": OutputKernelBoostingRegressor("gaussian", learner="kernel")}


@dataclass(frozen=True)
class Data:
    title: str
    read: Callable[[], Rows]
    models: dict[str, Any]
    measure: Callable[..., Measured]


SETS = {
    "kin8nm": Data("kin8nm", partial(_plain, "kin8nm"), SMOOTH_REGRESSORS, measure_intervals),
    "power_plant": Data(
        "Power plant", partial(_plain, "power_plant"), REGRESSORS, measure_intervals
    ),
    "california": Data(
        "California housing", partial(_plain, "california_housing"), REGRESSORS, measure_intervals
    ),
    "abalone": Data("Abalone (a category)", _abalone, REGRESSORS, measure_intervals),
    "higgs": Data("Higgs (2 classes)", _higgs, CLASSIFIERS, measure_classes),
    "adult": Data("Adult (2 classes, categories)", _adult, CLASSIFIERS, measure_classes),
    "letter": Data("Letter (26 classes)", _letter, SMOOTH_CLASSIFIERS, measure_classes),
    "rankings": Data("cpu-small (rankings of 5)", _rankings, RANKERS, measure_rankings),
    "tags": Data("Scene (sets of 6 labels)", _tags, TAGGERS, measure_tags),
    "images": Data("USPS (lower halves of digits)", _images, COMPLETERS, measure_labels),
}
TABLES = {
    "Intervals": (("kin8nm", "power_plant", "california", "abalone"), "width / sd of the target"),
    "Sets of classes": (("higgs", "adult", "letter"), "classes in a set"),
    "Sets of candidates": (("rankings", "tags", "images"), "candidates in a set"),
}


def measure(data: str, split: int, model: str) -> dict[str, Any]:
    known = SETS[data]
    rows = Split.draw(*known.read(), split)
    fitted = known.models[model].set_params(random_state=split)

    def fit_and_test() -> Measured:
        if model.endswith("folds"):
            fitted.fit(*rows.known)
        else:
            fitted.fit(*rows.fit).calibrate(*rows.calibrate)
        return known.measure(fitted, *rows.test)

    with warnings.catch_warnings(action="ignore"):
        seconds, found = timed(fit_and_test)
    facts = {"title": known.title, "tested": len(rows.test[1]), "seconds": seconds}
    return facts | {key: float(value) for key, value in found.items()}


def table(records: list[dict[str, Any]], names: tuple[str, ...], size: str) -> str:
    rows = []
    for name in names:
        of_set = [r for r in records if r["data"] == name]
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


def page(records: list[dict[str, Any]], facts: str) -> str:
    sections = [
        f"# Coverage of intervals and sets\n\n{facts}\n\n"
        f"Nominal coverage {100 * COVERAGE:g} %. In each random split, {KNOWN:,} rows are known. "
        "“Split” models are fitted to half of them and calibrated with the other half. “Folds” "
        "models are fitted to all and use their out-of-fold predictions. Coverage is that of up "
        f"to {TESTED:,} other rows. With {KNOWN // 2:,} calibration rows, the coverage of one "
        "split has a standard deviation of about 1 point."
    ]
    for title, (names, size) in TABLES.items():
        if any(record["data"] in names for record in records):
            sections.append(f"## {title}\n\n{table(records, names, size)}")
    return "\n\n".join(sections)


def main() -> None:
    cases = [
        {"data": name, "split": split, "model": model}
        for name, known in SETS.items()
        for split in range(SPLITS)
        for model in known.models
    ]
    study("coverage_of_intervals", cases, measure, page, about=__doc__, threads=2)


if __name__ == "__main__":
    main()
