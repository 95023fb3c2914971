"""Columns of arrays for compiled code, whether or not the rows are some of a larger array."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from hilboost.core.dtypes import RAW, Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target

_ITEM = np.dtype(RAW).itemsize


def flat_columns(array: Floats) -> tuple[Floats, int]:
    """Return one array from the first to the last entry in memory, and the distance of columns.

    ``array``: (n, r) float64: copied unless the entries of each column follow each other in memory.

    Returns flat; apart: number of entries from one row of a column to the same row of the next one.
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
    here = ~np.isnan(target.y[:, k])
    weight = None if target.weight is None else target.weight[here]
    return Target(target.y[here, k : k + 1], weight, share=target.share)


def array_for(raw: Floats, memory: Gradients | None) -> Floats:
    """Return an array for gradients at ``raw`` (n, r), (n, r): that of the memory, or a new one.

    The entries of each column follow each other in memory.
    """
    if memory is not None and _has_columns(memory.negative_gradient):
        return memory.negative_gradient
    return np.empty(raw.shape, order="F")


def arrays_for(raw: Floats, memory: Gradients | None) -> tuple[Floats, Floats]:
    """Return arrays for gradients and hessians at ``raw`` (n, r), from the memory or new.

    ``raw``: (n, r) float64.

    Returns negative_gradient, hessian, (n, r) float64: with arbitrary content; the entries of each
    column follow each other in memory.
    """
    if memory is not None and memory.hessian is not None:
        arrays = memory.negative_gradient, memory.hessian
        if arrays[0].strides == arrays[1].strides and all(map(_has_columns, arrays)):
            return arrays
    return np.empty(raw.shape, order="F"), np.empty(raw.shape, order="F")
