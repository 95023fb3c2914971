"""Trees on a Parquet table that is four times larger than the memory that the process may have.

Run ``python benchmarks/stream_limited.py``.  The address space is limited (``RLIMIT_AS``), which
counts the program itself and the mapped bins too.  Arrow takes its memory from the C library,
because its own reserves a gigabyte of addresses; the C library has two
arenas, because each of them reserves some.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _common import (
    RESULTS,
    environment,
    environment_markdown,
    peer_trees,
    publish,
    run_fresh,
)

ROWS, N_COLUMNS, GROUP, LIMIT = 3_230_000, 500, 10_000, 3 * 2**30
N_TREES = 5


def write_table(path: Path) -> None:
    """Write groups of rows: float64 with a thousand values, which compresses well on disk."""
    names = [f"x{k}" for k in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    values = np.linspace(-2, 2, 1000)
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for part in range(ROWS // GROUP):
            rng = np.random.default_rng(part)
            X = values[rng.integers(1000, size=(N_COLUMNS, GROUP))]
            y = X[0] * X[1] + X[2] + rng.normal(size=GROUP)
            writer.write_table(pa.Table.from_arrays([*X, y], schema=schema))


def measure(path: Path) -> dict[str, Any]:
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


def main() -> None:
    """Measure in a fresh process; write JSON and Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--here")
    given = parser.parse_args()
    if given.here:
        print(json.dumps(measure(Path(given.here))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_table(path)
        on_disk = path.stat().st_size / 2**30
        os.environ |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        found = run_fresh(__file__, ["--here", str(path)])
    if "error" in found:
        raise MemoryError(found["error"])
    about, size = environment(1), 8 * ROWS * (N_COLUMNS + 1) / 2**30
    page = (
        "# Trees on a table four times larger than the allowed memory\n\n"
        f"{ROWS:,} × {N_COLUMNS} float64 are {size:.1f} GiB in memory, and {on_disk:.1f} GiB in a "
        "Parquet file, because columns have 1,000 different values. The address space of the "
        f"process is limited to {LIMIT / 2**30:.0f} GiB (`RLIMIT_AS`), of which it uses "
        f"{found['peak_mib'] / 1024:.2f} GiB. {N_TREES} trees take {found['seconds']:.0f} s and "
        f"decrease the training loss from {found['loss_at_start']:.4f} to "
        f"{found['loss_at_end']:.4f}.\n\n{environment_markdown(about)}"
    )
    content = {"environment": about, "rows": ROWS, "table_gib": size, "file_gib": on_disk, **found}
    publish(RESULTS / "stream_limited.json", content, page)


if __name__ == "__main__":
    main()
