"""Input validation for networks: matrices of links, similarities, and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from hilboost.core.dtypes import NO_NUMBER, Floats
from hilboost.core.errors import InvalidData, first_true
from hilboost.core.plain_values import entries
from hilboost.tables.arrays import without_mask
from hilboost.tables.number_text import is_numeric
from hilboost.tables.sparse import check_sparse


def as_array(table: Any, what: str) -> Any:
    """Convert to an array of any dtype; tables and sparse matrices become dense."""
    if scipy.sparse.issparse(table):
        check_sparse(table, what)
        return table.toarray()
    try:
        return np.asarray(without_mask(table))
    except ValueError:
        raise InvalidData(
            f"{what} must have rows of equal length{_first_uneven_row(table)}."
        ) from None


def without_sparse(table: object, what: str) -> Any:
    """Convert a sparse matrix to a dense array; return other tables unchanged."""
    return as_matrix(table, what) if scipy.sparse.issparse(table) else table


def as_matrix(table: object, what: str) -> Floats:
    """Convert to a matrix (m, n) float64; the caller checks for NaN and infinity."""
    found = as_array(table, what)
    if found.ndim != 2:
        raise InvalidData(f"{what} must be a matrix (m, n); got shape {found.shape}.")
    if found.dtype.kind in "biuf":
        return np.asarray(found, dtype=np.float64)
    matrix = np.empty(found.shape)
    # Safe casting neither drops imaginary parts nor converts dates to numbers.
    casting: Any = "safe" if found.dtype.kind in "cmM" else "unsafe"
    for i, row in enumerate(found):
        try:
            matrix[i] = row.astype(np.float64, casting=casting)
        except NO_NUMBER:
            odd = next((e for e in row.tolist() if not is_numeric(e)), row.tolist())
            raise InvalidData(f"{what} must contain numbers; row {i} has {odd!r:.60}.") from None
    return matrix


def refuse_unfinished(matrix: Floats, what: str) -> None:
    """Reject missing and infinite entries."""
    _refuse_rows(~np.isfinite(matrix), f"{what} has a missing or infinite entry")


def refuse_negative(matrix: Floats, what: str) -> None:
    """Reject negative, missing, and infinite entries."""
    bad = ~(np.isfinite(matrix) & (matrix >= 0))
    _refuse_rows(bad, f"{what} has a negative, missing or infinite entry")


def first_uneven_pair(matrix: Floats, tolerance: float) -> tuple[int, int] | None:
    """Return the first (i, j) whose entry differs from (j, i) by more than ``tolerance``."""
    uneven = np.abs(matrix - matrix.T) > tolerance
    return divmod(int(uneven.argmax()), len(matrix)) if uneven.any() else None


def _refuse_rows(bad: Any, sentence: str) -> None:
    if (row := first_true(bad.any(axis=1))) is not None:
        raise InvalidData(f"{sentence} in row {row}.")


def _first_uneven_row(table: Any) -> str:
    sizes = [len(entries(row)) for row in table]
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            return f"; row {i} has {size} and row 0 has {sizes[0]}"
    return ""
