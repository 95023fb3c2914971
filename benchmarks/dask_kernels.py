"""A kernel machine with sparse stages: one process, and two Dask workers of one thread each.

Run ``python benchmarks/dask_kernels.py``.  The kernel and λ are given; with ``kernel="auto"``,
every worker chooses them by itself.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from _common import (
    RESULTS,
    environment,
    environment_markdown,
    markdown_table,
    peak_memory_mb,
    reset_peak_memory,
    timed,
    write_json,
)

N, D, BASIS, STAGES = 200_000, 8, 1000, 3


def new_model(n_basis: int = BASIS) -> Any:
    from hilboost import KernelBoostingRegressor
    from hilboost.kernels import Gaussian

    return KernelBoostingRegressor(
        kernel=Gaussian(2.0),
        regularization=0.1,
        stages="sparse",
        n_basis=n_basis,
        subset_size=5000,
        n_estimators=STAGES,
        random_state=0,
        n_jobs=1,
    )


def draw() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=N)


def alone(X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Fit in a worker's process, with the same environment."""
    new_model(20).fit(X[:500], y[:500])
    reset_peak_memory()
    began = time.perf_counter()
    model = new_model().fit(X, y)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_mib": peak_memory_mb()}, model


def main() -> None:
    """Measure, and write JSON and Markdown."""
    import hilboost.dask

    argparse.ArgumentParser().parse_args()
    about = environment(2)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    X, y = draw()
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        one, single = client.submit(alone, *client.scatter([X, y]), pure=False).result()
        client.restart()
        parts = da.from_array(X, chunks=(N // 4, D)), da.from_array(y, chunks=N // 4)
        few = da.from_array(X[:500], chunks=(250, D)), da.from_array(y[:500], chunks=250)
        hilboost.dask.fit(new_model(20), *few, client=client)
        client.run(reset_peak_memory)
        seconds, model = timed(lambda: hilboost.dask.fit(new_model(), *parts, client=client))
        peak = max(client.run(peak_memory_mb).values())
    expected, found = single.predict(X[:5000]), model.predict(X[:5000])
    error = float(np.abs(found - expected).max() / expected.std())
    results = [
        {"fit": "one process", **one},
        {"fit": "two workers", "seconds": seconds, "peak_mib": peak, "relative_error": error},
    ]
    write_json(RESULTS / "dask_kernels.json", {"environment": about, "results": results})
    lines = [
        "# Kernel machines on a Dask cluster",
        "",
        f"{N:,} × {D}, {STAGES} stages of {BASIS:,} basis vectors, one thread for each process.",
        "",
        markdown_table(
            ("fit", "seconds", "peak memory of a process (MiB)"),
            [(r["fit"], f"{r['seconds']:.1f}", f"{r['peak_mib']:.0f}") for r in results],
        ),
        "",
        f"The largest difference of predictions, relative to their standard deviation, is "
        f"{error:.1g}.",
        "",
        environment_markdown(about),
    ]
    (RESULTS / "dask_kernels.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
