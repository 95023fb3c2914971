"""Kernel machines within a memory budget: 200,000 rows of 8 columns in 1 GiB.

Run ``python benchmarks/memory.py``.  A fresh process makes the rows, fits a
``KernelBoostingRegressor`` with ``memory_budget=2**30`` and ``time_budget=60`` and predicts all
rows.  "Added" is the peak resident memory less what the process held before the fit, the compiled
code of a small fit included.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from _common import (
    RESULTS,
    environment,
    environment_markdown,
    markdown_table,
    peak_memory_mb,
    publish,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    timed,
)

N_ROWS, BUDGET, SECONDS = 200_000, 2**30, 60.0


def measure() -> dict[str, float]:
    """Fit and predict in this process."""
    from hilboost import KernelBoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N_ROWS)
    model = KernelBoostingRegressor(memory_budget=BUDGET, time_budget=SECONDS, random_state=0)
    KernelBoostingRegressor(time_budget=1.0, random_state=0).fit(X[:1000], y[:1000])
    reset_peak_memory()
    before = resident_mb()
    fit_s, _ = timed(lambda: model.fit(X, y))
    predict_s, predicted = timed(lambda: model.predict(X))
    return {
        "before_mib": before,
        "added_mib": peak_memory_mb() - before,
        "fit_s": fit_s,
        "predict_s": predict_s,
        "nmse": float(np.mean((predicted - y) ** 2) / y.var()),
        "stages": model.n_estimators_,
    }


def main() -> None:
    """Measure in a fresh process."""
    if sys.argv[1:] == ["--here"]:
        print(json.dumps(measure()))
        return
    record, facts = run_fresh(__file__, ["--here"]), environment(2)
    header = [
        "before the fit, MiB",
        "added, MiB",
        "fit, s",
        "predict all rows, s",
        "NMSE",
        "stages",
    ]
    page = (
        f"# Memory budget of kernel machines\n\n{environment_markdown(facts)}\n\n"
        f"{N_ROWS:,} x 8, `memory_budget` {BUDGET // 2**20} MiB, `time_budget` {SECONDS:g} s, "
        f"in a fresh process.\n\n{markdown_table(header, [list(record.values())])}"
    )
    publish(RESULTS / "memory.json", {"environment": facts, "records": [record]}, page)


if __name__ == "__main__":
    main()
