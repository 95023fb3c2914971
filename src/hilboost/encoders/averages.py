"""Values of the rows whose means encode the levels of a category."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import quotient, rounded
from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.reductions.sums import mass_of, masses_of_groups, on_any_worker, total_of

_MOST_CLASSES = 5

Averaged = Callable[[Target, NDArray[np.uint32] | None], Floats]
"""Maps a target and the training rows, or ``None`` for all, to the values (n, q) of its rows."""


def known_numbers(target: Target, rows: NDArray[np.uint32] | None = None) -> Floats:
    """Return the targets (n, q); missing ones are replaced by the mean over the rows.

    ``rows``: (m,) uint32 or None.

    Returns (n, q) float64.
    """
    known = ~np.isnan(target.y)
    if not on_any_worker(not known.all(), target.share):
        return target.y
    learned = target if rows is None else target.rows(rows)
    mean = np.array([_mean_of_known(y, learned) for y in learned.y.T])
    return np.where(known, target.y, mean)


def class_indicators(target: Target, n_classes: int) -> Floats:  # (n, 1) or (n, 5) float64
    """Return the indicator of the second of two classes, or of the five most frequent ones."""
    if n_classes == 2:
        return target.y[:, :1].astype(np.float64, copy=False)
    codes = target.y[:, 0].astype(np.int64)
    counts = masses_of_groups(codes, target.weight, n_classes, target.share)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
    return (target.y[:, :1] == chosen).astype(np.float64)


def _mean_of_known(y: Floats, target: Target) -> float:
    known, share = ~np.isnan(y), target.share
    seen = None if target.weight is None else target.weight[known]
    mass = mass_of(seen, int(known.sum()), share)
    return quotient(total_of(y[known], seen, share), mass) if float(rounded(mass)) > 0 else 0.0
