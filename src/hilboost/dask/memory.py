"""Memory of the arrays that every stage allocates again."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_SETTING = "MALLOC_TRIM_THRESHOLD_"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_USUAL_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD = 2**17, 2**25
_KEPT = 2**29  # bytes

_lock = Lock()
_n_users = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep the memory of freed arrays in the process until the last session of a worker ends.

    Dask starts its workers with an environment variable that makes the C library return freed
    memory to the system at once.  The arrays of each stage would then be mapped page by page again,
    which takes as long as computing them.  Without the variable, nothing is changed.
    """
    global _n_users
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _set(_KEPT, _LARGEST_MMAP_THRESHOLD)
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _set(None, _USUAL_MMAP_THRESHOLD)


def _set(kept: int | None, mmap_threshold: int) -> None:
    """Set the thresholds of the C library; ``None`` restores that of the environment."""
    setting = os.environ.get(_SETTING, "")
    if not setting.isdecimal():
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    library.mallopt(_TRIM_THRESHOLD, int(setting) if kept is None else kept)
    library.mallopt(_MMAP_THRESHOLD, mmap_threshold)
    if kept is None:
        library.malloc_trim(0)
