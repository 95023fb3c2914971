"""Validation of monotonic and interaction constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hilboost.core.errors import InvalidParameter, counted, first_few, first_true, shown
from hilboost.core.plain_values import all_text, as_python, is_integer, is_plain
from hilboost.tables.schema import positions


def monotonic_directions(given: Any, d: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Convert directions, or a dict of them, to one for each column; empty if no column has one."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        # Model files hold indices as text.
        others = names or ()
        keys = [int(k) if all_text([k]) and k.isdecimal() and k not in others else k for k in given]
        columns = positions("monotonic_cst", keys, d, names)
        twice = [k for k, column in zip(given, columns, strict=True) if columns.count(column) > 1]
        if twice:
            raise InvalidParameter(
                f"monotonic_cst has the same column by index and by name: {first_few(twice)}; keep "
                "one of them."
            )
        by_column = dict(zip(columns, given.values(), strict=True))
        given = [by_column.get(k, 0) for k in range(d)]
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
    if (column := first_true(~known)) is not None:
        where = column if names is None else repr(str(names[column]))
        raise InvalidParameter(
            f"monotonic_cst has {shown(directions.tolist()[column])} for column {where}; it must "
            "be 1 (increasing), -1 (decreasing) or 0."
        )
    return tuple(int(x) for x in directions) if directions.any() else ()


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
    if columns is None or not all(is_integer(one) or isinstance(one, str) for one in columns):
        example = "{0, 1}" if names is None else f"{{{', '.join(map(repr, names[:2]))}}}"
        raise InvalidParameter(
            f"interaction_cst has {shown(given)} at position {number}; each entry must be a "
            f"collection of column indices or names, such as [{example}]."
        )
    return tuple(sorted(set(positions("interaction_cst", columns, d, names))))


def plain_constraint(given: Any) -> Any:
    """Convert a constraint to lists, dicts, strings and integers, for model files."""
    if is_plain(given):
        return given
    if isinstance(given, Mapping):
        return {str(name): int(direction) for name, direction in given.items()}
    return [_plain_group(entry) if isinstance(entry, Iterable) else int(entry) for entry in given]


def _plain_group(columns: Iterable[Any]) -> list[int | str]:
    """Columns by index, then columns by name."""
    return sorted(map(as_python, columns), key=lambda column: (isinstance(column, str), column))
