"""Validation of monotonic and interaction constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidParameter, first_few, shown
from hilboost.core.words import counted
from hilboost.tables.schema import meant_columns


def monotonic_directions(given: Any, d: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Convert directions, or a dict of them, to one for each column; empty if no column has one."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        given = _by_column(given, d, names)
    try:
        directions = np.asarray(given)
    except ValueError:  # ragged nested lists
        directions = np.empty(())
    if directions.ndim == 0:
        raise InvalidParameter(
            f"monotonic_cst is {shown(given)}; it must be a sequence with one number per column, "
            "or a dict from column name to number."
        )
    if directions.shape != (d,):
        raise InvalidParameter(
            f"monotonic_cst has shape {directions.shape}, but X has {counted(d, 'column')}; pass "
            "one number per column, or a dict from column name to number."
        )
    if directions.dtype.kind not in "biuf":  # text among numbers makes all of them text
        directions = np.array(list(given), dtype=object)
    known = np.array([direction in (-1, 0, 1) for direction in directions.tolist()], dtype=bool)
    if not known.all():
        column = int(np.flatnonzero(~known)[0])
        where = column if names is None else repr(str(names[column]))
        raise InvalidParameter(
            f"monotonic_cst has {directions.tolist()[column]!r} for column {where}; it must be "
            "1 (increasing), -1 (decreasing) or 0."
        )
    return tuple(int(x) for x in directions) if directions.any() else ()


def _by_column(given: Mapping[Any, Any], d: int, names: Sequence[str] | None) -> list[Any]:
    known: list[Any] = list(range(d) if names is None else names)
    unknown = [name for name in given if name not in known]
    if unknown:
        if names is None:
            remedy = (
                f"X has no column names; pass X as a DataFrame, or use indices from 0 to {d - 1}"
            )
        else:
            remedy = meant_columns(unknown[0], names)
        raise InvalidParameter(
            f"monotonic_cst contains columns that X does not have: {first_few(unknown)}; {remedy}."
        )
    return [given.get(name, 0) for name in known]


def interaction_groups(
    given: Any, d: int, names: Sequence[str] | None
) -> tuple[tuple[int, ...], ...]:
    """Convert to groups of columns that may interact on a path; empty if all columns may.

    Columns that are not in any group form an additional group.
    """
    if given is None:
        return ()
    if isinstance(given, str):
        size = 2 if given == "pairwise" else 1
        groups = list(combinations(range(d), min(size, d)))
    else:
        groups = [_group(group, number, d, names) for number, group in enumerate(given)]
        rest = sorted(set(range(d)).difference(*groups))
        groups += [tuple(rest)] if rest else []
    return () if any(len(group) == d for group in groups) else tuple(groups)


def _group(given: object, number: int, d: int, names: Sequence[str] | None) -> tuple[int, ...]:
    columns = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if columns is None or not all(isinstance(column, Integral | str) for column in columns):
        example = "{0, 1}" if names is None else f"{{{', '.join(map(repr, names[:2]))}}}"
        raise InvalidParameter(
            f"interaction_cst has {shown(given)} at position {number}; each entry must be a "
            f"collection of column indices or names, such as [{example}]."
        )
    columns = [_position(column, number, names) for column in columns]
    outside = [column for column in columns if not 0 <= column < d]
    if outside:
        raise InvalidParameter(
            f"interaction_cst has column {outside[0]} at position {number}, but X has "
            f"{counted(d, 'column')}; use indices from 0 to {d - 1}."
        )
    return tuple(sorted({int(column) for column in columns}))


def _position(column: int | str, number: int, names: Sequence[str] | None) -> int:
    """Index of a column that is given by its index or its name."""
    if not isinstance(column, str):
        return int(column)
    if names is None:
        raise InvalidParameter(
            "interaction_cst contains column names, but X has none; pass X as a data frame, or "
            "use indices of columns."
        )
    if column not in names:
        raise InvalidParameter(
            f"interaction_cst has column {column!r} at position {number}, which X does not have; "
            f"{meant_columns(column, names)}."
        )
    return list(names).index(column)


def plain_constraint(given: Any) -> Any:
    """Convert a constraint to lists, dicts, strings and integers, for model files."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return {str(name): int(direction) for name, direction in given.items()}
    return [_plain_group(entry) if isinstance(entry, Iterable) else int(entry) for entry in given]


def _plain_group(columns: Iterable[Any]) -> list[int | str]:
    """Columns by index, then columns by name."""
    by_name = sorted(column for column in columns if isinstance(column, str))
    return [*sorted(int(column) for column in columns if not isinstance(column, str)), *by_name]
