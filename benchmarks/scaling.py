"""How the time of a stage grows with rows, columns, leaves and classes, and where it goes.

One thread.  The time of a stage is a median over the stages of a fit.  Shares are those of
processor time in a second fit, whose trees grow step by step (:mod:`engine_profile`).  A slope is
the change of the logarithm of the time with the logarithm of the size: 1 is proportional.

Run ``python benchmarks/scaling.py``, or with ``--axes rows,classes``.
"""

from __future__ import annotations

import argparse
import math
import statistics
from itertools import pairwise
from typing import Any

import numpy as np

from _common import RESULTS, comma_list, environment, environment_markdown, markdown_table, publish
from engine_profile import GROWTH, STEPS, Clock, data
from hilboost import BoostingClassifier, BoostingRegressor

BASE = {"rows": 20_000, "columns": 28, "leaves": 31, "classes": 1}
AXES = {
    "rows": (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000),
    "columns": (10, 32, 100, 316, 1_000),
    "leaves": (7, 15, 31, 63, 127, 255, 511, 1_023),
    "classes": (2, 5, 10, 20, 50, 100),
}
OTHERS = {"leaves": {"rows": 100_000}}
"""Sizes other than the base while an axis varies."""

SHARED = ("sum histograms", "divide rows", "find splits")


def model_of(leaves: int, classes: int, rounds: int) -> Any:
    """A model with one thread and a fixed number of stages; one class means regression."""
    kind = BoostingRegressor if classes == 1 else BoostingClassifier
    return kind(
        n_estimators=rounds,
        max_leaf_nodes=leaves,
        min_samples_leaf=20,
        learning_rate=0.1,
        early_stopping=False,
        n_jobs=1,
        random_state=0,
    )


def table(rows: int, columns: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The data of the profile; classes are quantiles of the target."""
    X, y = data(rows, columns)
    if classes == 1:
        return X, y
    return X, np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)


def measure(size: dict[str, int], rounds: int) -> dict[str, Any]:
    """Seconds of a stage, and the shares of its steps."""
    X, y = table(size["rows"], size["columns"], size["classes"])
    model = model_of(size["leaves"], size["classes"], rounds).fit(X, y)
    clock = Clock()
    with clock.running():
        model_of(size["leaves"], size["classes"], max(2, rounds // 2)).fit(X, y)
    spent = {step: sum(clock.seconds[step]) for step in (*STEPS, *GROWTH)}
    total = sum(spent.values())
    return {
        **size,
        "rounds": rounds,
        "seconds": statistics.median(model.history_.seconds),
        "shares": {step: seconds / total for step, seconds in spent.items()},
    }


def rounds_for(size: dict[str, int]) -> int:
    """So many stages that a fit takes about a second."""
    work = size["rows"] * size["columns"] * max(1, size["classes"]) * math.log2(size["leaves"])
    return int(min(40, max(4, 1e9 / work)))


def table_of(axis: str, records: list[dict[str, Any]]) -> str:
    """The records of an axis as Markdown."""
    slopes: list[float | None] = [None]
    for before, after in pairwise(records):
        ratio = after["seconds"] / before["seconds"]
        slopes.append(math.log(ratio) / math.log(after[axis] / before[axis]))
    rows = []
    for record, slope in zip(records, slopes, strict=True):
        shares = [record["shares"][step] for step in SHARED]
        rows.append(
            [
                f"{record[axis]:,}",
                f"{1e3 * record['seconds']:.2f}",
                "" if slope is None else f"{slope:.2f}",
                *(f"{100 * share:.0f}" for share in (*shares, 1 - sum(shares))),
            ]
        )
    others = {**BASE, **OTHERS.get(axis, {})}
    fixed = ", ".join(f"{others[name]:,} {name}" for name in ("rows", "columns", "leaves"))
    fixed = ", ".join(part for part in fixed.split(", ") if not part.endswith(axis))
    head = [axis, "ms a stage", "slope", *(f"{step} %" for step in SHARED), "other %"]
    return f"## {axis.capitalize()}\n\n{fixed}.\n\n{markdown_table(head, rows)}\n"


def main() -> None:
    """Measure, write JSON and Markdown, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axes", default=",".join(AXES))
    axes = comma_list(parser.parse_args().axes)
    found: dict[str, list[dict[str, Any]]] = {}
    # Nothing is compiled while times are taken.
    for classes in (1, 2, 3):
        measure({**BASE, "classes": classes}, 2)
    for axis in axes:
        sizes = [{**BASE, **OTHERS.get(axis, {}), axis: value} for value in AXES[axis]]
        found[axis] = [measure(size, rounds_for(size)) for size in sizes]
    facts = environment(1)
    text = (
        "# Scaling of a stage\n\n"
        f"{environment_markdown(facts)}\n\n"
        "One thread; medians over the stages; shares of processor time "
        "(`benchmarks/scaling.py`). A stage grows one tree, or one for each class if there are "
        "more than two. A slope of 1 means that the time is proportional to the size.\n\n"
    ) + "\n".join(table_of(axis, records) for axis, records in found.items())
    publish(RESULTS / "scaling.json", {"environment": facts, "records": found}, text)


if __name__ == "__main__":
    main()
