"""Trees on a Parquet table that is four times larger than the memory that the process may have.

Run ``python benchmarks/stream_limited.py``.  The address space is limited (``RLIMIT_AS``), which
counts the program itself and the mapped bins too.  Arrow takes its memory from the C library,
because its own reserves a gigabyte of addresses; the C library has two
arenas, because each of them reserves some.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _common import Record, peer_trees, run_fresh, study

ROWS, N_COLUMNS, GROUP, LIMIT = 3_230_000, 500, 10_000, 3 * 2**30
N_TREES = 5


def write_table(path: Path, n: int) -> None:
    """Write groups of rows: float64 with a thousand values, which compresses well on disk."""
    names = [f"x{k}" for k in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    values = np.linspace(-2, 2, 1000)
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for part in range(n // GROUP):
            rng = np.random.default_rng(part)
            X = values[rng.integers(1000, size=(N_COLUMNS, GROUP))]
            y = X[0] * X[1] + X[2] + rng.normal(size=GROUP)
            writer.write_table(pa.Table.from_arrays([*X, y], schema=schema))


def fit_here(path: Path) -> Record:
    """Fit in this process, whose address space is limited."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    import hilboost.stream

    small = pa.table({"x": np.arange(100.0), "y": np.arange(100.0)})
    hilboost.stream.fit(peer_trees(N_TREES, n_jobs=1), small, target="y")
    began = time.perf_counter()
    fitted = hilboost.stream.fit(
        peer_trees(N_TREES, n_jobs=1), path, target="y", folder=path.parent
    )
    seconds = time.perf_counter() - began
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmPeak")) / 1024
    losses = fitted.history_.train
    return {
        "seconds": seconds,
        "peak_mib": peak,
        "loss_at_start": float(losses[0]),
        "loss_at_end": float(losses[-1]),
    }


def measure(rows: int) -> Record:
    """Fit in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path, rows)
        os.environ |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        found = run_fresh(__file__, ["--here", str(path)])
        if "error" in found:
            raise MemoryError(found["error"])
        return {"file_gib": path.stat().st_size / 2**30, **found}


def measure_few(rows: int) -> Record:
    return measure(2 * GROUP)


def page(records: list[Record], facts: str) -> str:
    found = records[-1]
    size = 8 * found["rows"] * (N_COLUMNS + 1) / 2**30
    return (
        "# Trees on a table four times larger than the allowed memory\n\n"
        f"{found['rows']:,} × {N_COLUMNS} float64 are {size:.1f} GiB in memory, and "
        f"{found['file_gib']:.1f} GiB in a Parquet file, because columns have 1,000 different "
        f"values. The address space of the process is limited to {LIMIT / 2**30:.0f} GiB "
        f"(`RLIMIT_AS`), of which it uses {found['peak_mib'] / 1024:.2f} GiB. {N_TREES} trees take "
        f"{found['seconds']:.0f} s and decrease the training loss from "
        f"{found['loss_at_start']:.4f} to {found['loss_at_end']:.4f}.\n\n{facts}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(fit_here(Path(sys.argv[2]))))
    else:
        study("stream_limited", [{"rows": ROWS}], measure, page, about=__doc__, quick=measure_few)
