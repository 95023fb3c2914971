"""Memory of trees: what a fit adds to its inputs, per row, and 10,000,000 x 28 in 4 GiB.

Run ``python benchmarks/tree_memory.py``. Each case runs in a fresh process. "Added" is the peak
resident memory less what the process held before the fit: the data, the interpreter, and the
compiled code of a small fit. All code is on the disk: the same fit with one round in another
process has compiled it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from _common import (
    markdown_table,
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    study,
    timed,
)

COLUMNS, ROUNDS, LEAVES = 28, 10, 31
CASES = [
    {"rows": rows, "task": task, "inputs": inputs, "early_stopping": stopping}
    for rows, task, inputs, stopping in [
        (10_000_000, "squared error", "float32", False),
        (10_000_000, "squared error", "float32", True),
        (10_000_000, "log loss", "float32", False),
        (3_000_000, "squared error", "int32", False),
        (3_000_000, "squared error", "float32, Fortran order", False),
        (3_000_000, "squared error", "float32 data frame", False),
    ]
]


def table(rows: int) -> np.ndarray:
    """Normal columns, (rows, COLUMNS) float32."""
    return np.random.default_rng(0).standard_normal((rows, COLUMNS), dtype=np.float32)


def converted(X: np.ndarray, inputs: str) -> Any:
    if inputs == "int32":
        return (100 * X).astype(np.int32)
    if inputs == "float32, Fortran order":
        return np.asfortranarray(X)
    if inputs == "float32 data frame":
        import pandas as pd

        return pd.DataFrame({f"x{k}": X[:, k].copy() for k in range(COLUMNS)})
    return X


def fit_here(
    rows: int, task: str, inputs: str, early_stopping: bool, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Fit in this process."""
    from hilboost import BoostingClassifier, BoostingRegressor

    X = table(rows)
    y: Any = np.empty(rows)
    for begin in range(0, rows, 100_000):
        part = X[begin : begin + 100_000]
        y[begin : begin + 100_000] = part[:, 0] + np.sin(part[:, 1]) + part[:, 2] * part[:, 3]
    if task == "log loss":
        y = y > 0
    X = converted(X, inputs)
    make = BoostingClassifier if task == "log loss" else BoostingRegressor
    model = make(
        n_estimators=rounds, max_leaf_nodes=LEAVES, early_stopping=early_stopping, random_state=0
    )
    model.fit(X[:3000], y[:3000])
    reset_peak_memory()
    before = resident_mb()
    seconds, _ = timed(lambda: model.fit(X, y))
    return {"before_mib": before, "peak_mib": peak_memory_mb(), "fit_s": seconds}


def measure(**case: Any) -> dict[str, Any]:
    """Fit in a fresh process."""
    run_fresh(__file__, ["--here", json.dumps({**case, "rounds": 1})])
    return run_fresh(__file__, ["--here", json.dumps(case)])


def measure_few(**case: Any) -> dict[str, Any]:
    return {"rows": 10_000, **measure(**{**case, "rows": 10_000})}


def page(records: list[dict[str, Any]], facts: str) -> str:
    bins = 8 * -(-COLUMNS // 8)
    rows = []
    for record in records:
        added = record["peak_mib"] - record["before_mib"]
        rows.append(
            [
                f"{record['rows']:,}",
                record["inputs"] + (", early stopping" if record["early_stopping"] else ""),
                record["task"],
                round(record["before_mib"]),
                round(added),
                round(added * 2**20 / record["rows"] - bins, 1),
                round(record["peak_mib"]),
                round(record["fit_s"], 1),
            ]
        )
    header = ["rows", "inputs", "loss", "before, MiB", "added, MiB"]
    header += ["bytes a row beyond the bins", "peak, MiB", "fit, s"]
    return (
        f"# Memory of trees\n\n{facts}\n\n"
        f"{COLUMNS} columns ({bins} bytes of bins a row), {ROUNDS} rounds of {LEAVES} leaves, each "
        "case in a fresh process. Times are those of a machine that other programs share.\n\n"
        f"{markdown_table(header, rows)}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(fit_here(**json.loads(sys.argv[2]))))
    else:
        study("tree_memory", CASES, measure, page, about=__doc__, threads=2, quick=measure_few)
