"""Values of files: those that JSON stores as they are, and checks of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

PLAIN = (str, int, float, bool, type(None))


def as_python(value: Any) -> Any:
    """Convert a scalar of NumPy to one of Python; other values are unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def is_plain(value: object) -> bool:
    """Return whether JSON stores the value as it is."""
    return isinstance(value, PLAIN)


def are_finite(arrays: Iterable[tuple[Any, tuple[int, ...]]]) -> bool:
    """Whether arrays are finite float64 arrays of the given shapes."""
    return all(
        isinstance(array, np.ndarray)
        and array.dtype == np.float64
        and array.shape == shape
        and bool(np.isfinite(array).all())
        for array, shape in arrays
    )


def are_tables(levels: object, n_columns: int, shape: tuple[int, ...]) -> bool:
    """Whether these are pairs of a column and a finite table with rows of a shape."""
    return isinstance(levels, tuple) and all(
        isinstance(entry, tuple)
        and len(entry) == 2
        and type(entry[0]) is int
        and 0 <= entry[0] < n_columns
        and isinstance(entry[1], np.ndarray)
        and entry[1].ndim == 1 + len(shape)
        and are_finite([(entry[1], (len(entry[1]), *shape))])
        for entry in levels
    )
