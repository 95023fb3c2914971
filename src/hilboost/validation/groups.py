"""Validation of groups of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.errors import InvalidData
from hilboost.tables import as_array, is_missing_value


def check_groups(groups: Any, n: int) -> NDArray[Any]:
    """Return the group of each row, (n,).

    Raises
    ------
    InvalidData
        ``groups`` is not a list of n labels, or a label is missing.
    """
    found = np.asarray(as_array(groups, "groups"))
    if found.shape != (n,):
        raise InvalidData(
            f"groups must hold one label for each of the {n} rows of X; got an array of shape "
            f"{found.shape}."
        )
    if found.dtype.kind not in "biufUO":
        raise InvalidData(
            f"groups must hold text or numbers; got {found.dtype}. Convert the labels to text."
        )
    missing = [i for i, label in enumerate(found.tolist()) if is_missing_value(label)]
    if missing:
        raise InvalidData(f"row {missing[0]} of groups is missing; give every row a group.")
    # Objects become text or numbers, as they would in an array of their own kind.
    return np.array(found.tolist()) if found.dtype.kind == "O" else found
