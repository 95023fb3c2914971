"""Which columns of few values share a table of sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.engine.ops.cpu.histogram import STRIDE
from hilboost.engine.ops.cpu.joint_columns import NO_GROUPS, JointColumns

_BLOCK_ROWS = 2**14


def joint_columns(
    words: NDArray[np.uint64], n_values: NDArray[np.int64], n_bins: int, team: ThreadTeam
) -> JointColumns:
    """Group the columns of a binned table, if this halves the additions at least."""
    d = len(n_values)
    if 2 * len(_groups(n_values)) > d:
        return NO_GROUPS
    sizes = n_values + _has_missing(words, n_bins - 1, team)[:d]
    groups = _groups(sizes)
    if 2 * len(groups) > d:
        return NO_GROUPS
    strides = [np.cumprod([1, *sizes[group[:-1]]]) for group in groups]
    columns = np.concatenate(groups)
    group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.argsort(columns)
    return JointColumns(
        _codes(words, n_values, n_bins - 1, groups, strides, team),
        np.array([np.prod(sizes[group]) for group in groups], dtype=np.int64),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        columns.astype(np.int64),
        np.concatenate(strides).astype(np.int64),
        sizes[columns].astype(np.int64),
        group_of[order].astype(np.int64),
        order.astype(np.int64),
        NO_GROUPS.sums,
    )


def _has_missing(
    words: NDArray[np.uint64], missing_bin: int, team: ThreadTeam
) -> NDArray[np.bool_]:
    """Find the bytes of the words that contain the bin of missing values in a row, (8 n_words,)."""

    def of_block(begin: int) -> NDArray[np.bool_]:
        block = words[:, begin : begin + _BLOCK_ROWS]
        return np.concatenate([(_bytes(word) == missing_bin).any(axis=0) for word in block])

    return np.any(team.map(of_block, range(0, words.shape[1], _BLOCK_ROWS)), axis=0)


def _codes(
    words: NDArray[np.uint64],
    n_values: NDArray[np.int64],
    missing_bin: int,
    groups: list[NDArray[np.intp]],
    strides: list[NDArray[np.int64]],
    team: ThreadTeam,
) -> NDArray[np.uint64]:
    """Codes of the groups in words of eight, (ceil(n_groups / 8), n), block by block of rows."""
    codes = np.zeros((-(-len(groups) // 8), words.shape[1]), dtype=dtypes.WORD)

    def write(begin: int) -> None:
        rows = slice(begin, begin + _BLOCK_ROWS)
        for number, group in enumerate(groups):
            written = _bytes(codes[number // 8, rows])[:, number % 8]
            code = np.zeros(len(written), dtype=np.uint16)
            for k, stride in zip(group.tolist(), strides[number].tolist(), strict=True):
                bins = _bytes(words[k // 8, rows])[:, k % 8].astype(np.uint16)
                bins[bins == missing_bin] = n_values[k]
                code += bins * np.uint16(stride)
            written[:] = code

    team.map(write, range(0, words.shape[1], _BLOCK_ROWS))
    return codes


def _bytes(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Bytes of the words of some rows, (m, 8), lowest first; in the same memory."""
    return words.view(np.uint8).reshape(-1, 8)


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
