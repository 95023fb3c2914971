"""Rows of pandas objects, which are matched by position."""

from __future__ import annotations

from typing import Any

from hilboost.core.errors import DataWarning, warn_caller
from hilboost.tables import is_pandas


def check_order(X: Any, suffix: str = "", **others: Any) -> None:
    """Warn if a series has the index of the table in another order.

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
        if len(ours) == len(theirs) and ours.is_unique and bool(ours.isin(theirs).all()):
            warn_caller(
                f"{name}{suffix} has the index of X{suffix} in a different order, but rows are "
                f"matched by position; pass {name}{suffix}.loc[X{suffix}.index], or an array if "
                "this is intended.",
                DataWarning,
            )
