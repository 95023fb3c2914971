"""Tables whose targets depend on combinations of columns, but on no column alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.tables import column_of
from hilboost.training.initial_state import Start

_MOST_ROWS = 10_000
_ROUNDING = 1e-9  # of the sum of all magnitudes


def is_hidden(begun: Start) -> bool:
    """Whether some output is constant given any single column, but not given all columns.

    In an exclusive or of balanced columns, no split of all rows gains anything: trees need samples
    of the rows, which are not balanced.
    """
    X, target = begun.data.X, begun.data.target
    if len(X) > _MOST_ROWS or target.share is not None:
        return False
    raw = target.starting_raw(begun.initial_raw)
    gradient = begun.loss.gradients(target, raw).negative_gradient
    if target.weight is not None:
        gradient = gradient * target.weight[:, None]
    least = _ROUNDING * np.abs(gradient).sum(axis=0)
    hidden, levels = least > 0, []
    for k in range(X.shape[1]):
        levels.append(np.unique(column_of(X, k), return_inverse=True)[1])
        hidden &= _largest_sum(levels[-1], gradient) <= least
        if not hidden.any():
            return False
    rows = np.unique(np.column_stack(levels), axis=0, return_inverse=True)[1]
    return bool((hidden & (_largest_sum(rows, gradient) > least)).any())


def _largest_sum(groups: NDArray[np.intp], gradient: Floats) -> Floats:
    """The largest magnitude of the sums of gradients (n, r) over groups of rows, (r,)."""
    sums = [np.abs(np.bincount(groups, column)).max() for column in gradient.T]
    return np.array(sums)
