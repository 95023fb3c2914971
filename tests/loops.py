"""One compiled loop in a module that is loaded as by new processes, and its files."""

import importlib.util
import os
import subprocess
import sys

import numpy as np

LOOPS = """
from hilboost.backends.compiled import compiled

@compiled
def total(values):
    found = values[0]
    for i in range(1, len(values)):
        found += values[i]
    return found
"""
DTYPES = (np.float64, np.float32)


def fresh(folder):
    """The module as a new process has it."""
    spec = importlib.util.spec_from_file_location("loops", folder / "loops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(total):
    """Call it with both dtypes; how many were on disk."""
    for dtype in DTYPES:
        values = np.array([1.0, 2.5, 3.25], dtype=dtype)
        assert total(values) == total.py_func(values)
    return sum(total.stats.cache_hits.values())


def files(folder, pattern="*.code"):
    """What is on disk."""
    return sorted((folder / "cache").rglob(pattern))


def start(code, *launcher, **environment):
    """Start a process, by a command in front of it if there is one."""
    return subprocess.Popen(
        [*launcher, sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def finish(process):
    """Wait for a process; what it printed."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err
