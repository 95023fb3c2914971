"""Doubt at the door of a network: matrices of links, similarities and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.tables import check_sparse, without_mask


def as_array(table: Any, what: str) -> Any:
    """An array of any type; tables and sparse matrices become dense.

    Raises
    ------
    InvalidData
        Rows of unequal lengths.
    """
    if scipy.sparse.issparse(table):
        check_sparse(table, what)
        return table.toarray()
    try:
        return np.asarray(without_mask(table))
    except ValueError:
        raise InvalidData(
            f"{what} must have rows of one length{_first_uneven_row(table)}."
        ) from None


def as_matrix(table: Any, what: str) -> Floats:
    """Rows of numbers, (m, n) float64; NaN and infinity are left to the caller.

    Raises
    ------
    InvalidData
        Rows of unequal lengths, other things than numbers, another number of dimensions.
    """
    found = as_array(table, what)
    if found.ndim != 2:
        raise InvalidData(f"{what} must be a matrix, rows by columns; got shape {found.shape}.")
    if found.dtype.kind in "biuf":
        return np.asarray(found, dtype=np.float64)
    matrix = np.empty(found.shape)
    # No imaginary part is lost, and no date becomes a number.
    casting: Any = "safe" if found.dtype.kind in "cmM" else "unsafe"
    for i, row in enumerate(found):
        try:
            matrix[i] = row.astype(np.float64, casting=casting)
        except (TypeError, ValueError):
            odd = next((e for e in row.tolist() if not _is_number(e)), row.tolist())
            raise InvalidData(f"{what} must hold numbers; row {i} has {odd!r:.60}.") from None
    return matrix


def refuse_unfinished(matrix: Floats, what: str) -> None:
    """Every entry is a finite number.

    Raises
    ------
    InvalidData
        With the first row that has another one.
    """
    _refuse_rows(~np.isfinite(matrix), f"{what} has a missing or infinite entry")


def refuse_negative(matrix: Floats, what: str) -> None:
    """Every entry is a finite number and not negative.

    Raises
    ------
    InvalidData
        With the first row that has another one.
    """
    bad = ~(np.isfinite(matrix) & (matrix >= 0))
    _refuse_rows(bad, f"{what} has a negative, missing or infinite entry")


def first_uneven_pair(matrix: Floats, tolerance: float) -> tuple[int, int] | None:
    """The first (i, j) whose entry differs from that of (j, i) by more than ``tolerance``."""
    uneven = np.abs(matrix - matrix.T) > tolerance
    if not uneven.any():
        return None
    i, j = divmod(int(uneven.argmax()), len(matrix))
    return i, j


def _refuse_rows(bad: Any, sentence: str) -> None:
    if bad.any():
        raise InvalidData(f"{sentence} in row {int(np.flatnonzero(bad.any(axis=1))[0])}.")


def _first_uneven_row(table: Any) -> str:
    sizes = [
        1 if isinstance(row, str) or not hasattr(row, "__len__") else len(row) for row in table
    ]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            return f"; row {i} has {size} and row 0 has {sizes[0]}"
    return ""


def _is_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True
