"""What a new process pays: the first fit with nothing compiled, the next ones, and the import.

Run ``python benchmarks/cold_start.py``.  Each figure is the median of fresh processes; the cold
ones start with an empty folder of compiled code.  Modules are compiled to bytecode, as those of an
installation are.  The first figure is the time from the start of the process until the last line
of the code is done, the second one also contains the end of the process, in which Python frees all
objects.  pandas is not among the packages that hilboost requires, but scikit-learn imports it where
it is installed: "without pandas" hides it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from _common import RESULTS, environment, environment_markdown, markdown_table, median, publish

FIT = """
import numpy as np
from hilboost import BoostingRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 10))
BoostingRegressor(n_estimators=50, early_stopping=False).fit(X, -X[:, 0])
"""
HIDE_PANDAS = "import sys; sys.modules['pandas'] = None"
SKLEARN = "import sklearn.base"
PROCESSES = {
    "first fit, nothing compiled": (FIT, True, 3),
    "first fit, nothing compiled, without pandas": (HIDE_PANDAS + FIT, True, 3),
    "import and a small fit, compiled code on the disk": (FIT, False, 5),
    "the same without pandas": (HIDE_PANDAS + FIT, False, 5),
    "import scikit-learn": (SKLEARN, False, 9),
    "import scikit-learn, without pandas": (f"{HIDE_PANDAS}; {SKLEARN}", False, 9),
    "import hilboost": ("import hilboost", False, 9),
    "import numpy": ("import numpy", False, 9),
}


def seconds(code: str, cache: str) -> tuple[float, float]:
    """Wall seconds of one process until its code is done, and until its end."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["NUMBA_CACHE_DIR"] = cache
    code = f"{code}\nimport time; print(time.monotonic())"
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, env=env, stdout=subprocess.PIPE, text=True
    )
    return float(done.stdout) - start, time.monotonic() - start


def main() -> None:
    """Measure, write JSON and Markdown, print the table."""
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as warm:
        seconds(FIT, warm)
        for name, (code, cold, repeats) in PROCESSES.items():
            times = []
            for _ in range(repeats):
                with tempfile.TemporaryDirectory() as empty:
                    times.append(seconds(code, empty if cold else warm))
            done, ended = (median(column) for column in zip(*times, strict=True))
            records.append({"what": name, "seconds": times, "median": done, "with_exit": ended})
    facts = environment(2)
    rows = [[r["what"], f"{r['median']:.2f}", f"{r['with_exit']:.2f}"] for r in records]
    page = (
        f"# Cold start\n\n{environment_markdown(facts)}\n\n"
        "Wall seconds from the start of a process until its code is done, and until its end; "
        f"medians.\n\n{markdown_table(['process', 'done', 'ended'], rows)}"
    )
    publish(RESULTS / "cold_start.json", {"environment": facts, "records": records}, page)


if __name__ == "__main__":
    main()
