"""Columns of arrays: for compiled code, of known targets, and their sums; checks of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from hilboost.core.dtypes import RAW, Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target

_ITEM = np.dtype(RAW).itemsize


def flat_columns(array: Floats) -> tuple[Floats, int]:
    """Return one array from the first to the last entry in memory, and the distance of columns.

    It is copied unless the entries of each column follow each other in memory.
    """
    if not _has_columns(array):
        array = np.array(array, dtype=RAW, order="F")
    n, r = array.shape
    apart = array.strides[1] // _ITEM if r > 1 else n
    return as_strided(array, ((r - 1) * apart + n if n else 0,), (_ITEM,)), apart


def _has_columns(array: Floats) -> bool:
    within, apart = array.strides
    return (
        (within == _ITEM or len(array) == 1)
        and apart > 0
        and apart % _ITEM == 0
        and array.dtype == RAW
        and array.flags.writeable  # compiled code for arrays that are not would be other code
    )


def known_column(target: Target, k: int) -> Target:
    """Select the rows of column ``k`` whose target is known, without offsets."""
    is_known = ~np.isnan(target.y[:, k])
    known = target if is_known.all() else target.rows(np.flatnonzero(is_known))
    return replace(known, y=known.y[:, k : k + 1], offset=None)


def array_for(raw: Floats, memory: Gradients | None) -> Floats:
    """Return an array for gradients at ``raw`` (n, r), (n, r): that of the memory, or a new one.

    The entries of each column follow each other in memory.
    """
    if memory is not None and _has_columns(memory.negative_gradient):
        return memory.negative_gradient
    return np.empty(raw.shape, order="F")


def arrays_for(raw: Floats, memory: Gradients | None) -> tuple[Floats, Floats]:
    """Return arrays for gradients and hessians at ``raw`` (n, r), from the memory or new.

    Their content is arbitrary; the entries of each column follow each other in memory.
    """
    if memory is not None and memory.hessian is not None:
        arrays = memory.negative_gradient, memory.hessian
        if arrays[0].strides == arrays[1].strides and all(map(_has_columns, arrays)):
            return arrays
    return np.empty(raw.shape, order="F"), np.empty(raw.shape, order="F")


_FEW_ROWS = 200  # below, one call is faster than one for each column


def row_sums(values: Floats) -> Floats:  # (n,) float64
    """Add up the columns (n, c) in their order, with the same bits for a row wherever it is.

    ``values.sum(axis=1)`` adds in another order where the entries of a row follow each other in
    memory, as the sums of a single row always do.
    """
    if values.flags.c_contiguous and values.shape[1] > 1 and len(values) < _FEW_ROWS:
        return np.cumsum(values, axis=1)[:, -1].copy()
    total = values[:, 0].copy()
    for k in range(1, values.shape[1]):
        total += values[:, k]
    return total


def are_numbers(values: object) -> bool:
    """Whether a parameter holds numbers only."""
    return np.asarray(values).dtype.kind in "iuf"


def softmax(scores: Floats) -> Floats:
    """Compute the softmax of each row, (n, C), with the same bits for a row wherever it is."""
    p = np.exp(scores)
    p /= row_sums(p)[:, None]
    return p
