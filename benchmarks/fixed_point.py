"""Whether fixed-point gradients change the test loss of trees, compared with float64 sums.

Small tables, two random halves each as training rows (at most 2,000), the other rows as test rows.
The label is the class, or whether the target (the code of the class) is above its median.  Log
loss, 100 trees of 15 leaves.  The twin is ``tests/reference/float_grow.py``: the same binning,
rules and leaf values, but the sums of histograms are float64.  Two further fits round gradients as
coarsely, and at random, as fits of 131,073 and of two million rows do.  All differences are paired
by table and split, and relative to the loss of the twin; the standard error is that of the mean
over tables.

Run ``python benchmarks/fixed_point.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from _common import ROOT, markdown_table, standard_error, study
from hilboost import BoostingClassifier
from hilboost.engine import gradients as packing
from hilboost.engine import stage as fitting
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.engine.plan import Plan
from tables import TABLES

sys.path.insert(0, str(ROOT))

from tests.reference.float_grow import Float64Growth

SEEDS = (0, 1)
MAX_TRAIN, MAX_TEST = 2_000, 5_000
WIDE = ("osales", "usps", "scene", "enron")
"""Tables with more columns than the twin can take in reasonable time."""
AS_ROWS = {"as 131,073 rows": 131_073, "as 2,000,000 rows": 2_000_000}
KINDS = ("float64", "fixed point", *AS_ROWS)
SETTINGS = {
    "n_estimators": 100,
    "learning_rate": 0.1,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "max_features": 1.0,
    "early_stopping": False,
    "n_jobs": 1,
    "random_state": 0,
}


@contextmanager
def growing(kind: str, n: int) -> Iterator[None]:
    """Replace the growth of trees, or the layout of the gradients of ``n`` rows."""
    before = fitting.pack, packing._fields, packing.factor_of
    grow = CpuOperations.grow
    separates = Plan.separates
    pack, fields, factor_of = before
    if kind == "float64":
        twin = Float64Growth(pack)
        fitting.pack = twin.pack
        CpuOperations.grow = lambda _, growth, symmetric: twin.grow(growth)
        Plan.separates = lambda *_: False
    elif kind in AS_ROWS:
        m = AS_ROWS[kind]
        packing._fields = lambda curved, coarse, whole, of_count, sum_w, _: fields(
            curved, coarse, whole, of_count, sum_w * m / n, m
        )
        packing.factor_of = lambda total, room: factor_of(total * m / n, room)
    try:
        yield
    finally:
        fitting.pack, packing._fields, packing.factor_of = before
        CpuOperations.grow = grow
        Plan.separates = separates


def split(table: str, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows and their labels."""
    X, y, task = TABLES[table]()
    labels = y.astype(int) if task == "binary" else (y > np.median(y)).astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(MAX_TRAIN, len(X) // 2)
    train, test = order[:n], order[n : n + MAX_TEST]
    return X[train], labels[train], X[test], labels[test]


def measure(table: str, seed: int) -> dict[str, float]:
    """Test losses, and the share of test rows to which both give the same probability."""
    X, y, X_test, y_test = split(table, seed)
    losses, probabilities = {}, {}
    for kind in KINDS:
        with growing(kind, len(X)):
            model = BoostingClassifier(**SETTINGS).fit(X, y)
        found = model.predict_proba(X_test)
        of_label = np.clip(found[np.arange(len(y_test)), y_test], 1e-15, 1)
        losses[kind], probabilities[kind] = -float(np.log(of_label).mean()), found[:, 1]
    same = np.isclose(probabilities["float64"], probabilities["fixed point"], rtol=1e-9, atol=0)
    return {"n": len(X), "losses": losses, "same": float(same.mean())}


def page(records: list[dict], facts: str) -> str:
    """The mean relative difference to the twin, with its standard error, of every kind."""
    tables = [r["table"] for r in records]
    complete = [r for r in records if tables.count(r["table"]) == len(SEEDS)]
    losses = {kind: np.array([r["losses"][kind] for r in complete]) for kind in KINDS}
    twin = losses["float64"]
    rows = [["float64", f"{twin.mean():.6f}", "", "", "", ""]]
    for kind in KINDS[1:]:
        change = losses[kind] / twin - 1
        by_table = 100 * change.reshape(-1, len(SEEDS)).mean(axis=1)
        cells = [f"{by_table.mean():+.3f} ± {standard_error(by_table):.3f}"]
        cells += [f"{(change < 0).sum()}", f"{(change == 0).sum()}", f"{(change > 0).sum()}"]
        rows.append([kind, f"{losses[kind].mean():.6f}", *cells])
    header = ["sums", "mean log loss", "difference in %", "lower", "equal", "higher"]
    return (
        f"# Fixed-point gradients\n\n{facts}\n\n"
        "Log loss of 100 trees of 15 leaves, whose histograms have float64 sums or those of "
        "fixed-point gradients, also with the coarser steps of larger tables; "
        f"{len(complete)} splits of {len(complete) // len(SEEDS)} tables of at most "
        f"{MAX_TRAIN:,} training rows. Differences are relative to float64 sums, with the standard "
        "error of the mean over tables; the last columns count splits.\n\n"
        f"{markdown_table(header, rows)}"
    )


def main() -> None:
    names = [name for name in TABLES if name not in WIDE]
    cases = [{"table": name, "seed": seed} for name in names for seed in SEEDS]
    study("fixed_point", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()
