"""Rows of pandas objects, which are matched by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.errors import DataWarning, InvalidData, warn_caller
from hilboost.tables import is_pandas

_COMPARED = 1000  # rows
_SHARED = 0.1  # part of the rows, above which labels are the same by intention
_OTHER_ORDER = "a part of the index of {} in a different order"
_OTHER_ROWS = "almost no label of the index of {}"


def check_order(X: Any, suffix: str = "", **others: Any) -> None:
    """Warn if a series has the index of the table in another order, a part of it, or another one.

    A target in the place of the table is an error.

    ``X``: only pandas objects are checked. ``suffix``: part of the names of validation rows.
    ``others``: targets, weights, groups and offsets by name.

    Matched by position, its values belong to other rows.  Tests by permutation do this on purpose.
    """
    if _n_columns(X) == 0 and _n_columns(others.get("y")) > 1:
        raise InvalidData(
            f"X{suffix} and y{suffix} seem to be swapped, because X{suffix} has one dimension and "
            f"y{suffix} two; pass the table first and the target second, or a single feature as a "
            "table, such as X.reshape(-1, 1)."
        )
    for name, values in others.items():
        if not (is_pandas(X) and is_pandas(values)) or X.index.equals(values.index):
            continue
        ours, theirs = X.index, values.index
        if (len(ours), ours.nlevels) != (len(theirs), theirs.nlevels):
            continue
        found = theirs[theirs.isin(_some(ours))]
        if len(found) >= len(_some(ours)) and ours.is_unique and bool(ours.isin(theirs).all()):
            warn_caller(
                f"{name}{suffix} has the index of X{suffix} in a different order, but rows are "
                f"matched by position; pass {name}{suffix}.loc[X{suffix}.index], or an array if "
                "this is intended.",
                DataWarning,
            )
        elif difference := difference_of_rows(X, values):
            warn_of_other_rows(name + suffix, "X" + suffix, difference)


def _n_columns(values: Any) -> int:
    """Number of columns: 0 for one value in each row, and -1 if it is not known."""
    if isinstance(values, list | tuple) and values:
        row = values[0]
        return len(row) if isinstance(row, list | tuple | np.ndarray) else -isinstance(row, dict)
    shape = getattr(values, "shape", None)
    if not isinstance(shape, tuple) or not shape:
        return -1
    return 0 if len(shape) == 1 else int(shape[1])


def warn_of_other_rows(name: str, of: str, difference: str) -> None:
    """Warn of a series that belongs to other rows than the table."""
    warn_caller(
        f"{name} has {difference.format(of)}, but rows are matched by position; take {of} and "
        f"{name} from the same rows, or pass an array if this is intended.",
        DataWarning,
    )


def difference_of_rows(X: Any, values: Any) -> str:
    """Return how the rows of a series differ from those of a table by their labels, or ``""``.

    Targets of forecasts, which are some rows ahead, have labels in the same order.  Ascending
    integers may be the numbers that pandas gives to the rows of an array, also to a series without
    the name of a column.
    """
    ours, theirs = X.index, values.index
    if ours.nlevels != theirs.nlevels or _are_numbers_of_rows(ours):
        return ""
    some = _some(ours)
    found = theirs[theirs.isin(some)]
    if not (ours.is_unique and found.is_unique):
        return ""
    if len(found) < _SHARED * len(some):
        return _OTHER_ROWS if _are_of_one_kind(ours, theirs) else ""
    if values.ndim == 1 and values.name is None and _are_numbers_of_rows(theirs):
        return ""
    places = found.get_indexer(some)
    return _OTHER_ORDER if (np.diff(places[places >= 0]) < 0).any() else ""


def _are_of_one_kind(ours: Any, theirs: Any) -> bool:
    """Whether labels should be the same: not numbers of rows, rows ahead, or other keys.

    Integers of one range are taken from one table; a table of an array has smaller ones.
    """
    if _are_numbers_of_rows(theirs) or not theirs.is_unique:
        return False
    if ours.is_monotonic_increasing and theirs.is_monotonic_increasing:
        return False
    if ours.dtype.kind in "iu" and theirs.dtype.kind in "iu":
        smaller, larger = sorted(1 + int(index.max()) for index in (ours, theirs))
        if larger >= 2 * smaller:
            return False
    same_keys = None in (ours.names[0], theirs.names[0]) or list(ours.names) == list(theirs.names)
    return same_keys and ours.inferred_type == theirs.inferred_type


def _some(index: Any) -> Any:
    return index[np.linspace(0, len(index) - 1, min(len(index), _COMPARED), dtype=np.int64)]


def _are_numbers_of_rows(index: Any) -> bool:
    return index.dtype.kind in "iu" and bool(index.is_monotonic_increasing)
