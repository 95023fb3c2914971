"""Columns of a table that repeat what is passed beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import first_few
from hilboost.core.plain_values import as_floats
from hilboost.tables.arrays import fields_of
from hilboost.tables.blocks import as_table
from hilboost.tables.files import column_of
from hilboost.tables.reading import as_array, named_columns
from hilboost.tables.schema import Level, Schema, place

_COMPARED = 50  # rows from the top, and rows with other values than the first, before all rows
_MOST_COLUMNS = 1000
_MOST_PAIRS = 20_000  # of a column and a target
_ROUNDING = 1e-6  # relative, of exposures whose logarithms are offsets
_EVIDENCE = 64 * log(2)  # logarithm of the number of orders of values that may agree by chance


def told_of_copies(
    X: Any, schema: Schema, y: object, groups: PerRow, offset: Floats | None
) -> list[str]:
    """Say that columns are the target, the groups, or the exposure that the offset is of."""
    if as_table(X).is_on_disk or X.shape[1] > _MOST_COLUMNS:
        return []
    told = []
    if copies := _copies_of_targets(X, schema, y):
        one = len(copies) == 1
        columns, are, them = ("column", "is", "it") if one else ("columns", "are", "them")
        told.append(
            f"the {columns} {first_few(copies)} of X {are} the target y, which the model then "
            f"predicts from itself; pass X without {them}."
        )
    if groups is not None:
        for k in _columns_like(X, schema, np.asarray(as_array(groups, "groups")), 0.0):
            told.append(
                f"{place(schema.columns[k].name)} contains the groups of the rows, whose labels "
                "say nothing about other groups; drop the column from X."
            )
    if offset is not None and offset.shape[1] == 1 and np.ptp(offset) > 0:
        with np.errstate(over="ignore"):
            exposures = np.exp(offset[:, 0])
        for k in _columns_like(X, schema, exposures, _ROUNDING):
            told.append(
                f"the offset is the logarithm of {place(schema.columns[k].name)}, which is a "
                "feature, too; drop the column unless this is meant."
            )
    return told


def _copies_of_targets(X: Any, schema: Schema, y: object) -> list[str | int]:
    """Name the columns that have a target's values, and its name or more orders than chance has."""
    targets = _targets(y)
    if len(targets) * X.shape[1] > _MOST_PAIRS:
        return []
    copies = {
        k
        for name, values in targets
        for k in _columns_like(X, schema, values, 0.0)
        if str(name) == str(schema.columns[k].name) or _has_many_orders(column_of(X, k))
    }
    return [schema.columns[k].name for k in sorted(copies)]


def _targets(y: object) -> list[tuple[object, NDArray[Any]]]:
    """Return each target, (n,), and its name if it has one; none of labels that are not numbers."""
    if (fields := fields_of(y)) is not None:
        return list(fields.items())
    try:
        named: list[tuple[object, NDArray[Any]]] = []
        columns = named_columns(y)
        if columns is not None:
            named = [(name, np.asarray(column)) for name, column in columns.items()]
        else:
            values, name = np.asarray(as_array(y)), getattr(y, "name", None)
            named = [(name, column) for column in ([values] if values.ndim == 1 else values.T)]
    except (TypeError, ValueError):  # of an output kernel
        return []
    return [(name, column) for name, column in named if column.ndim == 1 and _are_single(column)]


def _are_single(values: NDArray[Any]) -> bool:
    """Whether they are numbers or texts, and not lists, sets or other structures."""
    kinds = str, Number, np.generic
    return values.dtype != object or all(isinstance(value, kinds) for value in values)


def _has_many_orders(column: Floats) -> bool:
    """Whether the values of a column have too many different orders to agree by chance."""
    counts = np.unique(column, return_counts=True)[1]
    return bool(gammaln(len(column) + 1) - gammaln(counts + 1).sum() > _EVIDENCE)


def _columns_like(X: Any, schema: Schema, values: NDArray[Any], rounding: float) -> Iterator[int]:
    """Find columns that have these values (n,), which are compared on few rows first."""
    if values.shape != (len(X),):
        return
    levels, numbers = dict(schema.levels), as_floats(values)
    others = np.flatnonzero(values[: 2 * _COMPARED] != values[0])
    if len(others) < _COMPARED:
        others = np.flatnonzero(values != values[0])
    rows = np.union1d(np.arange(len(X))[:_COMPARED], others[:_COMPARED])
    few = X[rows]
    for k in range(X.shape[1]):
        given = values if k in levels else numbers
        if given is not None and all(
            _equals(column_of(part, k), own, levels.get(k), rounding)
            for part, own in ((few, given[rows]), (X, given))
        ):
            yield k


def _equals(
    column: Floats, values: NDArray[Any], levels: Sequence[Level] | None, rounding: float
) -> bool:
    """Whether a column of numbers, or of the codes of levels, has these values."""
    if levels is None:
        with np.errstate(over="ignore"):
            values = values.astype(column.dtype)
        return np.allclose(column, values, rounding, 0, equal_nan=True)
    if not (column >= 0).all():
        return False
    return np.array_equal(np.array(levels, dtype=object)[column.astype(np.intp)], values)
