"""Tree boosting with more and more threads, alone and beside other programs.

Each case is a fit of 28 columns in a fresh process: hilboost and LightGBM in turns, medians of
three fits after one of few rounds.  Beside it run programs in an endless loop, or a second process
that repeats the same fit.  Work that hilboost does not share is timed on the calling thread: it
takes as long with any number of threads.  ``HILBOOST_CORES`` allows more threads than there
are cores.

Run ``python benchmarks/threads.py``, for some cases with ``--only 100000,hogs``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from threading import current_thread, main_thread
from typing import Any
from unittest.mock import patch

import numpy as np

from _common import markdown_table, run_fresh, study
from hilboost.backends.threads import ThreadTeam

ROUNDS = {10_000: 100, 100_000: 100, 1_000_000: 40}
CLASSES = 1, 2, 26
LEAVES = 31, 255
THREADS = 1, 2, 4, 8, 16
BESIDE = "nothing", "1 hog", "3 hogs", "the same fit"
CASES = [
    {"rows": rows, "classes": classes, "leaves": leaves, "threads": threads, "beside": beside}
    for rows, classes, leaves, threads, beside in product(ROUNDS, CLASSES, LEAVES, THREADS, BESIDE)
    if (classes == 1 or (leaves == 31 and rows == {2: 1_000_000, 26: 10_000}[classes]))
    and (beside == "nothing" or (classes == 1 and leaves == 31 and threads in (2, 16)))
]


def fits(
    rows: int, classes: int, leaves: int, threads: int, rounds: int
) -> dict[str, Callable[[], Any]]:
    """A fit by each library that is installed."""
    import hilboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 28))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 + rng.normal(size=rows)
    kind = "Regressor" if classes == 1 else "Classifier"
    if classes > 1:
        y = np.argsort(np.argsort(y)) * classes // rows
    equal = {"n_estimators": rounds, "learning_rate": 0.1, "n_jobs": threads}
    ours = {"max_leaf_nodes": leaves, "early_stopping": False, "max_features": 1.0}
    make = getattr(hilboost, f"Boosting{kind}")
    found = {"hilboost": lambda: make(**equal, **ours, learner="tree").fit(X, y)}
    with suppress(ImportError):
        import lightgbm

        theirs = getattr(lightgbm, f"LGBM{kind}")(**equal, num_leaves=leaves, verbose=-1)
        found["LightGBM"] = lambda: theirs.fit(X, y)
    return found


@contextmanager
def seconds_of_shared_work() -> Iterator[list[float]]:
    """Note how long the main thread takes part in work that it may share with others."""
    noted: list[float] = []
    call, is_inside = ThreadTeam._call, False

    def timed(team: ThreadTeam, work: Any, n_threads: int, *given: Any, **named: Any) -> None:
        nonlocal is_inside
        if is_inside or n_threads == 1 or current_thread() is not main_thread():
            return call(team, work, n_threads, *given, **named)
        is_inside, began = True, time.perf_counter()
        try:
            return call(team, work, n_threads, *given, **named)
        finally:
            is_inside = False
            noted.append(time.perf_counter() - began)

    with patch.object(ThreadTeam, "_call", timed):
        yield noted


def medians(rows: int, *how: int) -> dict[str, float]:
    """Seconds and processor seconds of each library, in this process."""
    for fit in fits(min(rows, 100_000), *how, 3).values():
        fit()
    times: dict[str, list[float]] = {}
    for _ in range(3):
        for name, fit in fits(rows, *how, ROUNDS[rows]).items():
            wall, work = time.perf_counter(), time.process_time()
            with seconds_of_shared_work() as shared:
                fit()
            seconds = time.perf_counter() - wall
            times.setdefault(f"{name}_s", []).append(seconds)
            times.setdefault(f"{name}_cpu_s", []).append(time.process_time() - work)
            times.setdefault(f"{name}_alone_s", []).append(seconds - sum(shared))
    return {name: statistics.median(values) for name, values in times.items()}


def measure(rows: int, classes: int, leaves: int, threads: int, beside: str) -> dict[str, float]:
    """Measure in a fresh process, beside others."""
    os.environ["HILBOOST_CORES"] = str(threads)
    size = ["--here", *map(str, (rows, classes, leaves, threads))]
    command = [sys.executable, "-c", "while True: pass"]
    if beside == "the same fit":
        command = [sys.executable, __file__, "--for-ever", *size[1:]]
    n_others = {"nothing": 0, "3 hogs": 3}.get(beside, 1)
    with ExitStack() as stack:
        for _ in range(n_others):
            other = stack.enter_context(subprocess.Popen(command))
            stack.callback(other.kill)
        return run_fresh(__file__, size)


def page(records: list[dict[str, Any]], facts: str) -> str:
    """A row for each case; processor seconds are relative to the seconds."""
    rows = []
    for record in records:
        case = [record[key] for key in ("rows", "classes", "leaves", "threads", "beside")]
        times = []
        for name in ("hilboost", "LightGBM"):
            seconds, work = (record.get(f"{name}{end}") for end in ("_s", "_cpu_s"))
            times += [f"{seconds:.2f}", f"{work / seconds:.1f}"] if seconds else ["", ""]
        alone = f"{record['hilboost_alone_s']:.2f}" if record["threads"] > 1 else ""
        rows.append([*case, *times[:2], alone, *times[2:]])
    header = ["rows", "classes", "leaves", "threads", "beside", "s", "cores", "alone, s"]
    header += ["LightGBM, s", "cores"]
    return (
        f"# Threads\n\n{facts}\n\nSeconds of a fit of 28 columns, {ROUNDS[1_000_000]} rounds with "
        f"1,000,000 rows and 100 with fewer, processor seconds a second, and seconds of work that "
        f"hilboost does not share.\n\n"
        f"{markdown_table(header, rows)}"
    )


def main() -> None:
    """Measure the cases that are missing."""
    if len(sys.argv) == 6 and sys.argv[1] in ("--here", "--for-ever"):
        size = [int(number) for number in sys.argv[2:]]
        if sys.argv[1] == "--here":
            print(json.dumps(medians(*size)))
        while sys.argv[1] == "--for-ever":
            for fit in fits(*size, ROUNDS[size[0]]).values():
                fit()
        return
    study("threads", CASES, measure, page, about=__doc__, threads=max(THREADS))


if __name__ == "__main__":
    main()
