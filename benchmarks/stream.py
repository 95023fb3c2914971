"""Trees on a Parquet table: memory and time from disk and in memory.

Run ``python benchmarks/stream.py``, or with ``--rows 30000000 --modes disk``.  Each of the fits
runs in a fresh process, which first compiles by a small fit; "added" is the peak resident memory
less what the process held before.  The resident memory from disk includes the bins that the system
keeps in its cache.
"""

from __future__ import annotations

import argparse
import json
import sys
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
    peak_memory_mb,
    reset_peak_memory,
    resident_mb,
    run_fresh,
    timed,
    write_json,
)

ROWS, N_COLUMNS, GROUP = 8_000_000, 28, 100_000
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
    from hilboost import BoostingRegressor

    return BoostingRegressor(
        n_estimators=n_trees, max_leaf_nodes=31, early_stopping=False, random_state=0
    )


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

    seconds, model = timed(in_memory if mode == "memory" else from_disk)
    loss = model.history_.train[-1]
    added = peak_memory_mb() - before
    return {"mode": mode, "seconds": seconds, "added_mib": added, "train_loss": loss}


def main() -> None:
    """Measure in fresh processes, write JSON and Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--modes", default="disk,memory")
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
    write_json(
        RESULTS / f"{name}.json",
        {"environment": about, "rows": given.rows, "file_mib": size, "results": results},
    )
    lines = [
        f"# Trees on a Parquet table of {given.rows:,} rows",
        "",
        f"{given.rows:,} × {N_COLUMNS} float32, a file of {size:.0f} MiB; 20 trees of 31 leaves.",
        "",
        "| table | seconds | added memory (MiB) | training loss |",
        "|---|---|---|---|",
        *(
            f"| {r['mode']} | {r['seconds']:.1f} | {r['added_mib']:.0f} | {r['train_loss']!r} |"
            for r in results
        ),
        "",
        environment_markdown(about),
    ]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines), file=sys.stderr)


if __name__ == "__main__":
    main()
