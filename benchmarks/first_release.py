"""The defaults of hilboost 0.1.0 and those of today, on the tables of ``quality.py``.

The splits, scores and seconds are those of ``quality.py``, with one thread.  Today's records are
those of ``results/quality.json``.

Run, with the source of release 0.1.0 (commit 61eb3f0) in place of the present one::

    git worktree add ../hilboost-0.1.0 61eb3f0
    PYTHONPATH=../hilboost-0.1.0/src python benchmarks/first_release.py
    PYTHONPATH=../hilboost-0.1.0/src python benchmarks/first_release.py --tables enb --splits 1
    python benchmarks/first_release.py --render           # only the report
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import gmean

from _common import (
    RESULTS,
    comma_list,
    environment,
    environment_markdown,
    markdown_table,
    write_json,
)
from _fits import EVERY, Fit, Record, hilboost_model, measure_missing, score, split

THREADS = 1


def measure(name: str, seed: int) -> Record:
    table = EVERY[name]()
    X, X_test, y, y_test = split(table, seed)
    model = hilboost_model(table.task == "regression", seed, THREADS)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    return {
        "table": name,
        "seed": seed,
        "seconds": seconds,
        "score": score(model, table, X_test, y_test),
    }


def fits(tables: list[str], splits: int) -> Iterator[Fit]:
    for name in tables:
        task = EVERY[name]().task
        for seed in range(splits):
            key = {"table": name, "seed": seed}
            yield Fit(key, "hilboost", task, partial(measure, name, seed))


def today() -> dict[tuple[str, int], Record]:
    found = json.loads((RESULTS / "quality.json").read_text())["records"]
    return {(r["table"], r["seed"]): r for r in found if r["library"] == "hilboost"}


def render(results: Record) -> str:
    now, before = today(), {(r["table"], r["seed"]): r for r in results["records"]}
    rows, ratios = [], []
    for name in (name for name in EVERY if any(key[0] == name for key in before)):
        keys = [key for key in before if key[0] == name and key in now]
        old, new = (np.mean([of[key]["score"] for key in keys]) for of in (before, now))
        seconds = [np.mean([of[key]["seconds"] for key in keys]) for of in (before, now)]
        ratios.append(new / old)
        rows.append([name, len(keys), f"{old:.4f}", f"{new:.4f}", f"{new / old:.3f}"])
        rows[-1] += [f"{value:.1f}" for value in seconds]
    header = ["table", "splits", "score of 0.1.0", "score", "ratio", "seconds of 0.1.0", "seconds"]
    return (
        "# hilboost 0.1.0 and today\n\n"
        f"{environment_markdown(results['environment'])}\n\n"
        "Mean over the splits of `quality.py`: RMSE divided by the standard deviation of the "
        "target, or log-loss; smaller is better. Both at their defaults, with one thread. The "
        f"ratio is at most {max(ratios):.3f}; its geometric mean is {gmean(ratios):.3f}.\n\n"
        f"{markdown_table(header, rows)}\n"
    )


def save(results: Record) -> None:
    write_json(RESULTS / "first_release.json", results)
    (RESULTS / "first_release.md").write_text(render(results))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = list(dict.fromkeys(table for table, _ in today()))
    parser.add_argument("--tables", type=comma_list, default=known)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--render", action="store_true", help="only the report")
    options = parser.parse_args()
    path = RESULTS / "first_release.json"
    results: Record = {"environment": environment(THREADS), "records": []}
    if path.exists():
        results = json.loads(path.read_text())
    if not options.render:
        measure_missing(fits(options.tables, options.splits), results, THREADS, save)
    save(results)


if __name__ == "__main__":
    main()
