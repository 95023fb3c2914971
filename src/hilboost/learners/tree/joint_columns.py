"""Which columns of few values share a table of sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.trees.histogram import STRIDE
from hilboost.backends.trees.joint_columns import JointColumns
from hilboost.core import dtypes


def joint_columns(
    words: NDArray[np.uint64], n_values: NDArray[np.int64], n_bins: int
) -> JointColumns | None:
    """Group the columns of a binned table, if this halves the additions at least.

    Parameters
    ----------
    words : (ceil(d / 8), n) uint64
    n_values : (d,) int64
    n_bins : int
    """
    d, n = len(n_values), words.shape[1]
    if 2 * len(_groups(n_values)) > d:
        return None
    bins = [_bins_of(words, k) for k in range(d)]
    has_missing = np.array([bool((b == n_bins - 1).any()) for b in bins])
    sizes = n_values + (has_missing & (n_values < n_bins))
    groups = _groups(sizes)
    if 2 * len(groups) > d:
        return None
    columns = np.concatenate(groups)
    strides = np.concatenate([np.cumprod([1, *sizes[group[:-1]]]) for group in groups])
    codes = np.zeros((-(-len(groups) // 8), n), dtype=dtypes.WORD)
    for number, group in enumerate(groups):
        code = np.zeros(n, dtype=dtypes.WORD)
        for k, stride in zip(group, np.cumprod([1, *sizes[group[:-1]]]), strict=True):
            here = np.where(bins[k] == n_bins - 1, n_values[k], bins[k])
            code += here.astype(dtypes.WORD) * dtypes.WORD(stride)
        codes[number // 8] |= code << dtypes.WORD(8 * (number % 8))
    return JointColumns(
        codes,
        np.array([np.prod(sizes[group]) for group in groups], dtype=np.int64),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        columns.astype(np.int64),
        strides.astype(np.int64),
        sizes[columns].astype(np.int64),
        np.empty((0, 0), dtype=dtypes.PACKED),
    )


def _bins_of(words: NDArray[np.uint64], column: int) -> NDArray[np.uint8]:
    """Bins of a column, (n,)."""
    return words[column // 8].view(np.uint8).reshape(-1, 8)[:, column % 8]


def _groups(sizes: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Divide the columns so that the product of the sizes of a group is at most 256."""
    groups: list[list[int]] = []
    products: list[int] = []
    for k in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[k])
        found = next((g for g, p in enumerate(products) if p * size <= STRIDE), len(groups))
        if found == len(groups):
            groups.append([])
            products.append(1)
        groups[found].append(k)
        products[found] *= size
    return [np.array(group, dtype=np.intp) for group in groups]
