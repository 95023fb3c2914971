"""Trees on a Parquet table: memory and time from disk and in memory, and XGBoost from disk.

Run ``python benchmarks/stream.py``, or with ``--rows 30000000 --modes disk``.  XGBoost reads the
groups of rows into its external memory, and grows trees of the same size, best first as hilboost
does, or depth first, which its documentation recommends for external memory.  Each of the fits
runs in a fresh process, which first compiles by a small fit; "added" is the peak resident memory
less what the process held before.  The resident memory from disk includes the bins that the system
keeps in its cache.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _common import (
    RESULTS,
    environment,
    environment_markdown,
    markdown_table,
    peak_memory_mb,
    peer_trees,
    publish,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    timed,
)

ROWS, N_COLUMNS, GROUP = 8_000_000, 28, 100_000
RATE, LEAVES = 0.1, 31
MODES = ("disk", "memory", "XGBoost", "XGBoost depthwise")
LABELS = {"disk": "hilboost from disk", "memory": "hilboost in memory"}
NAMES = [f"x{k}" for k in range(N_COLUMNS)]


def write_table(path: Path, n: int) -> None:
    """Write the table in groups of rows, of float32."""
    schema = pa.schema([(name, pa.float32()) for name in [*NAMES, "y"]])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for part in range(n // GROUP):
            rng = np.random.default_rng(part)
            X = rng.normal(size=(GROUP, N_COLUMNS)).astype(np.float32)
            y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=GROUP).astype(np.float32)
            writer.write_table(pa.Table.from_arrays([*X.T.copy(), y], schema=schema))


def new_model(n_trees: int) -> Any:
    return peer_trees(n_trees, learning_rate=RATE, max_leaf_nodes=LEAVES, n_jobs=1)


def xgboost_model(path: Path, n_trees: int, grow_policy: str) -> float:
    """Train with external memory; return the training loss, half the mean squared error."""
    import xgboost

    class Groups(xgboost.DataIter):
        """Row groups of the file, a few at a time."""

        def __init__(self) -> None:
            self.file, self.place = pq.ParquetFile(path), 0
            super().__init__(cache_prefix=str(path.parent / "cache"))

        def next(self, input_data: Any) -> bool:
            if self.place >= self.file.num_row_groups:
                return False
            several = range(self.place, min(self.place + 10, self.file.num_row_groups))
            table = self.file.read_row_groups(list(several))
            self.place = several.stop
            X = np.column_stack([table[name].to_numpy() for name in NAMES])
            input_data(data=X, label=table["y"].to_numpy())
            return True

        def reset(self) -> None:
            self.place = 0

    matrix = xgboost.ExtMemQuantileDMatrix(Groups(), max_bin=255, nthread=1)
    best_first = grow_policy == "lossguide"
    parameters = {
        "tree_method": "hist",
        "grow_policy": grow_policy,
        "max_leaves": LEAVES if best_first else 0,
        "max_depth": 0 if best_first else 5,
        "learning_rate": RATE,
        "min_child_weight": 20,
        "reg_lambda": 0.0,
        "max_bin": 255,
        "nthread": 1,
    }
    found: dict[str, Any] = {}
    xgboost.train(
        parameters, matrix, n_trees, [(matrix, "train")], evals_result=found, verbose_eval=False
    )
    return 0.5 * found["train"]["rmse"][-1] ** 2


def measure(path: Path, mode: str) -> dict[str, Any]:
    """Fit in this process."""
    import hilboost.stream

    rng = np.random.default_rng(0)
    new_model(2).fit(rng.normal(size=(1000, N_COLUMNS)), rng.normal(size=1000))
    small = pa.table({"x": rng.normal(size=1000), "y": rng.normal(size=1000)})
    hilboost.stream.fit(new_model(2), small, target="y")
    del small
    reset_peak_memory()
    before = resident_mb()

    def in_memory() -> Any:
        table = pq.read_table(path)
        X = np.column_stack([table[name].to_numpy() for name in NAMES])
        y = table["y"].to_numpy()
        del table
        return new_model(20).fit(X, y)

    def from_disk() -> Any:
        return hilboost.stream.fit(new_model(20), path, target="y", folder=path.parent)

    if mode.startswith("XGBoost"):
        policy = "lossguide" if mode == "XGBoost" else "depthwise"
        seconds, loss = timed(lambda: xgboost_model(path, 20, policy))
    else:
        seconds, model = timed(in_memory if mode == "memory" else from_disk)
        loss = model.history_.train[-1]
    added = peak_memory_mb() - before
    return {"mode": mode, "seconds": seconds, "added_mib": added, "train_loss": loss}


def main() -> None:
    """Measure in fresh processes, write JSON and Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--here", nargs=2)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measure(Path(given.here[0]), given.here[1])))
        return
    modes = given.modes.split(",")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, given.rows)
        size = path.stat().st_size / 2**20
        results = [run_fresh(__file__, ["--here", str(path), mode]) for mode in modes]
    about = environment(1)
    name = "stream" if given.rows == ROWS else f"stream_{given.rows}"
    path = RESULTS / f"{name}.json"
    if path.exists():  # modes that were measured in another run
        earlier = json.loads(path.read_text())["results"]
        results += [one for one in earlier if one["mode"] not in modes]
    results.sort(key=lambda one: MODES.index(one["mode"]))
    rows = [
        [
            LABELS.get(r["mode"], r["mode"]),
            f"{r['seconds']:.1f}",
            f"{r['added_mib']:.0f}",
            f"{r['train_loss']:.6f}",
        ]
        for r in results
    ]
    page = (
        f"# Trees on a Parquet table of {given.rows:,} rows\n\n"
        f"{given.rows:,} × {N_COLUMNS} float32, a file of {size:.0f} MiB; 20 trees of 31 leaves, "
        "one thread.\n\n"
        f"{markdown_table(['fit', 'seconds', 'added memory (MiB)', 'training loss'], rows)}\n\n"
        f"{environment_markdown(about)}"
    )
    content = {"environment": about, "rows": given.rows, "file_mib": size, "results": results}
    publish(path, content, page)


if __name__ == "__main__":
    main()
