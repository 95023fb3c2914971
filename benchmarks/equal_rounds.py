"""Trees at equal rounds, learning rate and leaves, over the tables of ``quality.py``.

Run ``python benchmarks/equal_rounds.py``.
Every library adds 100 stages of trees of 31 leaves with a learning rate of 0.1, without early
stopping.  All other parameters are the library's defaults.  Splits and scores are those of
``quality.py``: RMSE divided by the standard deviation of the target, or log-loss, as means over the
splits; smaller is better.  The seconds are those of the processor, with one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import gmean

from _common import Record, cell, markdown_table, study
from _fits import COMPILING, EVERY, MODELS, measure_fit, table_of
from quality import SPLITS, table_means
from tables import KEPT_BACK

SETTINGS: dict[str, dict[str, Any]] = {
    "hilboost": {"n_estimators": 100, "learning_rate": 0.1, "early_stopping": False},
    "lightgbm": {},  # its defaults
    "xgboost": {
        "n_estimators": 100,
        "learning_rate": 0.1,
        "grow_policy": "lossguide",
        "max_leaves": 31,
        "max_depth": 0,
    },
    "sklearn": {"max_iter": 100, "learning_rate": 0.1, "early_stopping": False},
}


def measure(table: str, seed: int, library: str) -> Record:
    def model(regression: bool, seed: int) -> Any:
        return MODELS[library](regression, seed).set_params(**SETTINGS[library])

    if library in COMPILING:  # compile before the clock starts
        measure_fit(library, table_of(table), seed, model)
    return measure_fit(library, table_of(table), seed, model)


def page(records: list[Record], facts: str) -> str:
    names = list(SETTINGS)
    scores, seconds = table_means(records, "score"), table_means(records, "seconds")
    scores = {table: found for table, found in scores.items() if len(found) == len(names)}
    lines = ["# Trees at equal rounds", "", facts, ""]
    lines += [__doc__.split("\n\n", 1)[1].split("\n", 1)[1].strip(), ""]
    for title, kept in (("Tables used for choices", False), ("Tables kept back", True)):
        some = [t for t in EVERY if t in scores and (t in KEPT_BACK) == kept]
        if not some:
            continue
        grid = np.array([[scores[t][name] for name in names] for t in some])
        best = grid[:, 1:].min(axis=1)
        rows = [
            [
                t,
                *(cell(v) for v in grid[k]),
                cell(grid[k, 0] / grid[k, 1]),
                cell(grid[k, 0] / best[k]),
            ]
            for k, t in enumerate(some)
        ]
        ours = grid[:, 0]
        rows.append(
            [
                "geometric mean",
                *(cell(v) for v in gmean(grid, axis=0)),
                cell(gmean(ours / grid[:, 1])),
                cell(gmean(ours / best)),
            ]
        )
        rows.append(
            ["seconds", *(cell(sum(seconds[t][name] for t in some)) for name in names), "", ""]
        )
        head = ["table", *names, "hilboost / lightgbm", "hilboost / best peer"]
        lines += [f"## {title}", "", markdown_table(head, rows), ""]
    return "\n".join(lines)


def main() -> None:
    cases = [
        {"table": table, "seed": seed, "library": library}
        for table in EVERY
        for seed in range(SPLITS)
        for library in SETTINGS
    ]
    study("equal_rounds", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()
