"""Validation of offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.tables import as_array


def check_offset(offset: Any, n: int) -> Floats | None:
    """Return offsets (n, r) float64, or ``None`` if there are none.

    Raises
    ------
    InvalidData
        ``offset`` has another number of rows, or an entry that is not a finite number.
    """
    if offset is None:
        return None
    found = np.asarray(as_array(offset, "offset"))
    if found.dtype.kind not in "biuf":
        raise InvalidData(f"offset must hold numbers; got {found.dtype}.")
    if found.ndim not in (1, 2) or len(found) != n:
        raise InvalidData(
            f"offset must hold one number for each of the {n} rows of X, or one for each row and "
            f"output; got an array of shape {found.shape}."
        )
    found = found.astype(np.float64).reshape(n, -1)
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
        raise InvalidData(f"offset must be finite; row {row} has {found[row].tolist()[0]:g}.")
    return found


def check_outputs(offset: Floats | None, r: int) -> None:
    """Check that there is an offset for each of the r outputs.

    Raises
    ------
    InvalidData
    """
    if offset is not None and offset.shape[1] != r:
        raise InvalidData(
            f"offset must have one column for each of the {r} outputs; it has {offset.shape[1]}."
        )
