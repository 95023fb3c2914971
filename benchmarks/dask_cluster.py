"""Trees on a Dask cluster of two single-thread processes: hilboost, XGBoost and LightGBM.

Run ``python benchmarks/dask_cluster.py``.  The large table has 1,000,000 × 28 numbers (float32) in
eight partitions; every library grows 100 trees of 31 leaves.  The small one has 50,000 rows, which
are divided in five ways; models are different if predictions for 1,000 rows differ in any bit.
Times are medians of three turns, in each of which every library fits once.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from _common import (
    RESULTS,
    environment,
    environment_markdown,
    markdown_table,
    median,
    peak_memory_mb,
    peer_trees,
    publish,
    reset_peak_memory,
    timed,
)

N_COLUMNS, N_PARTS, REPEATS = 28, 8, 3
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


def hilboost_model(
    X: Any, y: Any, client: Client, n_trees: int, callbacks: Any = (), timeout: float = 120.0
) -> Any:
    import hilboost.dask

    model = peer_trees(n_trees)
    return hilboost.dask.fit(model, X, y, client=client, callbacks=callbacks, timeout=timeout)


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


def measure(client: Client, n: int) -> list[dict[str, Any]]:
    """Time the fits of each library to the large table, and count models of the small one."""
    X, y = large_table(client, n)
    X_test, y_test = rows(100, 20_000)
    X_small, y_small = rows(101, 50_000)
    traffic = Traffic()
    logging.getLogger("hilboost").addHandler(traffic)
    logging.getLogger("hilboost").setLevel("INFO")
    results: list[dict[str, Any]] = []
    for name, fit in LIBRARIES.items():
        fit(*divided(X_small, y_small, [25, 25]), client, 5)  # compiles, loads
        found = set()
        for sizes in DIVISIONS:
            small = fit(*divided(X_small, y_small, sizes), client, 20)
            found.add(small.predict(X_test[:1000]).tobytes())
        results.append({"library": name, "models_of_5_divisions": len(found)})
    one_s: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    all_s: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    for _ in range(REPEATS):
        for one, (name, fit) in zip(results, LIBRARIES.items(), strict=True):
            one_s[name].append(timed(lambda fit=fit: fit(X, y, client, 1))[0])
            client.run(reset_peak_memory)
            seconds, model = timed(lambda fit=fit: fit(X, y, client, 100))
            all_s[name].append(seconds)
            one["peak_mib"] = max(client.run(peak_memory_mb).values())
            one["test_mse"] = float(np.mean((model.predict(X_test) - y_test) ** 2))
            print(name, seconds, flush=True)
            if name == "hilboost":
                one["n_bytes"], one["n_messages"] = traffic.sent[1:]
    for one in results:
        one["repeats_s"] = all_s[one["library"]]
        one["seconds"] = median(one["repeats_s"])
        one["one_tree_s"] = median(one_s[one["library"]])
    return results


def main() -> None:
    """Measure, and write JSON and Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    about = environment(2)
    with cluster_of(2) as cluster, Client(cluster) as client:
        results = measure(client, n)
    header = ["library", "seconds", "one tree alone", "peak memory of a worker (MiB)", "test MSE"]
    table = [
        [
            r["library"],
            f"{r['seconds']:.1f}",
            f"{r['one_tree_s']:.1f}",
            f"{r['peak_mib']:.0f}",
            f"{r['test_mse']:.4f}",
            r["models_of_5_divisions"],
        ]
        for r in results
    ]
    page = (
        "# Trees on a Dask cluster\n\n"
        f"{n:,} × {N_COLUMNS}, two workers with one thread each, 100 trees of 31 leaves; "
        f"medians of {REPEATS} turns.\n\n"
        f"{markdown_table([*header, 'models of 5 divisions'], table)}\n\n"
        f"Both workers of hilboost together sent {results[0]['n_bytes'] / 1e6:.0f} MB in "
        f"{results[0]['n_messages']:,} messages.\n\n{environment_markdown(about)}"
    )
    content = {"environment": about, "rows": n, "results": results}
    publish(RESULTS / "dask_cluster.json", content, page)


if __name__ == "__main__":
    main()
