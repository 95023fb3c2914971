"""Where the time of a fit goes: seconds of every step of a stage, and what a row of it costs.

One thread; growth runs step by step in :mod:`hilboost.engine.driver`, which sums every root.
Processor time of the thread, medians over the stages.

Run ``python benchmarks/engine_profile.py``, or with ``--rows 100000,1000000 --leaves 31,255``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from _common import markdown_table
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.boosting import history, loop
from hilboost.engine import stage as fitting
from hilboost.engine.driver import grow_tree
from hilboost.engine.ops.cpu.growth import Growth
from hilboost.engine.ops.cpu.nodes import N_ROWS
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.plan import Plan
from hilboost.learners.tree import TreeLearner

STEPS = {
    "pack gradients": (fitting, "pack"),
    "leaf of every row": (fitting, "leaf_of_rows"),
    "leaf values": (CpuOperations, "leaves"),
    "tree": (fitting, "grown_tree"),
    "add to raw": (loop, "add_stage"),
    "loss and gradients": (history, "mean_loss_and_gradients"),
}
GROWTH = ("divide rows", "sum histograms", "find splits")
N_FIRST = 3
UNITS = {"divide rows": "row and split", "sum histograms": "row and column", "find splits": "split"}


class Timed:
    """Operations whose seconds and work are noted."""

    def __init__(self, operations: CpuOperations) -> None:
        self._operations = operations
        self.seconds, self.work = dict.fromkeys(GROWTH, 0.0), dict.fromkeys(GROWTH, 0)

    def partition(self, growth: Growth, nodes: np.ndarray) -> np.ndarray:
        """Divide the rows of each node by its split."""
        work = int(growth.nodes.fields[nodes, N_ROWS].sum())
        return self._noted("divide rows", work, self._operations.partition, growth, nodes)

    def histogram(self, growth: Growth, nodes: np.ndarray) -> None:
        """Sum the rows of each node into its slot."""
        work = int(growth.nodes.fields[nodes, N_ROWS].sum()) * len(growth.table.n_values)
        self._noted("sum histograms", work, self._operations.histogram, growth, nodes)

    def search(self, growth: Growth, nodes: np.ndarray, columns: np.ndarray) -> None:
        """Note the best split of each node."""
        self._noted("find splits", 1, self._operations.search, growth, nodes, columns)

    def _noted(self, name: str, work: int, step: Callable[..., Any], *arguments: Any) -> Any:
        began = time.thread_time()
        result = step(*arguments)
        self.seconds[name] += time.thread_time() - began
        self.work[name] += work
        return result


class Clock:
    """Seconds and units of work of each step, a list entry for each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.work: dict[str, list[int]] = defaultdict(list)

    def timed(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose time is noted."""

        def call(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            result = function(*arguments, **named)
            self.seconds[step].append(time.thread_time() - began)
            return result

        return call

    def grow(self, operations: Any, growth: Any, symmetric: bool) -> None:
        """Grow a tree by its operations."""
        timed = Timed(operations)
        grow_tree(growth, timed)
        for name in GROWTH:
            self.seconds[name].append(timed.seconds[name])
            self.work[name].append(timed.work[name])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note the times of all fits meanwhile."""
        patches = [
            patch.object(Plan, "separates", lambda *_: False),
            patch.object(TreeLearner, "fit_stages", lambda *_: None),
            patch.object(CpuOperations, "grow", lambda *given: self.grow(*given)),
        ]
        for step, (module, name) in STEPS.items():
            patches.append(patch.object(module, name, self.timed(step, getattr(module, name))))
        with ExitStack() as stack:
            for one in patches:
                stack.enter_context(one)
            yield


def data(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic regression with interactions and noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] ** 2
    return X, signal + 0.5 * rng.normal(size=rows)


def profile(rows: int, columns: int, leaves: int, binary: bool, rounds: int) -> dict[str, Any]:
    """Median seconds of each step of a stage, once the rows are sorted."""
    X, y = data(rows, columns)
    kind = BoostingClassifier if binary else BoostingRegressor
    model = kind(
        n_estimators=rounds,
        max_leaf_nodes=leaves,
        learning_rate=0.1,
        early_stopping=False,
        n_jobs=1,
        random_state=0,
        learner="tree",
    )
    clock = Clock()
    with clock.running():
        model.fit(X, y > 1 if binary else y)
    steps = {}
    for step in (*STEPS, *GROWTH):
        if len(clock.seconds[step]) <= N_FIRST:  # leaf values may be known from the sums of a tree
            continue
        seconds = statistics.median(clock.seconds[step][N_FIRST:])
        units = statistics.median(clock.work[step][N_FIRST:]) if step in clock.work else rows
        steps[step] = {"seconds": seconds, "units": units, "ns": 1e9 * seconds / units}
    return {
        "rows": rows,
        "columns": columns,
        "leaves": leaves,
        "binary": binary,
        "rounds": rounds,
        "steps": steps,
    }


def table_of(record: dict[str, Any]) -> str:
    """A profile as Markdown."""
    steps = record["steps"]
    total = sum(step["seconds"] for step in steps.values())
    rows = [
        [
            name,
            f"{1e3 * step['seconds']:.2f}",
            f"{100 * step['seconds'] / total:.0f}",
            f"{step['ns']:.2f}",
            UNITS.get(name, "row"),
        ]
        for name, step in sorted(steps.items(), key=lambda item: -item[1]["seconds"])
    ]
    kind = "binary" if record["binary"] else "regression"
    title = f"{record['rows']:,} × {record['columns']}, {record['leaves']} leaves, {kind}"
    head = ["step", "ms a stage", "%", "ns", "for each"]
    return f"## {title}: {1e3 * total:.1f} ms a stage\n\n{markdown_table(head, rows)}\n"


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="2000,1000000")
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--leaves", default="31,255")
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    records = [
        profile(int(rows), given.columns, int(leaves), binary, given.rounds)
        for rows in given.rows.split(",")
        for leaves in given.leaves.split(",")
        for binary in (False, True)
    ]
    print("\n".join(map(table_of, records)))


if __name__ == "__main__":
    main()
