"""Trees on a Parquet table: memory and time from disk and in memory, and XGBoost from disk.

Run ``python benchmarks/stream.py``.  XGBoost reads the
groups of rows into its external memory, and grows trees of the same size, best first as hilboost
does, or depth first, which its documentation recommends for external memory.  Each of the fits
runs in a fresh process, which first compiles by a small fit; "added" is the peak resident memory
less what the process held before.  The resident memory from disk includes the bins that the system
keeps in its cache.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _common import (
    Record,
    by,
    markdown_table,
    peak_memory_mb,
    peer_trees,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    study,
    timed,
)

N_COLUMNS, GROUP = 28, 100_000
RATE, LEAVES = 0.1, 31
LABELS = {
    "disk": "hilboost from disk",
    "memory": "hilboost in memory",
    "XGBoost": "XGBoost",
    "XGBoost depthwise": "XGBoost depthwise",
}
CASES = [{"rows": 8_000_000, "mode": mode} for mode in LABELS]
CASES.append({"rows": 30_000_000, "mode": "disk"})
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


def fit_here(path: Path, mode: str) -> Record:
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
    return {"seconds": seconds, "added_mib": added, "train_loss": loss}


def measure(rows: int, mode: str) -> Record:
    """Fit in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, rows)
        size = path.stat().st_size / 2**20
        return {"file_mib": size, **run_fresh(__file__, ["--here", str(path), mode])}


def measure_few(rows: int, mode: str) -> Record:
    return measure(2 * GROUP, mode)


def section(records: list[Record]) -> str:
    rows = [
        [
            LABELS[r["mode"]],
            f"{r['seconds']:.1f}",
            f"{r['added_mib']:.0f}",
            f"{r['train_loss']:.6f}",
        ]
        for r in records
    ]
    return (
        f"## {records[0]['rows']:,} rows\n\nA file of {records[0]['file_mib']:.0f} MiB.\n\n"
        f"{markdown_table(['fit', 'seconds', 'added memory (MiB)', 'training loss'], rows)}"
    )


def page(records: list[Record], facts: str) -> str:
    parts = [
        "# Trees on Parquet tables",
        f"{N_COLUMNS} columns of float32; 20 trees of 31 leaves, one thread.",
        *map(section, by(records, "rows").values()),
        *(f"{r['rows']:,} rows: measured {r['measured']}." for r in records if "measured" in r),
        facts,
    ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(fit_here(Path(sys.argv[2]), sys.argv[3])))
    else:
        study("stream", CASES, measure, page, about=__doc__, quick=measure_few)
