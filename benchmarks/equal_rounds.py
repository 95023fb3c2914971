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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import gmean
from threadpoolctl import threadpool_limits

import quality
from _common import (
    RESULTS,
    cell,
    comma_list,
    environment,
    environment_markdown,
    markdown_table,
    write_json,
)
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
NAME = "equal_rounds"


def model_of(library: str, regression: bool, seed: int, threads: int) -> Any:
    return quality.MODELS[library](regression, seed, threads).set_params(**SETTINGS[library])


def run(tables: list[str], splits: int, content: dict[str, Any], path: Path) -> None:
    done = {(r["table"], r["library"], r["seed"]) for r in content["records"]}
    for library in SETTINGS:
        quality.MODELS[library + "-equal"] = partial(model_of, library)
    for name in tables:
        table = quality.EVERY[name]()
        for seed in range(splits):
            for library in SETTINGS:
                if (name, library, seed) in done:
                    continue
                if library in quality.COMPILING:  # compile before the clock starts
                    quality.measure(library + "-equal", name, table, seed, 1)
                record = quality.measure(library + "-equal", name, table, seed, 1)
                record["library"] = library
                content["records"].append(record)
                quality.report_progress(record)
                write_json(path, content)


def markdown(content: dict[str, Any]) -> str:
    names = list(SETTINGS)
    scores = quality._table_means(content["records"], "score")
    seconds = quality._table_means(content["records"], "seconds")
    lines = ["# Trees at equal rounds", "", environment_markdown(content["environment"]), ""]
    lines += [__doc__.split("\n\n", 1)[1].split("\n", 1)[1].strip(), ""]
    for title, kept in (("Tables used for choices", False), ("Tables kept back", True)):
        some = [t for t in quality.EVERY if t in scores and (t in KEPT_BACK) == kept]
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
    parser.add_argument("--tables", type=comma_list, default=list(quality.EVERY))
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
        with threadpool_limits(1):
            run(options.tables, options.splits, content, path)
    path.with_suffix(".md").write_text(markdown(content))


if __name__ == "__main__":
    main()
