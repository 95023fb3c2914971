"""Trees at equal rounds, learning rate and leaves, over the tables of ``quality.py``.

Run ``python benchmarks/equal_rounds.py`` (``--tables``, ``--splits``, ``--resume``, ``--render``).
Every library adds 100 stages of trees of 31 leaves with a learning rate of 0.1, without early
stopping.  All other parameters are the library's defaults.  Splits and scores are those of
``quality.py``: RMSE divided by the standard deviation of the target, or log-loss, as means over the
splits; smaller is better.  The seconds are those of the processor, with one thread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean

from _common import (
    RESULTS,
    cell,
    comma_list,
    environment,
    environment_markdown,
    markdown_table,
    write_json,
)
from _fits import COMPILING, EVERY, MODELS, Fit, Record, measure, measure_missing
from quality import _table_means, report_progress
from tables import KEPT_BACK, Table

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
NAME = "equal_rounds"


def model_of(library: str, regression: bool, seed: int, threads: int) -> Any:
    return MODELS[library](regression, seed, threads).set_params(**SETTINGS[library])


def measured(library: str, name: str, table: Table, seed: int) -> Record:
    own = library + "-equal"
    MODELS[own] = partial(model_of, library)
    if library in COMPILING:  # compile before the clock starts
        measure(own, name, table, seed, 1)
    return measure(own, name, table, seed, 1) | {"library": library}


def fits(tables: list[str], splits: int) -> Iterator[Fit]:
    for name in tables:
        table = EVERY[name]()
        for seed in range(splits):
            for library in SETTINGS:
                key = {"table": name, "library": library, "seed": seed}
                fit = partial(measured, library, name, table, seed)
                yield Fit(key, library + "-equal", table.task, fit)


def markdown(content: dict[str, Any]) -> str:
    names = list(SETTINGS)
    scores = _table_means(content["records"], "score")
    seconds = _table_means(content["records"], "seconds")
    lines = ["# Trees at equal rounds", "", environment_markdown(content["environment"]), ""]
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=comma_list, default=list(EVERY))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run finished")
    parser.add_argument("--render", action="store_true", help="only write the Markdown again")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    path = options.out / f"{NAME}.json"
    content: dict[str, Any] = {"environment": environment(1), "records": []}
    if options.render or (options.resume and path.is_file()):
        content = json.loads(path.read_text())
    if not options.render:
        keep = partial(write_json, path)
        measure_missing(fits(options.tables, options.splits), content, 1, keep, report_progress)
    path.with_suffix(".md").write_text(markdown(content))


if __name__ == "__main__":
    main()
