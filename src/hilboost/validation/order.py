"""Rows of pandas objects, which are matched by position."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.errors import DataWarning, warn_caller
from hilboost.tables import is_pandas

_COMPARED = 1000  # rows
_SHARED = 0.1  # part of the rows above which another order is not a coincidence


def check_order(X: Any, suffix: str = "", **others: Any) -> None:
    """Warn if a series has the index of the table, or a part of it, in another order.

    ``X``: only pandas objects are checked. ``suffix``: part of the names of validation rows.
    ``others``: targets, weights, groups and offsets by name.

    Warns
    -----
    DataWarning
        Matched by position, its values belong to other rows.  Tests by permutation do this on
        purpose.
    """
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
        elif shares_rows_in_another_order(X, values):
            warn_of_shared_rows(name + suffix, "X" + suffix)


def warn_of_shared_rows(name: str, of: str) -> None:
    """Warn of a series that has labels of the table in another order."""
    warn_caller(
        f"{name} has a part of the index of {of} in a different order, but rows are matched by "
        f"position; take {of} and {name} from the same rows, or pass an array if this is intended.",
        DataWarning,
    )


def shares_rows_in_another_order(X: Any, values: Any) -> bool:
    """Return whether labels of some rows of X occur among those of a series in another order.

    Targets of forecasts, which are some rows ahead, have labels in the same order.  Ascending
    integers may be the numbers that pandas gives to the rows of an array, also to a series without
    the name of a column.
    """
    theirs, is_column = values.index, values.ndim > 1 or values.name is not None
    if X.index.nlevels != theirs.nlevels:
        return False
    if _are_numbers_of_rows(X.index) or (not is_column and _are_numbers_of_rows(theirs)):
        return False
    ours = _some(X.index)
    found = theirs[theirs.isin(ours)]
    if not (ours.is_unique and found.is_unique) or len(found) < _SHARED * len(ours):
        return False
    places = found.get_indexer(ours)
    return bool((np.diff(places[places >= 0]) < 0).any())


def _some(index: Any) -> Any:
    return index[np.linspace(0, len(index) - 1, min(len(index), _COMPARED), dtype=np.int64)]


def _are_numbers_of_rows(index: Any) -> bool:
    return index.dtype.kind in "iu" and bool(index.is_monotonic_increasing)
