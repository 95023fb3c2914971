"""Defaults of OutputKernelBoostingRegressor on structured outputs, against fixed learners.

Run::

    python benchmarks/output_defaults.py [--tables digits strings ...]

Each pair of a table and a method is measured once and added to results/output_defaults.json; a
second run continues.  Simulated tables need no data; the others read $HILBOOST_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import kendalltau, norm
from sklearn.datasets import load_digits

from _common import RESULTS, data_folder
from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.learners.tree import VectorTreeLearner

Table = tuple[str, Any, Any, Any, Any, Callable[[Any, Any], float]]
"""Output space, training inputs and labels, test inputs and labels, error."""

FILE = RESULTS / "output_defaults.json"
PAGE = RESULTS / "output_defaults.md"
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "default": (OutputKernelBoostingRegressor, {}),
    "boosted extra-trees": (OutputKernelBoostingRegressor, {"learner": "extra_trees"}),
    "100 stages, rate .02": (
        OutputKernelBoostingRegressor,
        {"learner": "extra_trees", "n_estimators": 100, "learning_rate": 0.02},
    ),
    "100 stages": (
        OutputKernelBoostingRegressor,
        {"learner": "extra_trees", "n_estimators": 100},
    ),
    "kernel": (OutputKernelBoostingRegressor, {"learner": "kernel"}),
    "extra-trees forest": (OutputKernelForestRegressor, {}),
}


def rmse(true: Any, found: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(true) - np.asarray(found)) ** 2)))


def mistakes(true: Any, found: Any) -> float:
    return float(np.mean([a != b for a, b in zip(true, found, strict=True)]))


def discord(true: Any, found: Any) -> float:
    tau = [kendalltau(a, b).statistic for a, b in zip(true, found, strict=True)]
    return float(1 - np.mean(tau))


def lost_f1(true: Any, found: Any) -> float:
    true, found = np.asarray(true) > 0, np.asarray(found) > 0
    both, sizes = (true & found).sum(axis=1), true.sum(axis=1) + found.sum(axis=1)
    return float(1 - np.mean(np.where(sizes > 0, 2 * both / np.maximum(sizes, 1), 1.0)))


def distributions() -> Table:
    """Normal samples whose mean and spread depend smoothly on three inputs; W2 to the truth."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(800, 3))
    mean, spread = np.sin(6 * X[:, 0]) + X[:, 1], 0.2 + X[:, 1] * X[:, 2]
    samples = [m + s * rng.normal(size=30) for m, s in zip(mean[:400], spread[:400], strict=True)]
    levels = (np.arange(64) + 0.5) / 64
    truth = mean[400:, None] + spread[400:, None] * norm.ppf(levels)
    return "distribution", X[:400], samples, X[400:], truth, rmse


def strings() -> Table:
    """Words for regions of the plane with curved borders; share of wrong words."""
    rng = np.random.default_rng(2)
    words = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
    X = rng.normal(size=(900, 2))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.6 * np.hypot(X[:, 0], X[:, 1])
    Y = [words[int(k) % 8] for k in np.floor(angle / (np.pi / 4))]
    return "string", X[:400], Y[:400], X[400:], Y[400:], mistakes


def digits() -> Table:
    """Lower halves of digits from upper halves; RMSE of the pixels."""
    images = load_digits().images / 16
    X, Y = images[:, :4].reshape(-1, 32), images[:, 4:].reshape(-1, 32)
    return "gaussian", X[:400], Y[:400], X[400:], Y[400:], rmse


def usps() -> Table:
    """Lower halves of USPS digits from upper halves; RMSE of the pixels."""
    with np.load(data_folder() / "usps.npz") as file:
        images = np.asarray(file["X_test"], dtype=float).reshape(-1, 16, 16)
    images = (images - images.min()) / np.ptp(images)
    X, Y = images[:, :8].reshape(-1, 128), images[:, 8:].reshape(-1, 128)
    return "gaussian", X[:600], Y[:600], X[600:1600], Y[600:1600], rmse


def _halves(X: np.ndarray, Y: np.ndarray, output: str, error: Any, most: int = 1000) -> Table:
    order = np.random.default_rng(0).permutation(len(X))
    n = min(len(X) // 2, most)
    a, b = order[:n], order[n : 2 * n]
    return output, X[a], Y[a], X[b], Y[b], error


def ranking(name: str) -> Table:
    """A set of label rankings; 1 - Kendall's τ."""
    with np.load(data_folder() / "label_ranking.npz") as file:
        return _halves(file[f"{name}_X"], file[f"{name}_ranks"], "ranking", discord)


def targets(name: str) -> Table:
    """A set of several numbers; RMSE of the standardized numbers."""
    with np.load(data_folder() / "mulan_mtr.npz") as file:
        X, Y = file[f"{name}_X"], np.asarray(file[f"{name}_Y"], dtype=float)
    return _halves(X, (Y - Y.mean(axis=0)) / Y.std(axis=0), "linear", rmse)


def label_sets(name: str) -> Table:
    """A set of label sets; 1 - mean F1 of the rows."""
    with np.load(data_folder() / "mulan_multilabel.npz") as file:
        parts = [np.asarray(file[f"{name}_{part}"]) for part in ("X_train", "Y_train")]
        parts += [np.asarray(file[f"{name}_{part}"]) for part in ("X_test", "Y_test")]
    return "label_set", parts[0], parts[1], parts[2], parts[3], lost_f1


TABLES: dict[str, Callable[[], Table]] = {
    "distributions": distributions,
    "strings": strings,
    "digits": digits,
    "usps": usps,
    **{f"ranking: {name}": lambda name=name: ranking(name) for name in ("vehicle", "stock")},
    **{f"targets: {name}": lambda name=name: targets(name) for name in ("enb", "oes97")},
    **{f"labels: {name}": lambda name=name: label_sets(name) for name in ("emotions", "medical")},
}


def measure(table: str, method: str) -> dict[str, Any]:
    output, X, Y, X_new, Y_new, error = TABLES[table]()
    make, parameters = METHODS[method]
    began = time.process_time()
    model = make(output, random_state=0, n_jobs=1, **parameters).fit(X, Y)
    seconds = time.process_time() - began
    chosen = "trees" if isinstance(model.learner_, VectorTreeLearner) else "kernel"
    return {
        "table": table,
        "method": method,
        "error": error(Y_new, model.predict(X_new)),
        "seconds": seconds,
        "learner": chosen,
    }


def page(records: list[dict[str, Any]]) -> str:
    """Errors by table and method, with the learner that the default has chosen."""
    found = {(r["table"], r["method"]): r for r in records}
    lines = [
        "| table | " + " | ".join(METHODS) + " | default's learner |",
        "| --- |" + " ---: |" * len(METHODS) + " --- |",
    ]
    for table in TABLES:
        cells = [found.get((table, method)) for method in METHODS]
        shown = ["-" if cell is None else f"{cell['error']:.4f}" for cell in cells]
        chosen = "-" if cells[0] is None else cells[0]["learner"]
        lines.append(f"| {table} | " + " | ".join(shown) + f" | {chosen} |")
    seconds = [
        f"{sum(r['seconds'] for r in records if r['method'] == method):.0f}" for method in METHODS
    ]
    lines.append("| CPU seconds of all fits | " + " | ".join(seconds) + " | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    options = parser.parse_args()
    records = json.loads(FILE.read_text()) if FILE.exists() else []
    known = {(r["table"], r["method"]) for r in records}
    began = time.monotonic()
    for table in options.tables:
        for method in METHODS:
            if (table, method) in known or time.monotonic() - began > options.budget_s:
                continue
            records.append(measure(table, method))
            print(records[-1], flush=True)
            FILE.write_text(json.dumps(records, indent=1) + "\n")
    PAGE.write_text(page(records))


if __name__ == "__main__":
    main()
