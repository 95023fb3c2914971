"""Several learners in one model against each of them alone, nothing tuned.

The ten data sets of ``kernels.py`` and six tables with text columns, each cut down to ``--rows``
random training rows and at most 4,000 test rows.  The estimators are ``BoostingRegressor`` and
``BoostingClassifier`` at their defaults, with ``learner="tree"``, ``"kernel"``, ``"linear"`` or the
list of the three.  The error is the root mean squared error over the standard deviation of the test
targets, or the log-loss.  Missing text is written as "missing" and missing numbers are medians, for
all alike, because kernels need complete rows.

Seconds are those of the processor: the wall-clock time on one free core.

Run::

    python benchmarks/mixed_learners.py             # everything
    python benchmarks/mixed_learners.py --resume    # go on after a break
    python benchmarks/mixed_learners.py --render    # Markdown anew
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from _common import RESULTS, data_folder, environment, environment_markdown, write_json
from hilboost import BoostingClassifier, BoostingRegressor
from kernel_data import SETS

LEARNERS: dict[str, Any] = {
    "tree": "tree",
    "kernel": "kernel",
    "linear": "linear",
    "mixed": ["tree", "kernel", "linear"],
}
TEST_ROWS = 4000
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


def load(name: str, rows: int) -> tuple[Any, Any, Any, Any, bool]:
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


def measure(name: str, learner: Any, rows: int) -> dict[str, Any]:
    """Error and processor seconds of one fit."""
    X, y, X_test, y_test, regression = load(name, rows)
    kind = BoostingRegressor if regression else BoostingClassifier
    began = time.process_time()
    model = kind(learner=learner, random_state=SEED).fit(X, y)
    seconds = time.process_time() - began
    if regression:
        residual = model.predict(X_test) - np.asarray(y_test, dtype=np.float64)
        error = float(np.sqrt((residual**2).mean()) / np.std(y_test))
    else:
        error = float(log_loss(y_test, model.predict_proba(X_test), labels=model.classes_))
    counts = model.learners_.counts if isinstance(learner, list) else None
    return {
        "error": error,
        "metric": "RMSE / sd" if regression else "log-loss",
        "seconds": seconds,
        "n_train": len(y),
        "n_test": len(y_test),
        "stages": int(model.n_estimators_),
        "counts": counts,
    }


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


def verdict(runs: dict[str, dict[str, Any]]) -> tuple[float, bool]:
    """Error of the mixed model over that of the better family, and whether it beats both."""
    better = min(runs["tree"]["error"], runs["kernel"]["error"])
    ratio = runs["mixed"]["error"] / better
    return ratio, ratio < 1


def markdown(content: dict[str, Any]) -> str:
    """The table, and what it says of the aim."""
    lines = [
        "# Several learners in one model",
        "",
        environment_markdown(content["environment"]),
        "",
        f"At most {content['rows']:,} training rows and {TEST_ROWS:,} test rows, one split. Error: "
        "RMSE over the standard deviation of the test targets, or log-loss (*); smaller is better. "
        "In parentheses the processor seconds of the fit. Ratio: error of the mixed model over "
        "that of the better of trees and kernels. Shares: stages of the mixed model by learner.",
        "",
        "| table | tree | kernel | linear | mixed | ratio | shares: tree, kernel, linear |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    ratios = []
    for name, runs in content["tables"].items():
        if set(runs) != set(LEARNERS):
            continue
        ratio, _ = verdict(runs)
        ratios.append(ratio)
        star = "*" if runs["mixed"]["metric"] == "log-loss" else ""
        cells = [f"{runs[one]['error']:.4f} ({runs[one]['seconds']:.0f} s)" for one in LEARNERS]
        total = sum(runs["mixed"]["counts"].values())
        shares = ", ".join(f"{100 * n / total:.0f} %" for n in runs["mixed"]["counts"].values())
        lines.append(f"| {name}{star} | {' | '.join(cells)} | {ratio:.3f} | {shares} |")
    found = np.array(ratios)
    lines += [
        "",
        f"Of {len(found)} tables, the mixed model has at most {LARGEST_RATIO} times the error of "
        f"the better family on {int((found <= LARGEST_RATIO).sum())}, and a smaller error than "
        f"both on {int((found < 1).sum())}. Geometric mean of the ratios: "
        f"{float(np.exp(np.log(found).mean())):.3f}; largest: {found.max():.3f}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--out", type=Path, default=RESULTS / "mixed_learners.json")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    content: dict[str, Any] = {"environment": environment(2), "rows": options.rows, "tables": {}}
    if options.resume or options.render:
        content = json.loads(options.out.read_text())
    if not options.render:
        warm_up()
        for name in options.tables.split(","):
            runs = content["tables"].setdefault(name, {})
            for label, learner in LEARNERS.items():
                if label in runs:
                    continue
                runs[label] = measure(name, learner, options.rows)
                print(name, label, json.dumps(runs[label]), flush=True)
                write_json(options.out, content)
    options.out.with_suffix(".md").write_text(markdown(content))


if __name__ == "__main__":
    main()
