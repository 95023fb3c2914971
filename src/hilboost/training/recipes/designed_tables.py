"""Tables of few distinct rows, each observed many times, as in a designed experiment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.reductions.rows import of_all_rows
from hilboost.tables.files import column_of
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import Start

_MOST_ROWS = 10_000
FEWEST_EQUAL = 5.0
"""Fewest observations of a distinct row of a designed table, and of a leaf then."""
_ROUNDING = 1e-9  # of the sum of all magnitudes


def is_designed(data: TrainingData, row: float) -> bool:
    """Whether each distinct row is observed at least five times, in units of ``row``.

    No split isolates fewer observations, so that leaves of many rows are not needed.
    """
    target = data.target
    if target.n_rows > _MOST_ROWS:
        return False
    weight = np.ones(len(data.X)) if target.weight is None else target.weight / row
    weight = of_all_rows(weight, target)
    cells = _distinct_rows(data, weight.sum() / FEWEST_EQUAL)
    return cells is not None and bool(np.bincount(cells, weight).min() >= FEWEST_EQUAL)


def is_hidden(begun: Start) -> bool:
    """Whether some output is constant given any single column, but not given all columns.

    In an exclusive or of balanced columns, no split of all rows gains anything: trees need samples
    of the rows, which are not balanced.
    """
    X, target = begun.data.X, begun.data.target
    if target.n_rows > _MOST_ROWS:
        return False
    raw = target.starting_raw(begun.initial_raw)
    gradient = begun.loss.adapted(target, raw).gradients(target, raw).negative_gradient
    if target.weight is not None:
        gradient = gradient * target.weight[:, None]
    gradient = of_all_rows(gradient, target)
    least = _ROUNDING * np.abs(gradient).sum(axis=0)
    hidden = least > 0
    for k in range(X.shape[1]):
        hidden &= _largest_sum(_levels(begun.data, k), gradient) <= least
        if not hidden.any():
            return False
    cells = _distinct_rows(begun.data, target.n_rows)
    return cells is not None and bool((hidden & (_largest_sum(cells, gradient) > least)).any())


def _distinct_rows(data: TrainingData, most: float) -> NDArray[np.intp] | None:
    """Number the distinct rows, (n,); ``None`` if there are more than ``most``."""
    cells = np.zeros(1, dtype=np.intp)
    for k in range(data.X.shape[1]):
        levels = _levels(data, k)
        cells = np.unique(cells * (levels.max() + 1) + levels, return_inverse=True)[1]
        if cells.max() >= most:
            return None
    return cells


def _levels(data: TrainingData, k: int) -> NDArray[np.intp]:
    """Number the distinct values of a column, (n,)."""
    return np.unique(of_all_rows(column_of(data.X, k), data.target), return_inverse=True)[1]


def _largest_sum(groups: NDArray[np.intp], gradient: Floats) -> Floats:
    """The largest magnitude of the sums of gradients (n, r) over groups of rows, (r,)."""
    return np.array([np.abs(np.bincount(groups, column)).max() for column in gradient.T])
