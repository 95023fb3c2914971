"""Sparse tables: checks of their arrays, and dense blocks of rows or columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, coo_array, csc_array, csr_array, dia_array, issparse

from hilboost.backends.row_hashes import add_sparse_hashes
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.tables.blocks import Blocks, BlockTable, Chosen, Work, rows_per_block

_ROWS_OF_WORK, _COLUMNS_OF_WORK = 2**16, 8


def check_sparse(matrix: Any, what: str = "X") -> None:
    """Reject a sparse matrix with inconsistent arrays; O(n + number of entries).

    Unsorted and duplicate entries are allowed.
    """
    if len(matrix.shape) != 2:
        raise InvalidData(f"{what} must be a table (n, d); got shape {matrix.shape}.")
    try:
        _check_arrays(matrix)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise InvalidData(
            f"{what} is an inconsistent sparse matrix of format {matrix.format!r}: {error}; "
            "rebuild it from its values, rows, and columns, for instance with "
            "scipy.sparse.coo_array((values, (rows, columns)), shape=(n, d))."
        ) from error


_COMPRESSED = {"bsr": bsr_array, "csc": csc_array, "csr": csr_array}


def _check_arrays(matrix: Any) -> None:
    """Let SciPy check the arrays of a matrix, as it checks those of a new one."""
    kind, shape = matrix.format, matrix.shape
    if kind in (*_COMPRESSED, "dia", "coo"):
        zeros = np.broadcast_to(np.int8(0), np.shape(matrix.data))  # other checks are of values
    if kind in _COMPRESSED:
        indices, starts = _integers(matrix.indices, matrix.indptr)
        if (starts[1:] < starts[:-1]).any():
            raise ValueError("indptr decreases")
        _COMPRESSED[kind]((zeros, indices, starts), shape=shape).check_format()
    elif kind == "dia":
        dia_array((zeros, *_integers(matrix.offsets)), shape=shape)
    elif kind == "coo":
        coo_array((zeros, tuple(_integers(*matrix.coords))), shape=shape)
    elif kind == "dok":
        places = np.array(list(matrix.keys()), dtype=np.int64).reshape(-1, 2)
        coo_array((list(matrix.values()), tuple(places.T)), shape=shape)
    elif kind == "lil":
        sizes, others = ([*map(len, lists)] for lists in (matrix.rows, matrix.data))
        if sizes != others:
            raise ValueError("its lists of columns and of values have different lengths")
        rows = np.repeat(np.arange(shape[0]), sizes)
        values, columns = (list(chain(*lists)) for lists in (matrix.data, matrix.rows))
        coo_array((values, (rows, np.array(columns, dtype=np.int64))), shape=shape)


def _integers(*indices: Any) -> Sequence[NDArray[Any]]:
    """Reject indices that SciPy would convert to integers."""
    arrays = [np.asarray(array) for array in indices]
    if any(array.dtype.kind not in "iu" for array in arrays):
        raise ValueError("its indices are not integers")
    return arrays


def is_sparse(X: object) -> bool:
    """Return whether ``X`` is a SciPy sparse matrix or array."""
    return bool(issparse(X))


class SparseTable(BlockTable):
    """A sparse table; values that are not stored are zeros."""

    is_sparse = True

    def __init__(self, matrix: object) -> None:
        rows = csr_array(matrix)
        # Rebuild: SciPy's cached flags on order and duplicates may be outdated.
        rows = csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        self._rows, self.dtype = rows, rows.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``"""
        n, d = self._rows.shape
        return int(n), int(d)

    def __getitem__(self, rows: Any) -> SparseTable:
        return SparseTable(self._rows[rows])

    def row_hashes(
        self, columns: NDArray[np.int64] | None = None, team: object = None
    ) -> NDArray[np.uint64]:
        """Hash the values of each row in all columns, or in some, (n,); O(stored values)."""
        values, *places = self.arrays
        values = np.require(values, np.float64, "W")
        numbers, starts = (np.require(array, requirements="W") for array in places)
        if columns is not None:
            values = np.where(np.isin(numbers, columns), values, 0.0)
        hashes = np.zeros(len(self), dtype=np.uint64)
        add_sparse_hashes(values, numbers, starts, hashes)
        return hashes

    def array(self) -> Floats:
        """Return the whole table as a new array (n, d)."""
        return self._rows.toarray()

    def sampled(self, rows: NDArray[np.uint32] | None, team: ThreadTeam) -> SparseTable:
        """Return the table of some rows, or of all, with the index of the columns."""
        table = self if rows is None else self[rows]
        _ = table._columns
        return table

    def map_blocks(self, work: Work, team: ThreadTeam) -> None:
        """Let threads work on blocks of eight columns."""
        (n, d), table = self.shape, self.sampled(None, team)

        def on_columns(block: tuple[int, int]) -> None:
            first, begin = block
            last, end = min(first + _COLUMNS_OF_WORK, d), min(begin + _ROWS_OF_WORK, n)
            work(table.columns(first, last, begin, end), begin, first)

        firsts = range(0, d, _COLUMNS_OF_WORK)
        team.map(on_columns, list(product(firsts, range(0, n, _ROWS_OF_WORK))))

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

    def row_blocks(self, columns: Chosen = None) -> Blocks:
        """Yield dense blocks (m, n_columns) of 16 MiB of all rows, with the chosen columns."""
        columns = np.arange(self.shape[1]) if columns is None else columns
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
