"""Sparse tables: rows for prediction, columns for binning, densified only in small blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from hilboost.core.dtypes import Floats
from hilboost.tables.blocks import BlockTable, cell_hashes, rows_per_block


def is_sparse(X: object) -> bool:
    """Return whether ``X`` is a SciPy sparse matrix or array."""
    return bool(issparse(X))


class SparseTable(BlockTable):
    """A sparse table; values that are not stored are zeros."""

    def __init__(self, matrix: object) -> None:
        rows = csr_array(matrix)
        # Rebuild: SciPy's cached flags on order and duplicates may be outdated.
        rows = csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        self._rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``"""
        n, d = self._rows.shape
        return int(n), int(d)

    def __getitem__(self, rows: Any) -> SparseTable:
        return SparseTable(self._rows[rows])

    def row_hashes(self, columns: NDArray[np.int64] | None = None) -> NDArray[np.uint64]:
        """Hash the values of each row in all columns, or in some, (n,); O(stored values)."""
        values, numbers, starts = self.arrays
        hashes = cell_hashes(values, numbers)
        if columns is not None:
            hashes[~np.isin(numbers, columns)] = 0
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        return sums[starts[1:]] - sums[starts[:-1]]

    def index_columns(self) -> SparseTable:
        """Build the column index of :meth:`columns` before several threads use it."""
        _ = self._columns
        return self

    @cached_property
    def _columns(self) -> csc_array:
        return self._rows.tocsc()

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The CSR arrays: values, column indices, and row starts."""
        return self._rows.data, self._rows.indices, self._rows.indptr

    def column(self, k: int) -> Floats:
        """Return column ``k``, (n,) float64."""
        return self.columns(k, k + 1, 0, len(self))[:, 0]

    def columns(self, first: int, last: int, begin: int, end: int) -> Floats:
        """Return the block ``[begin:end, first:last]`` as a dense array; O(block size)."""
        table = self._columns
        block = np.zeros((end - begin, last - first))
        for k in range(first, last):
            low, high = table.indptr[k], table.indptr[k + 1]
            low, high = low + np.searchsorted(table.indices[low:high], [begin, end])
            block[table.indices[low:high] - begin, k - first] = table.data[low:high]
        return block

    def row_blocks(self, columns: NDArray[np.int64]) -> Iterator[tuple[slice, Floats]]:
        """Yield dense blocks (m, n_columns) of 16 MiB of all rows, for ascending ``columns``."""
        step = rows_per_block(len(columns))
        place = np.full(self.shape[1], -1)
        place[columns] = np.arange(len(columns))
        values, indices, starts = self.arrays
        for begin in range(0, len(self), step):
            end = min(begin + step, len(self))
            low, high = starts[begin], starts[end]
            row = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
            column = place[indices[low:high]]
            wanted = column >= 0
            block = np.zeros((end - begin, len(columns)))
            block[row[wanted], column[wanted]] = values[low:high][wanted]
            yield slice(begin, end), block
