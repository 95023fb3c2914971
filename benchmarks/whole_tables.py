"""The default on whole tables of smooth functions and images, and on few rows of many classes.

``quality.py`` cuts these tables down or leaves them out.  Nothing but verbosity, seed and thread
count is set.  The score is the log-loss, or the mean squared error divided by the variance.  The
seconds are those of the processor, with one thread.

* ``letter``: the published split of Letter, 16,000 and 4,000 rows.
* ``letter_1000``: its first 1,000 rows, and the same 4,000 rows as a test.
* ``usps``: 3,000 rows as in ``quality.py``, first split.
* ``usps_published``: the published split, 7,291 and 2,007 rows.
* ``kin40k``: 36,000 and 4,000 rows.

Run::

    python benchmarks/whole_tables.py
    python benchmarks/whole_tables.py --tables letter_1000 --libraries hilboost,catboost --resume
    python benchmarks/whole_tables.py --render
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from _common import (
    RESULTS,
    cell,
    comma_list,
    environment,
    environment_markdown,
    markdown_table,
    write_json,
)
from _fits import MODELS, Fit, Record, measure_missing, score, split
from tables import TABLES, Table, _arrays

THREADS, SEED = 1, 0
PEERS = ("lightgbm", "xgboost", "catboost", "sklearn", "chimeraboost")
SLOW = {"letter": ("hilboost",), "usps_published": ("hilboost",), "kin40k": ("hilboost",)}

Parts = tuple[Table, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _classes(X: np.ndarray, labels: np.ndarray, learn: int, test: int) -> Parts:
    """The first rows for training, the last ones for the test."""
    y = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    table = Table(np.asarray(X, np.float64), y, "multiclass")
    return table, table.X[:learn], table.X[-test:], y[:learn], y[-test:]


def letter(rows: int = 16_000) -> Parts:
    arrays = _arrays("letter_recognition")
    return _classes(arrays["X"], arrays["y"], rows, 4_000)


def letter_1000() -> Parts:
    return letter(1_000)


def usps() -> Parts:
    table = TABLES["usps"]()
    return (table, *split(table, SEED))


def usps_published() -> Parts:
    arrays = _arrays("usps")
    X = np.concatenate([arrays["X_train"], arrays["X_test"]])
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return _classes(X, y, len(arrays["X_train"]), len(arrays["X_test"]))


def kin40k() -> Parts:
    arrays = _arrays("kin40k")
    X, y = (np.asarray(arrays[name], np.float64) for name in ("X", "y"))
    order = np.random.default_rng(SEED).permutation(len(X))
    learn, test = order[:36_000], order[36_000:]
    return Table(X, y, "regression"), X[learn], X[test], y[learn], y[test]


SETS: dict[str, Callable[[], Parts]] = {
    function.__name__: function for function in (letter, letter_1000, usps, usps_published, kin40k)
}


def measure(name: str, library: str) -> Record:
    table, X, X_test, y, y_test = SETS[name]()
    model = MODELS[library](table.task == "regression", SEED, THREADS)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    found = score(model, table, X_test, y_test)
    if table.task == "regression":
        found = found**2 * np.var(table.y) / np.var(y_test)
    return {
        "table": name,
        "library": library,
        "rows": len(X),
        "columns": X.shape[1],
        "score": float(found),
        "seconds": seconds,
    }


def fits(tables: list[str], libraries: list[str]) -> Iterator[Fit]:
    for name in tables:
        task = SETS[name]()[0].task
        for library in (one for one in libraries if one in SLOW.get(name, MODELS)):
            key = {"table": name, "library": library}
            yield Fit(key, library, task, partial(measure, name, library))


def render(results: Record) -> str:
    by_key = {(r["table"], r["library"]): r for r in results["records"]}
    libraries = [one for one in ("hilboost", *PEERS) if any(one == key[1] for key in by_key)]
    rows = []
    for name in (name for name in SETS if (name, "hilboost") in by_key):
        own = by_key[name, "hilboost"]
        found = (by_key.get((name, library)) for library in libraries)
        rows.append([name, f"{own['rows']:,} x {own['columns']}"])
        rows[-1] += [cell(None) if r is None else _entry(r) for r in found]
    return (
        "# Whole tables at the defaults\n\n"
        f"{environment_markdown(results['environment'])}\n\n"
        "Log-loss, or the mean squared error divided by the variance (kin40k), and seconds of the "
        "processor, with one thread. Only verbosity, seed and thread count are set. Libraries "
        "that compile make two untimed fits first.\n\n"
        f"{markdown_table(['table', 'training rows', *libraries], rows)}\n"
    )


def _entry(record: Record) -> str:
    return f"{record['score']:.4g} ({record['seconds']:.1f} s)"


def save(results: Record) -> None:
    write_json(RESULTS / "whole_tables.json", results)
    (RESULTS / "whole_tables.md").write_text(render(results))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=comma_list, default=list(SETS))
    parser.add_argument("--libraries", type=comma_list, default=["hilboost", *PEERS])
    parser.add_argument("--resume", action="store_true", help="keep what the last run measured")
    parser.add_argument("--render", action="store_true", help="only the report")
    options = parser.parse_args()
    results: Record = {"environment": environment(THREADS), "records": []}
    if options.resume or options.render:
        results = json.loads((RESULTS / "whole_tables.json").read_text())
    if not options.render:
        measure_missing(fits(options.tables, options.libraries), results, THREADS, save)
    save(results)


if __name__ == "__main__":
    main()
