"""Conversion of columns to a matrix with category codes, in fit and for later tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.plain_values import is_boolean, is_integer
from hilboost.tables.blocks import DenseTable
from hilboost.tables.columns import Labels, Numbers, ReadColumn, kind_of, read_objects
from hilboost.tables.number_text import is_numeric
from hilboost.tables.reading import Table
from hilboost.tables.schema import Column, Level, Schema, place
from hilboost.tables.text_columns import TextColumn, warn_of_texts

UNSEEN = -1.0
_BLOCK_ROWS = 1024


def learn(
    table: Table,
    chosen: Sequence[int] | None,
    in_blocks: bool = False,
    text: bool = True,
    note_texts: Callable[[Mapping[object, TextColumn]], None] = warn_of_texts,
) -> tuple[Floats | DenseTable, Schema]:
    """Convert a training table to a matrix, or to a table that is read in blocks, and its schema.

    Category columns contain the index of the level in ascending order, and NaN for missing values:
    the ``chosen`` ones and those with ``text``, or if ``chosen`` is ``None``, every column of text
    or of a categorical dtype.
    ``in_blocks`` leaves the columns where they are if all of them are numbers, and ``note_texts``
    takes the columns of text by their names.
    """
    encoded: list[NDArray[Any]] = []
    found: list[tuple[int, tuple[Level, ...]]] = []
    texts: dict[object, TextColumn] = {}
    for k, read in enumerate(table.columns):
        name = table.name(k)
        named = chosen is not None and k in chosen
        by_dtype = read.is_category if chosen is None else text and _is_text(read, name)
        if named or by_dtype:
            labels = read.as_labels()
            levels = _levels(labels, name)
            column = Column(name, "category", levels)
            if column.holds_text:
                texts[name] = TextColumn.of(labels, named)
            encoded.append(_codes(labels, column))
            found.append((k, levels))
        else:
            encoded.append(_as_numbers(read, name).values)
    note_texts(texts)
    names = None if table.names is None else tuple(table.names)
    schema = Schema(len(table.columns), names, tuple(found))
    if in_blocks and encoded and not found:
        return DenseTable(encoded), schema
    return _side_by_side(encoded, table.n_rows), schema


def encode(table: Table, columns: Sequence[Column]) -> Floats:
    """Convert a table with the columns of the training table to a matrix (n, d).

    Levels not seen in fit are -1, missing values NaN; float32 if all columns are float32.
    """
    encoded: list[NDArray[Any]] = []
    for k, (read, column) in enumerate(zip(table.columns, columns, strict=True)):
        if column.kind == "category":
            labels = read.as_labels()
            _check_kind(labels, column)
            encoded.append(_codes(labels, column))
        else:
            encoded.append(_as_numbers(read, table.name(k), in_fit=False).values)
    return _side_by_side(encoded, table.n_rows)


def learn_array(X: Floats, chosen: Sequence[int]) -> tuple[Floats, Schema]:
    """:func:`learn` for a numeric array (n, d), which is copied if it has category columns."""
    found: list[tuple[int, tuple[Level, ...]]] = []
    X = X.copy() if len(chosen) else X
    for k in chosen:
        labels = _numbers_of(X[:, k]).as_labels()
        levels = _levels(labels, k)
        X[:, k] = _codes(labels, Column(k, "category", levels))
        found.append((k, levels))
    return X, Schema(X.shape[1], None, tuple(found))


def encode_array(X: Floats, schema: Schema) -> Floats:
    """:func:`encode` for a numeric array (n, d), which is copied if it has category columns."""
    X = X.copy() if schema.categories else X
    for k in schema.categories:
        labels = _numbers_of(X[:, k]).as_labels()
        _check_kind(labels, schema.columns[k])
        X[:, k] = _codes(labels, schema.columns[k])
    return X


def _numbers_of(values: NDArray[Any]) -> Numbers:
    """Treat a column of integral floats as integers: an array has one dtype for all columns."""
    present = values[~np.isnan(values)]
    whole = bool((present == np.round(present)).all() and (np.abs(present) < 2**53).all())
    return Numbers(values.astype(np.float64), "i" if whole else "f")


def _is_text(read: ReadColumn, name: object) -> bool:
    """Whether a column holds text, maybe with a categorical dtype."""
    if not read.is_category:
        return False
    labels = read.as_labels()
    return _read_used(labels, labels.used(), name).as_numbers() is None


def _as_numbers(read: ReadColumn, name: object, in_fit: bool = True) -> Numbers:
    """Return numbers unchanged, and numeric categories as their values."""
    numbers = read.as_numbers()
    if numbers is not None:
        return numbers
    labels = read.as_labels()
    used = labels.used()
    values = _read_used(labels, used, name).as_numbers()
    if values is None:
        first = next((i for i in used if not is_numeric(str(labels.distinct[i]))), used[0])
        row, text = labels.row_of(first), labels.distinct[first]
        if not in_fit:
            raise InvalidData(
                f"{place(name)} contained numbers (or no values) in fit but contains text now "
                f"({text!r} in row {row}); convert it to numbers, or fit again with the column as "
                "text."
            )
        raise InvalidData(
            f"{place(name)} contains text ({text!r} in row {row}), but categorical_features=None; "
            "set categorical_features='from_dtype', or drop the column."
        )
    known = np.full(len(labels.distinct) + 1, np.nan)
    known[used] = values.values
    return Numbers(known[labels.codes], values.kind)


def _read_used(labels: Labels, used: NDArray[np.int64], name: object) -> ReadColumn:
    """Read the values that occur, by their indices."""
    values = [labels.distinct[i] for i in used]
    return read_objects(values, name, lambda place: labels.row_of(used[place]))


def _levels(labels: Labels, name: object) -> tuple[Level, ...]:
    """Levels that occur, ascending."""
    used = labels.used()
    numbers = _read_used(labels, used, name).as_numbers()
    if numbers is not None and not np.isfinite(numbers.values).all():
        raise InvalidData(
            f"Input X contains infinity or a value too large in {place(name)}. Replace it by a "
            "finite number, or by NaN if the value is missing."
        )
    return tuple(sorted({_plain(labels.distinct[i]) for i in used}))


def _plain(value: Any) -> Level:
    """Convert text or a number to the built-in Python type, also from a subclass of it."""
    if isinstance(value, str):
        return str.__str__(value)
    if is_boolean(value):
        return bool(value)
    return int(value) if is_integer(value) else float(value) + 0.0  # one zero


def _codes(labels: Labels, column: Column) -> Floats:
    """Level indices, -1 for other levels, NaN for missing; O(n + n_distinct)."""
    # The code -1 of missing values selects the last entry.
    places = np.full(len(labels.distinct) + 1, np.nan)
    used, codes = labels.used(), column.codes
    places[used] = [codes.get(_plain(labels.distinct[i]), UNSEEN) for i in used.tolist()]
    return places[labels.codes]


def _check_kind(labels: Labels, column: Column) -> None:
    """Check that a column has the kind it had in fit; a column without values may be either."""
    used = labels.used()
    if not column.levels or not len(used):
        return
    kinds = {kind: kind_of(kind) for kind in {type(labels.distinct[i]) for i in used.tolist()}}
    wanted, other = ("text", "numbers") if column.holds_text else ("number", "text")
    if set(kinds.values()) == {wanted}:
        return
    first = next(i for i in used if kinds[type(labels.distinct[i])] != wanted)
    row = labels.row_of(first)
    held = "text" if column.holds_text else "numbers"
    raise InvalidData(
        f"{place(column.name)} contained {held} in fit but contains {other} now "
        f"({labels.distinct[first]!r} in row {row}); convert it to {held}."
    )


def _side_by_side(columns: list[NDArray[Any]], n: int) -> Floats:
    """Stack columns into a C-ordered matrix, in blocks of rows that fit into the cache."""
    single = bool(columns) and all(column.dtype == np.float32 for column in columns)
    matrix = np.empty((n, len(columns)), dtype=np.float32 if single else np.float64)
    for begin in range(0, n, _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        for k, column in enumerate(columns):
            matrix[rows, k] = column[rows]
    return matrix
