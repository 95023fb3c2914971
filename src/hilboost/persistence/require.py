"""Validation of the contents of model files."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

Arrays = dict[str, np.ndarray]
Kind = TypeVar("Kind")
DAMAGE = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors that building a model from a damaged file may raise."""


def require(condition: bool, what: str) -> None:
    """Raise an error if a condition does not hold."""
    if not condition:
        raise ValueError(f"{what} is inconsistent")


def require_kind(value: object, kind: type[Kind], what: str) -> Kind:
    """Return a value after checking its type."""
    require(isinstance(value, kind), what)
    return value  # type: ignore[return-value]


def require_list(values: object, kinds: tuple[type, ...], what: str) -> list[Any]:
    """Return a list after checking the types of its items."""
    items = require_kind(values, list, what)
    require(all(type(item) in kinds for item in items), what)
    return items


def require_array(arrays: Arrays, name: str, dtype: object, n_axes: int = 1) -> np.ndarray:
    """Return an array after checking its dtype and number of axes."""
    array = arrays[name]
    require(array.dtype == dtype and array.ndim == n_axes, name)
    return array


def require_finite(arrays: Arrays, name: str, n_axes: int = 1) -> np.ndarray:
    """Return a float64 array after checking that it is finite."""
    array = require_array(arrays, name, np.float64, n_axes)
    require(bool(np.isfinite(array).all()), name)
    return array


def require_below(arrays: Arrays, name: str, bound: int, length: int) -> list[int]:
    """Return ``length`` integers after checking that they are from 0 to ``bound - 1``."""
    array = require_array(arrays, name, np.int64)
    require(len(array) == length and bool(((array >= 0) & (array < bound)).all()), name)
    return [int(value) for value in array.tolist()]


def positive(value: Any, name: str) -> float:
    """Return a number after checking that it is positive."""
    number = float(value)
    require(0 < number < np.inf, name)
    return number
