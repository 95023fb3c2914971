"""Memory budgets: what a fit may use, and what the computer has free."""

from __future__ import annotations

import numpy as np

from hilboost.core.errors import InvalidParameter

MEMORY_BUDGET = 8e9  # bytes: the triangle of 60,000 rows' Gram matrix, and what goes beside it


def memory_budget(given: float | str) -> float:
    """Bytes; "auto" is the same number on any computer, since the model may depend on it."""
    return MEMORY_BUDGET if isinstance(given, str) else float(given)


def free_memory() -> float:
    """Bytes that are free now; no model depends on it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return np.inf


def require_free(needed: float, what: str) -> None:
    """Refuse what does not fit into the free memory."""
    free = free_memory()
    if needed > free:
        raise InvalidParameter(
            f"{what} requires {needed / 2**20:.0f} MiB, but only {free / 2**20:.0f} MiB of memory "
            "are free; set stages='sparse', or fit fewer rows."
        )
