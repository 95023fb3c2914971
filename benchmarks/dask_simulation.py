"""Trees on 64 and 1,000 workers, simulated from costs that are measured on one.

Run ``python benchmarks/dask_simulation.py``.  One worker fits 1,000,000 × 28 on one thread.  The
rows of each step of each split, and its duration, are recorded; a line through them gives the costs
of a step and of a row.  The simulation replays the splits with the rows of each worker, whose steps
take randomly longer or shorter, and with the binary tree of messages, event by event.  It is
compared with the two real workers of ``dask_cluster.py``, and with the formula of the
documentation, which adds up messages and bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from _common import (
    RESULTS,
    ROOT,
    environment,
    environment_markdown,
    markdown_table,
    peer_trees,
    write_json,
)
from dask_cluster import rows as draw_rows
from hilboost.engine import stage, tree_data
from hilboost.engine.driver import batch_size
from hilboost.engine.ops.cpu.nodes import BEGIN, END
from hilboost.engine.ops.cpu.operations import CpuOperations
from hilboost.workers.exchange import neighbors
from hilboost.workers.fit import WorkerTask, fit_share
from hilboost.workers.partitions import Partition

sys.path.insert(0, str(ROOT))

from tests.workers.together import run_together

N, D, N_TREES = 1_000_000, 28, 20
LATENCY, BANDWIDTH = 50e-6, 1e9  # of a network: seconds a message, bytes a second
SPREAD = 0.05  # standard deviation of the logarithm of a step's duration
CASES = ((10**9, 50, 64), (10**10, 50, 1000))


@dataclass(frozen=True)
class Costs:
    """Seconds: of each step, ``constant + slope * rows`` on one thread, for ``D`` columns.

    Attributes
    ----------
    steps : dict of str to (constant, slope)
    of_a_tree : (constant, slope)
        All that a stage does besides growing.
    of_a_binned_row, of_a_replayed_row : float
        Binning, and adding one tree to a row, which a new worker does again.
    """

    steps: dict[str, tuple[float, float]]
    of_a_tree: tuple[float, float]
    of_a_binned_row: float
    of_a_replayed_row: float

    def of_columns(self, d: int) -> Costs:
        """Return the costs of a table with more columns."""
        wider = {"histogram", "search"}
        steps = {
            name: (a * d / D, b * d / D) if name in wider else (a, b)
            for name, (a, b) in self.steps.items()
        }
        return replace(self, steps=steps, of_a_binned_row=self.of_a_binned_row * d / D)


def recorded(n: int, kept: dict[str, list[tuple[int, float]]]) -> tuple[float, Any]:
    """Fit with one worker; record the rows and seconds of each step; return those of the stages."""
    X, y = draw_rows(0, n)
    names = "partition", "histogram", "search"
    plain = {name: getattr(CpuOperations, name) for name in names}

    def timed_step(name: str) -> Any:
        def step(operations: Any, growth: Any, nodes: Any, *columns: Any) -> Any:
            began = time.perf_counter()
            found = plain[name](operations, growth, nodes, *columns)
            seconds = time.perf_counter() - began
            size = int(np.diff(growth.nodes.fields[nodes][:, [BEGIN, END]]).sum())
            kept[name].append((size, seconds))
            return found

        return step

    for name in names:
        setattr(CpuOperations, name, timed_step(name))
    stage.batch_size = lambda _: 1
    binned = tree_data.bin_table

    def bin_table(*given: Any) -> Any:
        began = time.perf_counter()
        found = binned(*given)
        kept["bin"].append((n, time.perf_counter() - began))
        return found

    tree_data.bin_table = bin_table
    stages: list[float] = []
    try:
        task = WorkerTask(peer_trees(N_TREES), 0)
        ((fitted, _),) = run_together(
            1,
            lambda exchange: fit_share(
                task,
                [Partition(0, X, y)],
                [],
                exchange,
                [lambda _: stages.append(time.perf_counter())],
            ),
        )
    finally:
        for name, step in plain.items():
            setattr(CpuOperations, name, step)
        stage.batch_size = batch_size
        tree_data.bin_table = binned
    began = time.perf_counter()
    fitted.model.predict_raw(X, 1)
    kept["replay"].append((n * N_TREES, time.perf_counter() - began))
    return float(np.mean(np.diff(stages))), fitted


def measured() -> tuple[Costs, dict[str, list[tuple[int, float]]]]:
    """Measure the costs with a small and a large table; return the splits of the large one."""
    small: dict[str, list[tuple[int, float]]] = defaultdict(list)
    large: dict[str, list[tuple[int, float]]] = defaultdict(list)
    recorded(N // 10, defaultdict(list))  # compiles
    stages = {n: recorded(n, kept)[0] for n, kept in ((N // 10, small), (N, large))}
    steps, outside = {}, dict(stages)
    for name in ("partition", "histogram", "search"):
        sizes, seconds = np.array([*small[name], *large[name]]).T
        slope, constant = np.polyfit(sizes, seconds, 1) if name != "search" else (0, seconds.mean())
        steps[name] = (max(float(constant), 0.0), float(slope))
        for n, kept in ((N // 10, small), (N, large)):
            outside[n] -= sum(s for _, s in kept[name]) / N_TREES
    slope = (outside[N] - outside[N // 10]) / (N - N // 10)
    of_a_tree = max(outside[N] - slope * N, 0.0), slope
    (n_binned, binning), (n_replayed, replay) = large["bin"][0], large["replay"][0]
    return Costs(steps, of_a_tree, binning / n_binned, replay / n_replayed), large


def reduced(ready: np.ndarray, n_bytes: int, latency: float, bandwidth: float) -> np.ndarray:
    """When each worker has the sum of all, if its own is ready at the given times, (n_workers,)."""
    n, hop = len(ready), latency + n_bytes / bandwidth
    if n == 2:
        return np.full(2, ready.max() + hop)
    up = ready.copy()
    for rank in reversed(range(n)):
        for child in neighbors(rank, n)[0]:
            up[rank] = max(up[rank], up[child]) + n_bytes / bandwidth  # one link takes in both
        up[rank] += latency if neighbors(rank, n)[0] else 0.0
    down = np.empty(n)
    down[0] = up[0]
    for rank in range(n):
        for k, child in enumerate(neighbors(rank, n)[0]):
            down[child] = down[rank] + hop + k * n_bytes / bandwidth
    return down


def simulated(
    costs: Costs,
    splits: dict[str, list[tuple[int, float]]],
    n_rows: int,
    d: int,
    n_workers: int,
    network: tuple[float, float],
    spread: float = SPREAD,
) -> float:
    """Seconds of a tree, the mean over the recorded ones."""
    costs, rng = costs.of_columns(d), np.random.default_rng(0)
    scale, clock = n_rows / n_workers / N, np.zeros(n_workers)
    n_splits = len(splits["partition"])

    def work(step: tuple[float, float], size: float) -> np.ndarray:
        return (step[0] + step[1] * size) * np.exp(spread * rng.normal(size=n_workers))

    for k in range(n_splits):
        for name in ("partition", "histogram"):
            clock += work(costs.steps[name], splits[name][k][0] * scale)
        clock = reduced(clock, 2048 * d, *network)
        clock += work(costs.steps["search"], 0)
    clock += N_TREES * work(costs.of_a_tree, N * scale)
    return float(clock.max()) / N_TREES


def by_formula(d: int, n_workers: int) -> float:
    """Seconds of messages and bytes of a tree of 31 leaves, as in the documentation."""
    levels = int(np.ceil(np.log2(n_workers + 1))) - 1
    return 31 * 2 * levels * (LATENCY + 2 * 2048 * d / BANDWIDTH)


def main() -> None:
    """Measure, simulate, and write JSON and Markdown."""
    argparse.ArgumentParser().parse_args()
    about = environment(1)
    costs, splits = measured()
    found = []
    for n_rows, d, n_workers in CASES:
        own = n_rows / n_workers
        alone = simulated(costs, splits, int(own), d, 1, (0.0, np.inf), 0.0)
        whole = simulated(costs, splits, n_rows, d, n_workers, (LATENCY, BANDWIDTH))
        even = simulated(costs, splits, n_rows, d, n_workers, (LATENCY, BANDWIDTH), 0.0)
        wide = costs.of_columns(d)
        found.append(
            {
                "rows": n_rows,
                "columns": d,
                "workers": n_workers,
                "tree_s": whole,
                "computing_s": alone,
                "messages_s": even - alone,
                "waiting_s": whole - even,
                "formula_s": by_formula(d, n_workers),
                "sent_mb": 3 * 31 * 2048 * d / 1e6,
                "lost_worker_s": own * (wide.of_a_binned_row + 100 * costs.of_a_replayed_row),
            }
        )
        print(found[-1])
    real = json.loads((RESULTS / "dask_cluster.json").read_text())["results"][0]
    pair = {
        "simulated_s": simulated(costs, splits, N, D, 2, (LATENCY, BANDWIDTH)),
        "measured_s": (real["seconds"] - real["one_tree_s"]) / 99,
    }
    print(pair)
    write_json(
        RESULTS / "dask_simulation.json",
        {"environment": about, "costs": costs.__dict__, "results": found, "two_workers": pair},
    )
    lines = [
        "# Trees on 64 and 1,000 workers, simulated",
        "",
        f"Costs are measured on one thread ({N:,} × {D}); messages take {LATENCY * 1e6:.0f} µs and "
        f"{BANDWIDTH / 1e9:.0f} GB/s; the durations of steps vary by {SPREAD:.0%}. One thread a "
        "worker, trees of 31 leaves.",
        "",
        markdown_table(
            (
                "rows × columns",
                "workers",
                "a tree (s)",
                "computing (s)",
                "messages (s)",
                "formula (s)",
                "waiting for the slowest (s)",
                "sent a tree (MB)",
                "a lost worker after 100 trees (s)",
            ),
            [
                (
                    f"10^{np.log10(r['rows']):.0f} × {r['columns']}",
                    f"{r['workers']:,}",
                    f"{r['tree_s']:.2f}",
                    f"{r['computing_s']:.2f}",
                    f"{r['messages_s']:.3f}",
                    f"{r['formula_s']:.3f}",
                    f"{r['waiting_s']:.2f}",
                    f"{r['sent_mb']:.1f}",
                    f"{r['lost_worker_s']:.0f}",
                )
                for r in found
            ],
        ),
        "",
        "The last column is the time in which one worker bins the rows of another one and adds "
        "100 trees to them; reading them comes on top. For the two workers of "
        f"[the benchmark](#trees-on-a-dask-cluster), {N:,} × {D}, the simulation gives "
        f"{1000 * pair['simulated_s']:.0f} ms for a tree; {1000 * pair['measured_s']:.0f} ms were "
        "measured.",
        "",
        environment_markdown(about),
    ]
    (RESULTS / "dask_simulation.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
