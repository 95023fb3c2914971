"""A sign that rows are in order of time or in blocks: neighbors with similar targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.tables.files import column_of

_FEWEST, _PAIRS = 500, 1000
_AGREEMENT = 0.5  # of neighbors, from 0 by chance to 1
_ERRORS = 8.0  # standard errors by which it must exceed chance
_TOLD = (
    "targets of neighboring rows agree far beyond chance, as in rows in order of time or in "
    "groups, so that rows held out at random look too easy; pass time=... or groups=... to fit, or "
    "set validation='random' if the rows are independent."
)


def told_of_ordered_rows(X: Any, y: NDArray[Any], of_classes: bool) -> list[str]:
    """Say that rows seem to depend on their neighbors, from a sample of pairs; y (n,) are encoded.

    Rows that are sorted by the target, or by a column of different values, may be independent.
    """
    n = len(y)
    if n < _FEWEST:
        return []
    first = np.unique(np.linspace(0, n - 2, min(n - 1, _PAIRS)).astype(np.intp))
    pairs = np.stack([y[first], y[first + 1]])
    if of_classes:
        frequency = np.unique(pairs, return_counts=True)[1] / pairs.size
        chance = float(frequency @ frequency)
        found, spread = float((pairs[0] == pairs[1]).mean()), chance * (1 - chance)
        if spread == 0:
            return []
        agreement, error = (found - chance) / (1 - chance), np.sqrt(spread / len(first))
        error /= 1 - chance
    else:
        ranks = _ranks(pairs)
        variance = float(ranks.var())
        if not variance > 0:
            return []
        agreement = 1 - float(np.square(ranks[0] - ranks[1]).mean()) / (2 * variance)
        error = 1 / np.sqrt(len(first))
    if not agreement > max(_AGREEMENT, _ERRORS * error):
        return []
    sample = np.append(first, n - 1)
    is_sorted = _ascends(y[sample]) or _ascends(-y[sample])
    return [] if is_sorted or _has_sorted_column(X[sample]) else [_TOLD]


def _ranks(values: NDArray[Any]) -> Floats:
    """Ranks of numbers; equal ones have the same."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.float64)


def _ascends(values: NDArray[Any]) -> bool:
    return bool((np.diff(values) >= 0).all())


def _has_sorted_column(rows: Any) -> bool:
    """Whether a column of a table (m, d) has ascending or descending values, all different."""
    steps = (np.diff(column_of(rows, k)) for k in range(rows.shape[1]))
    return any((step > 0).all() or (step < 0).all() for step in steps)
