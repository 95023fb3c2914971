"""Columns of a table that repeat what is passed beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats, PerRow
from hilboost.tables import FileTable, Level, Schema, as_array, column_of, place

_COMPARED = 100  # rows, before all of them
_MOST_COLUMNS = 1000
_ROUNDING = 1e-6  # relative, of exposures whose logarithms are offsets


def told_of_copies(X: Any, schema: Schema, groups: PerRow, offset: Floats | None) -> list[str]:
    """Say that a column is the group of the rows, or the exposure whose logarithm is the offset."""
    if isinstance(X, FileTable) or X.shape[1] > _MOST_COLUMNS:
        return []
    told = []
    if groups is not None:
        for name in _columns_like(X, schema, np.asarray(as_array(groups, "groups")), 0.0):
            told.append(
                f"{name} contains the groups of the rows, whose labels say nothing about other "
                "groups; drop the column from X."
            )
    if offset is not None and offset.shape[1] == 1 and np.ptp(offset) > 0:
        with np.errstate(over="ignore"):
            exposures = np.exp(offset[:, 0])
        for name in _columns_like(X, schema, exposures, _ROUNDING):
            told.append(
                f"the offset is the logarithm of {name}, which is a feature, too; drop the column "
                "unless this is meant."
            )
    return told


def _columns_like(X: Any, schema: Schema, values: NDArray[Any], rounding: float) -> Iterator[str]:
    """Find columns that have these values (n,), which are compared on few rows first."""
    levels, few = dict(schema.levels), X[:_COMPARED]
    if values.shape != (len(X),):
        return
    for k in range(X.shape[1]):
        if all(
            _equals(column_of(part, k), values[: len(part)], levels.get(k), rounding)
            for part in (few, X)
        ):
            yield place(schema.columns[k].name)


def _equals(
    column: Floats, values: NDArray[Any], levels: Sequence[Level] | None, rounding: float
) -> bool:
    """Whether a column of numbers, or of the codes of levels, has these values."""
    if levels is None:
        return values.dtype.kind in "iuf" and np.allclose(column, values, rounding, 0)
    if not (column >= 0).all():
        return False
    return np.array_equal(np.array(levels, dtype=object)[column.astype(np.intp)], values)
