"""Sparse tables: checks of their arrays, and dense blocks of rows or columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse

from hilboost.backends.row_hashes import add_sparse_hashes
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.words import counted
from hilboost.tables.blocks import BlockTable, rows_per_block


def check_sparse(matrix: Any, what: str = "X") -> None:
    """Reject a sparse matrix with inconsistent arrays; O(n + number of entries).

    Unsorted and duplicate entries are allowed.
    """
    if len(matrix.shape) != 2:
        raise InvalidData(f"{what} must be a table (n, d); got shape {matrix.shape}.")
    check = _CHECKS.get(matrix.format)
    fault = None if check is None else check(matrix)
    if fault is not None:
        raise InvalidData(
            f"{what} is an inconsistent sparse matrix of format {matrix.format!r}: {fault}; "
            "rebuild it from its values, rows, and columns, for instance with "
            "scipy.sparse.coo_array((values, (rows, columns)), shape=(n, d))."
        )


def _compressed(matrix: Any, n_major: int, n_minor: int, n_data: int) -> str | None:
    """Check ``csr``, ``csc``, and ``bsr``: compressed rows or columns."""
    indptr, indices = matrix.indptr, matrix.indices
    for name, array in (("indptr", indptr), ("indices", indices)):
        if not _are_integers(array):
            return f"{name} is not a one-dimensional array of integers"
    if len(indptr) != n_major + 1:
        return f"indptr must have {n_major + 1} entries, but has {len(indptr)}"
    if len(indices) != n_data:
        return f"it has {counted(n_data, 'value')} but {len(indices)} indices"
    if indptr[0] != 0:
        return f"indptr must start with 0, but starts with {indptr[0]}"
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        return f"indptr decreases after entry {falls[0]}"
    if indptr[-1] > n_data:
        return f"indptr ends with {indptr[-1]}, but there are {n_data} values"
    return _outside(indices[: indptr[-1]], n_minor, "indices")


def _csr_or_csc(matrix: Any) -> str | None:
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    return _no_vector(matrix.data) or _compressed(matrix, n_major, n_minor, len(matrix.data))


def _bsr(matrix: Any) -> str | None:
    (n, d), data = matrix.shape, matrix.data
    if data.ndim != 3 or min(data.shape[1:]) < 1 or n % data.shape[1] or d % data.shape[2]:
        return f"data has shape {data.shape}, whose blocks do not divide {n} x {d}"
    return _compressed(matrix, n // data.shape[1], d // data.shape[2], len(data))


def _coo(matrix: Any) -> str | None:
    fault = _no_vector(matrix.data)
    if fault is not None:
        return fault
    for name, size, array in zip(("rows", "columns"), matrix.shape, matrix.coords, strict=True):
        if not _are_integers(array):
            return f"its {name} are not a one-dimensional array of integers"
        if len(array) != len(matrix.data):
            return f"it has {counted(len(matrix.data), 'value')} but {len(array)} {name}"
        fault = _outside(array, size, f"its {name}")
        if fault is not None:
            return fault
    return None


def _dia(matrix: Any) -> str | None:
    offsets, data = matrix.offsets, matrix.data
    if not _are_integers(offsets):
        return "offsets is not a one-dimensional array of integers"
    if data.ndim != 2 or len(data) != len(offsets):
        return f"it has {len(offsets)} offsets but data of shape {data.shape}"
    if len(np.unique(offsets)) < len(offsets):
        return "it has two diagonals with the same offset"
    return None


def _lil(matrix: Any) -> str | None:
    n, d = matrix.shape
    if matrix.rows.shape != (n,) or matrix.data.shape != (n,):
        return f"it has {len(matrix.rows)} lists of columns but {len(matrix.data)} of values"
    for i, (columns, values) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
        if len(columns) != len(values):
            return (
                f"row {i} has {counted(len(values), 'value')} but {counted(len(columns), 'column')}"
            )
        fault = _outside(np.asarray(columns, dtype=np.int64), d, f"the columns of row {i}")
        if fault is not None:
            return fault
    return None


def _dok(matrix: Any) -> str | None:
    places = np.array(list(matrix.keys()), dtype=np.int64).reshape(-1, 2)
    return _outside(places[:, 0], matrix.shape[0], "its rows") or _outside(
        places[:, 1], matrix.shape[1], "its columns"
    )


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "bsr": _bsr,
    "coo": _coo,
    "csc": _csr_or_csc,
    "csr": _csr_or_csc,
    "dia": _dia,
    "dok": _dok,
    "lil": _lil,
}


def _no_vector(data: Any) -> str | None:
    if data.ndim != 1:
        return f"data must have one dimension, but has shape {data.shape}"
    return None


def _are_integers(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"


def _outside(numbers: np.ndarray, size: int, what: str) -> str | None:
    """Describe the first problem with indices outside of 0 … ``size`` - 1."""
    if not len(numbers):
        return None
    low, high = numbers.min(), numbers.max()
    if low >= 0 and high < size:
        return None
    return f"{what} must be 0 to {size - 1}, but one is {low if low < 0 else high}"


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
