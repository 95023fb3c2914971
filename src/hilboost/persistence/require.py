"""Validation of the contents of model files."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


def require(condition: bool, what: str) -> None:
    """Refuse what cannot be.

    Raises
    ------
    ValueError
    """
    if not condition:
        raise ValueError(f"{what} is inconsistent")


def require_array(arrays: Arrays, name: str, dtype: Any, n_axes: int = 1) -> np.ndarray:
    """An array of this dtype with so many axes.

    Raises
    ------
    KeyError, ValueError
    """
    array = arrays[name]
    require(array.dtype == dtype and array.ndim == n_axes, name)
    return array


def require_finite(arrays: Arrays, name: str, n_axes: int = 1) -> np.ndarray:
    """A float64 array of finite numbers.

    Raises
    ------
    KeyError, ValueError
    """
    array = require_array(arrays, name, np.float64, n_axes)
    require(bool(np.isfinite(array).all()), name)
    return array


def require_below(arrays: Arrays, name: str, bound: int, length: int) -> list[int]:
    """Whole numbers from 0 to ``bound - 1``, so many of them.

    Raises
    ------
    KeyError, ValueError
    """
    array = require_array(arrays, name, np.int64)
    require(len(array) == length and bool(((array >= 0) & (array < bound)).all()), name)
    return [int(value) for value in array.tolist()]


def positive(value: Any, name: str) -> float:
    """A number above zero."""
    number = float(value)
    require(0 < number < np.inf, name)
    return number
