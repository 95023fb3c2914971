"""Validation of the labels of an output space, done once and row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, shown
from hilboost.tables import without_frame, without_mask

_NO_NUMBERS = (str, bytes, complex, np.datetime64, np.timedelta64)


def as_rows(labels: Any, what: str = "Y", width: int | None = None) -> Floats:
    """Validate labels that are rows of numbers, (n, c) float64; (n,) becomes one column."""
    table = without_mask(without_frame(labels))
    if isinstance(table, np.ndarray) and table.dtype.kind == "c":
        raise InvalidData(f"Complex data not supported: {what} must contain real numbers.")
    try:
        rows = as_numbers(table)
    except (TypeError, ValueError):
        raise InvalidData(f"{what} must contain rows of numbers{_first_odd_row(table)}.") from None
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim < 2 or len(rows) == 0 or rows[0].size == 0:
        raise InvalidData(
            f"{what} must contain one row of numbers per sample; got shape {rows.shape}."
        )
    rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidData(
            f"{what} contains NaN or infinity in row {row}; outputs must be finite numbers. Remove "
            "or impute such rows."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"{what} has {rows.shape[1]} numbers per row; the model was fitted with {width}."
        )
    return rows


def as_numbers(values: Any) -> Floats:
    """Convert values to a float64 array."""
    found = np.asarray(values)
    if found.dtype.kind in "cUSMmV":
        raise TypeError(f"values of dtype {found.dtype} are not real numbers")
    if found.dtype.kind == "O" and any(isinstance(value, _NO_NUMBERS) for value in found.flat):
        raise TypeError("text and dates are not numbers")
    return np.asarray(found, dtype=np.float64)


def _first_odd_row(table: Any) -> str:
    """Describe the first row that is not numeric or has a different length."""
    length = None
    for i, row in enumerate(table):
        try:
            size = as_numbers(row).size
        except (TypeError, ValueError):
            return f"; row {i} is {shown(row)}"
        length = size if length is None else length
        if size != length:
            return f"; row {i} has length {size} and row 0 has length {length}"
    return ""
