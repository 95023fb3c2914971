"""Kernel machines and output kernels: one process, and two Dask workers of one thread each.

Run ``python benchmarks/dask_kernels.py``.  Kernels and λ are given; with ``kernel="auto"``, every
worker chooses them by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client

from _common import markdown_table, peak_memory_mb, reset_peak_memory, study, timed
from dask_cluster import cluster_of

PREDICTED = 5000  # rows whose predictions are compared
RANK = 200


@dataclass(frozen=True)
class Case:
    """A model, its data, and a smaller model that loads what it needs."""

    about: str
    draw: Callable[[], tuple[np.ndarray, np.ndarray]]
    model: Callable[[bool], Any]  # the smaller one, if the argument is True


def _numbers(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    return X, np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=n)


def _curves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Curves of 64 points, as outputs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 20))
    phase = 3 * X[:, :1] + np.outer(2 + X[:, 1], np.linspace(0, 3, 64))
    return X, np.sin(phase) * (1 + X[:, 2:3]) + 0.1 * rng.normal(size=(n, 64))


def _machine(small: bool, **given: Any) -> Any:
    from hilboost import KernelBoostingRegressor
    from hilboost.kernels import Gaussian

    if small and "n_basis" in given:
        given["n_basis"] = 20
    kernel = Gaussian(2.0)
    return KernelBoostingRegressor(kernel=kernel, random_state=0, n_jobs=1, **given)


def _sparse(small: bool) -> Any:
    given = {"n_basis": 1000, "subset_size": 5000, "n_estimators": 3, "regularization": 0.1}
    return _machine(small, stages="sparse", **given)


def _full(small: bool) -> Any:
    return _machine(small, stages="full", regularization=1.0)


def _output_kernel(small: bool) -> Any:
    from hilboost import OutputKernelBoostingRegressor
    from hilboost.kernels import Gaussian
    from hilboost.outputs import KernelOutput

    output = KernelOutput(Gaussian(8.0), max_rank=RANK)
    stages = 2 if small else 50
    given = {"learner": "extra_trees", "n_estimators": stages, "random_state": 0, "n_jobs": 1}
    return OutputKernelBoostingRegressor(output, **given)


CASES = {
    "sparse": Case(
        "kernel machine, 3 sparse stages of 1,000 basis vectors", lambda: _numbers(200_000), _sparse
    ),
    "full": Case("kernel machine, full stages", lambda: _numbers(20_000), _full),
    "output kernel": Case(
        f"output kernel of rank {RANK} on curves of 64 points, 50 trees",
        lambda: _curves(40_000),
        _output_kernel,
    ),
}


def alone(name: str, X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """Fit in a worker's process, with the same environment."""
    case = CASES[name]
    case.model(True).fit(X[:500], y[:500])
    reset_peak_memory()
    began = time.perf_counter()
    model = case.model(False).fit(X, y)
    seconds = time.perf_counter() - began
    found = {"seconds": seconds, "peak_mib": peak_memory_mb()}
    return found, model.predict_raw(X[:PREDICTED])


def measure(case: str) -> dict[str, Any]:
    with cluster_of(2) as cluster, Client(cluster) as client:
        return measured(case, client)


def measured(name: str, client: Client) -> dict[str, Any]:
    """Fit in one process, and on two workers."""
    import hilboost.dask

    case = CASES[name]
    X, y = case.draw()
    n = len(X)
    one, expected = client.submit(alone, name, *client.scatter([X, y]), pure=False).result()
    client.restart()

    def parts(n: int, size: int) -> list[Any]:
        return [da.from_array(a[:n], chunks=(size, *a.shape[1:])) for a in (X, y)]

    hilboost.dask.fit(case.model(True), *parts(500, 250), client=client)
    client.run(reset_peak_memory)
    seconds, model = timed(
        lambda: hilboost.dask.fit(case.model(False), *parts(n, n // 4), client=client)
    )
    peak = max(client.run(peak_memory_mb).values())
    error = float(np.abs(model.predict_raw(X[:PREDICTED]) - expected).max() / expected.std())
    two = {"seconds": seconds, "peak_mib": peak, "relative_error": error}
    return {"about": case.about, "rows": n, "columns": X.shape[1], "one": one, "two": two}


def page(records: list[dict[str, Any]], facts: str) -> str:
    rows = []
    for record in records:
        for workers, found in (("one process", record["one"]), ("two workers", record["two"])):
            error = found.get("relative_error")
            cells = [f"{found['seconds']:.1f}", f"{found['peak_mib']:.0f}"]
            title = f"{record['about']}, {record['rows']:,} × {record['columns']}"
            rows.append([title, workers, *cells, "" if error is None else f"{error:.1g}"])
    header = ("model", "fit", "seconds", "peak memory of a process (MiB)", "relative difference")
    return (
        "# Kernel machines and output kernels on a Dask cluster\n\n"
        "One thread for each process.  The last column is the largest difference of predictions "
        "from those of one process, relative to their standard deviation.\n\n"
        f"{markdown_table(header, rows)}\n\n{facts}"
    )


if __name__ == "__main__":
    cases = [{"case": name} for name in CASES]
    study("dask_kernels", cases, measure, page, about=__doc__, threads=2)
