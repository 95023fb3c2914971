"""Several learners in one model against each of them alone, nothing tuned.

The ten data sets of ``kernels.py`` and six tables with text columns, each cut down to 600
random training rows and at most 4,000 test rows.  The estimators are ``BoostingRegressor`` and
``BoostingClassifier`` at their defaults, with ``learner="tree"``, ``"kernel"``, ``"linear"`` or the
list of the three.  The error is the root mean squared error over the standard deviation of the test
targets, or the log-loss.  Missing text is written as "missing" and missing numbers are medians, for
all alike, because kernels need complete rows.

Seconds are those of the processor: the wall-clock time on one free core.

Run ``python benchmarks/mixed_learners.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from _common import data_folder, markdown_table, study
from hilboost import BoostingClassifier, BoostingRegressor
from kernel_data import SETS

LEARNERS: dict[str, Any] = {
    "tree": "tree",
    "kernel": "kernel",
    "linear": "linear",
    "mixed": ["tree", "kernel", "linear"],
}
ROWS, TEST_ROWS = 600, 4000
SEED = 0
LARGEST_RATIO = 1.01


def _frame(name: str, target: str, dropped: tuple[str, ...] = ()) -> tuple[pd.DataFrame, Any]:
    frame = pd.read_csv(data_folder() / f"{name}.csv.gz").drop(columns=list(dropped))
    return frame.drop(columns=target), frame[target].to_numpy()


def _amazon() -> tuple[pd.DataFrame, Any]:
    X, y = _frame("amazon_employee_access", "ACTION")
    return X.astype(str), y


MIXED_COLUMNS: dict[str, Callable[[], tuple[pd.DataFrame, Any]]] = {
    "adult": lambda: _frame("adult_ydf", "income", ("split",)),
    "bank": lambda: _frame("bank_marketing_small", "y"),
    "amazon": _amazon,
    "credit_g": lambda: _frame("credit_g", "class"),
    "diamonds": lambda: _frame("diamonds", "price"),
    "abalone": lambda: _frame("abalone", "Rings"),
}
TABLES = [*SETS, *MIXED_COLUMNS]


def _complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Fill missing values."""
    return frame.apply(
        lambda column: (
            column.fillna(column.median())
            if pd.api.types.is_numeric_dtype(column)
            else column.fillna("missing")
        )
    )


def load(name: str, rows: int = ROWS) -> tuple[Any, Any, Any, Any, bool]:
    """Training rows, their targets, test rows, their targets, and whether these are numbers."""
    rng = np.random.default_rng(SEED)
    if name in SETS:
        train, test = SETS[name].load(0)
        train, test = train.sample(rows, SEED), test.sample(TEST_ROWS, SEED)
        return train.X, train.y, test.X, test.y, train.regression
    X, y = MIXED_COLUMNS[name]()
    X, order = _complete(X), rng.permutation(len(y))
    test_rows = order[rows : rows + TEST_ROWS] if len(y) > 2 * rows else order[-len(y) // 3 :]
    train_rows = order[: min(rows, len(y) - len(test_rows))]
    regression = y.dtype.kind == "f" or len(np.unique(y)) > 2
    return X.iloc[train_rows], y[train_rows], X.iloc[test_rows], y[test_rows], regression


def measure(table: str, learner: str) -> dict[str, Any]:
    """Error and processor seconds of one fit."""
    warm_up()
    X, y, X_test, y_test, regression = load(table)
    kind = BoostingRegressor if regression else BoostingClassifier
    began = time.process_time()
    model = kind(learner=LEARNERS[learner], random_state=SEED).fit(X, y)
    seconds = time.process_time() - began
    if regression:
        residual = model.predict(X_test) - np.asarray(y_test, dtype=np.float64)
        error = float(np.sqrt((residual**2).mean()) / np.std(y_test))
    else:
        error = float(log_loss(y_test, model.predict_proba(X_test), labels=model.classes_))
    counts = model.learners_.counts if learner == "mixed" else None
    return {
        "error": error,
        "metric": "RMSE / sd" if regression else "log-loss",
        "seconds": seconds,
        "n_train": len(y),
        "n_test": len(y_test),
        "stages": int(model.n_estimators_),
        "counts": counts,
    }


@cache
def warm_up() -> None:
    """Compile what the fits use."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    frame = pd.DataFrame(X).assign(text=np.where(X[:, 0] > 0, "a", "b"))
    frame.columns = frame.columns.astype(str)
    for table in (X, frame):
        for kind, y in ((BoostingRegressor, X[:, 1]), (BoostingClassifier, X[:, 1] > 0)):
            for learner in ("tree", "kernel", "linear"):
                kind(learner=learner, n_estimators=2, random_state=0).fit(table, y).predict(table)


def page(records: list[dict[str, Any]], facts: str) -> str:
    """A table, and a sentence on the ratios."""
    rows, ratios = [], []
    for name in TABLES:
        runs = {r["learner"]: r for r in records if r["table"] == name}
        if set(runs) != set(LEARNERS):
            continue
        mixed = runs["mixed"]
        ratios.append(mixed["error"] / min(runs["tree"]["error"], runs["kernel"]["error"]))
        cells = [f"{runs[one]['error']:.4f} ({runs[one]['seconds']:.0f} s)" for one in LEARNERS]
        total = sum(mixed["counts"].values())
        shares = ", ".join(f"{100 * n / total:.0f} %" for n in mixed["counts"].values())
        star = "*" if mixed["metric"] == "log-loss" else ""
        rows.append([name + star, *cells, f"{ratios[-1]:.3f}", shares])
    found = np.array(ratios)
    header = ["table", *LEARNERS, "ratio", "shares: tree, kernel, linear"]
    return (
        f"# Several learners in one model\n\n{facts}\n\n"
        f"At most {ROWS:,} training rows and {TEST_ROWS:,} test rows, one split. Error: "
        "RMSE over the standard deviation of the test targets, or log-loss (*); smaller is better. "
        "In parentheses the processor seconds of the fit. Ratio: error of the mixed model over "
        "that of the better of trees and kernels. Shares: stages of the mixed model by learner.\n\n"
        f"{markdown_table(header, rows)}\n\n"
        f"Of {len(found)} tables, the mixed model has at most {LARGEST_RATIO} times the error of "
        f"the better family on {int((found <= LARGEST_RATIO).sum())}, and a smaller error than "
        f"both on {int((found < 1).sum())}. Geometric mean of the ratios: "
        f"{float(np.exp(np.log(found).mean())):.3f}; largest: {found.max(initial=0):.3f}."
    )


def main() -> None:
    cases = [{"table": table, "learner": learner} for table in TABLES for learner in LEARNERS]
    study("mixed_learners", cases, measure, page, about=__doc__, threads=2)


if __name__ == "__main__":
    main()
