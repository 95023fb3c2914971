"""Kinds of values: names, numbers, lists, classes, those that JSON stores, and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeGuard

import numpy as np

from hilboost.core.dtypes import NO_NUMBER, Floats

PLAIN = (str, int, float, bool, type(None))


def is_name(value: object, name: str) -> bool:
    """Return whether a parameter is this name; it may also be an array or another object."""
    return isinstance(value, str) and value == name


def is_one_of(value: object, names: Iterable[str]) -> bool:
    """Return whether a parameter is one of these names; it may also be another object."""
    return any(is_name(value, name) for name in names)


def is_auto(value: object) -> bool:
    """Whether the library chooses the value of a parameter."""
    return is_name(value, "auto")


def all_text(values: Iterable[object]) -> bool:
    """Return whether all values are strings."""
    return all(isinstance(value, str) for value in values)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number; booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_boolean(value: object) -> bool:
    """Return whether a value is a boolean of Python or NumPy."""
    return isinstance(value, bool | np.bool_)


def is_path(value: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether a value is the path of a file or a folder."""
    return isinstance(value, str | PathLike)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number by its type; booleans and durations are not."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def real(value: object) -> float:
    """Return a real number or a boolean as a float, infinite if too large; NaN for other values."""
    if not isinstance(value, Real):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("-inf") if value < 0 else float("inf")


def as_floats(values: object) -> Floats | None:
    """Convert to a float64 array; ``None`` unless all values are numbers in its range."""
    try:
        return np.asarray(values, dtype=np.float64)
    except NO_NUMBER:
        return None


def positive_numbers(values: object) -> Floats | None:
    """Convert values to a float64 array; ``None`` unless all are positive and finite."""
    found = as_floats(values)
    return found if found is not None and (np.isfinite(found) & (found > 0)).all() else None


def as_list(value: object) -> list[Any]:
    """Return the entries of a list or tuple; any other value is a list of one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def entries(value: object) -> list[Any]:
    """Return the entries of any iterable; text, or any other value, is a list of one."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def is_pair(value: object) -> TypeGuard[tuple[Any, Any] | list[Any]]:
    """Return whether a value is a list or tuple of two entries."""
    return isinstance(value, list | tuple) and len(value) == 2


def is_array_or_list(value: object) -> bool:
    """Return whether a value is an array of NumPy, a list or a tuple."""
    return isinstance(value, np.ndarray | list | tuple)


def is_class(value: object, base: type | tuple[type, ...]) -> TypeGuard[type[Any]]:
    """Return whether a value is a class derived from ``base``, and not an object."""
    return isinstance(value, type) and issubclass(value, base)


def as_python(value: Any) -> Any:
    """Convert a scalar of NumPy to one of Python; other values are unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def is_plain(value: object) -> bool:
    """Return whether JSON stores the value as it is."""
    return isinstance(value, PLAIN)


def are_finite(arrays: Iterable[tuple[Any, tuple[int, ...]]], dtype: Any = np.float64) -> bool:
    """Whether arrays are finite arrays of the dtype and the given shapes."""
    return all(
        isinstance(array, np.ndarray)
        and array.dtype == dtype
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
        and are_finite([(entry[1], (*np.shape(entry[1])[:1], *shape))])
        and entry[1].ndim == 1 + len(shape)
        for entry in levels
    )
