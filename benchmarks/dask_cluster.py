"""Trees on a Dask cluster of two single-thread processes: hilboost, XGBoost and LightGBM.

Run ``python benchmarks/dask_cluster.py``.  The large table has 1,000,000 × 28 numbers (float32) in
eight partitions; every library grows 100 trees of 31 leaves.  The small one has 50,000 rows, which
are divided in five ways; models are different if predictions for 1,000 rows differ in any bit.
Times are medians of three turns, in each of which every library fits once.
"""

from __future__ import annotations

import logging
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from _common import (
    Record,
    by,
    markdown_table,
    median,
    peak_memory_mb,
    peer_trees,
    reset_peak_memory,
    study,
    timed,
)

ROWS, N_COLUMNS, N_PARTS, REPEATS = 1_000_000, 28, 8, 3
DIVISIONS = ([25, 25], [50], [10, 40], [5, 5, 5, 35], [12, 13, 12, 13])  # thousands of rows


def cluster_of(n_workers: int) -> LocalCluster:
    """Start workers of one thread each."""
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)


def rows(part: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the inputs and targets of a partition."""
    rng = np.random.default_rng(part)
    X = rng.normal(size=(n, N_COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + rng.normal(size=n)
    return X, y.astype(np.float32)


def large_table(client: Client, n: int) -> tuple[da.Array, da.Array]:
    """Draw the partitions on the workers, and keep them there."""
    size = n // N_PARTS
    parts = [dask.delayed(rows, nout=2)(part, size) for part in range(N_PARTS)]
    X = da.concatenate([da.from_delayed(p[0], (size, N_COLUMNS), np.float32) for p in parts])
    y = da.concatenate([da.from_delayed(p[1], (size,), np.float32) for p in parts])
    X, y = client.persist([X, y])
    client.gather(client.compute([X[-1], y[-1]]))
    return X, y


def divided(X: np.ndarray, y: np.ndarray, sizes: list[int]) -> tuple[da.Array, da.Array]:
    """Cut a small table into partitions of so many thousands of rows."""
    chunks = tuple(1000 * size for size in sizes)
    return da.from_array(X, chunks=(chunks, (N_COLUMNS,))), da.from_array(y, chunks=(chunks,))


def hilboost_model(X: Any, y: Any, client: Client, n_trees: int) -> Any:
    import hilboost.dask

    return hilboost.dask.fit(peer_trees(n_trees), X, y, client=client)


def xgboost_model(X: Any, y: Any, client: Client, n_trees: int) -> Any:
    from xgboost.dask import DaskXGBRegressor

    model = DaskXGBRegressor(
        n_estimators=n_trees,
        learning_rate=0.1,
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=31,
        max_depth=0,
        min_child_weight=20,
        reg_lambda=0.0,
        n_jobs=1,
    )
    model.client = client
    model.fit(X, y)
    from xgboost import DMatrix

    booster = model.get_booster()
    return type("Plain", (), {"predict": lambda _, X: booster.predict(DMatrix(X))})()


def lightgbm_model(X: Any, y: Any, client: Client, n_trees: int) -> Any:
    from lightgbm import DaskLGBMRegressor

    model = DaskLGBMRegressor(
        client=client,
        n_estimators=n_trees,
        learning_rate=0.1,
        num_leaves=31,
        min_child_samples=20,
        tree_learner="data",
        n_jobs=1,
        verbose=-1,
    )
    return model.fit(X, y).to_local()


LIBRARIES = {"hilboost": hilboost_model, "XGBoost": xgboost_model, "LightGBM": lightgbm_model}


class Traffic(logging.Handler):
    """Remembers what the last fit of hilboost has sent."""

    def emit(self, record: logging.LogRecord) -> None:
        self.sent = record.args


def n_models(fit: Any, client: Client, X_test: np.ndarray) -> int:
    """Count the different models that the divisions of the small table give."""
    X, y = rows(101, 50_000)
    models = [fit(*divided(X, y, sizes), client, 20) for sizes in DIVISIONS]
    return len({model.predict(X_test).tobytes() for model in models})


def measure(library: str, repeat: int, n: int = ROWS) -> Record:
    """Time fits to the large table on a new cluster; in the first turn, count models, too."""
    fit, traffic = LIBRARIES[library], Traffic()
    logging.getLogger("hilboost").addHandler(traffic)
    logging.getLogger("hilboost").setLevel("INFO")
    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = large_table(client, n)
        X_test, y_test = rows(100, 20_000)
        fit(*divided(*rows(101, 50_000), [25, 25]), client, 5)  # compiles, loads
        models = n_models(fit, client, X_test[:1000]) if repeat == 0 else None
        one_tree_s, _ = timed(lambda: fit(X, y, client, 1))
        client.run(reset_peak_memory)
        seconds, model = timed(lambda: fit(X, y, client, 100))
        record = {
            "models_of_5_divisions": models,
            "one_tree_s": one_tree_s,
            "seconds": seconds,
            "peak_mib": max(client.run(peak_memory_mb).values()),
            "test_mse": float(np.mean((model.predict(X_test) - y_test) ** 2)),
        }
    if library == "hilboost":
        record["n_bytes"], record["n_messages"] = traffic.sent[1:]
    return record


def measure_few(library: str, repeat: int) -> Record:
    return measure(library, repeat, 80_000)


def page(records: list[Record], facts: str) -> str:
    table, runs_of = [], by(records, "library")
    for library in [name for name in LIBRARIES if name in runs_of]:
        runs = runs_of[library]
        times = (median(r[x] for r in runs if x in r) for x in ("seconds", "one_tree_s"))
        last = [f"{runs[-1]['peak_mib']:.0f}", f"{runs[-1]['test_mse']:.4f}"]
        models = next((r["models_of_5_divisions"] for r in runs if r["repeat"] == 0), None)
        table.append([library, *(f"{seconds:.1f}" for seconds in times), *last, models])
    header = ["library", "seconds", "one tree alone", "peak memory of a worker (MiB)", "test MSE"]
    parts = [
        "# Trees on a Dask cluster",
        f"{ROWS:,} × {N_COLUMNS}, two workers with one thread each, 100 trees of 31 leaves; "
        f"medians of {REPEATS} turns.",
        markdown_table([*header, "models of 5 divisions"], table),
    ]
    if "hilboost" in runs_of:
        sent = runs_of["hilboost"][-1]
        parts.append(
            f"Both workers of hilboost together sent {sent['n_bytes'] / 1e6:.0f} MB in "
            f"{sent['n_messages']:,} messages."
        )
    return "\n\n".join([*parts, facts])


if __name__ == "__main__":
    cases = [{"repeat": repeat, "library": name} for repeat in range(REPEATS) for name in LIBRARIES]
    study("dask_cluster", cases, measure, page, about=__doc__, threads=2, quick=measure_few)
