"""Category columns of tree learners: checks, and marks for compiled loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hilboost.core.errors import InvalidParameter
from hilboost.engine.ops.cpu.category_splits import MAX_LEVELS


def check_levels(categorical: Sequence[tuple[int, int]]) -> None:
    """Check that trees can distinguish the levels of ``(column, n_levels)``."""
    for column, n_levels in categorical:
        if n_levels > MAX_LEVELS:
            raise InvalidParameter(
                f"column {column} has {n_levels} levels, but trees support at most "
                f"{MAX_LEVELS}; merge the rare ones."
            )


def marked_columns(categorical: Sequence[tuple[int, int]], d: int) -> NDArray[np.uint8]:
    """Mark category columns with 1, (d,); (0,) if there are none."""
    marked = np.zeros(d if categorical else 0, dtype=np.uint8)
    marked[[column for column, _ in categorical]] = 1
    return marked
