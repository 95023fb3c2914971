"""Tables that are never held as one array of floats, but converted in blocks, and sets of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.row_hashes import add_hashes
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import ROW, Floats

_CHUNK = 2**10
_FEW_ROWS = 2**16
"""So many row numbers take little memory."""


class RowBits:
    """Ascending row numbers, which are found again chunk by chunk::

        rows     1  2  4  5  6 | 9 …
        bits     0 1 1 0 1 1 1 0 | 0 1 0 …
        before   0               | 5 …

    ``rows``: (m,) integers: Ascending.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        size = -(-(int(rows[-1]) + 1) // _CHUNK) * _CHUNK if len(rows) else 0
        chosen = np.zeros(size, dtype=bool)
        chosen[rows] = True
        self._bits = np.packbits(chosen)
        of_chunks = chosen.reshape(-1, _CHUNK).sum(axis=1)
        self._before = np.concatenate([[0], np.cumsum(of_chunks)])

    @staticmethod
    def is_smaller(rows: NDArray[Any]) -> bool:
        """Whether rows are ascending, and their numbers would take more memory than the bits."""
        if len(rows) < _FEW_ROWS or len(rows) * 8 * np.dtype(ROW).itemsize < int(rows[-1]):
            return False
        return bool((rows[1:] > rows[:-1]).all())

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, places: Any) -> NDArray[np.uint32]:
        """Return the numbers of the rows at some places; a slice takes time for these alone."""
        if not isinstance(places, slice) or places.step not in (None, 1):
            return self._between(0, len(self))[places]
        return self._between(*places.indices(len(self))[:2])

    def _between(self, begin: int, end: int) -> NDArray[np.uint32]:
        if end <= begin:
            return np.empty(0, dtype=ROW)
        first, last = np.searchsorted(self._before, [begin, end - 1], side="right") - 1
        bits = self._bits[first * _CHUNK // 8 : (last + 1) * _CHUNK // 8]
        skipped = begin - int(self._before[first])
        found = np.flatnonzero(np.unpackbits(bits))[skipped : skipped + end - begin]
        return (found + first * _CHUNK).astype(ROW)


_BLOCK_BYTES = 2**24
_FIRST_PART, _LARGEST_PART = 2**13, 2**18
_BLOCK_ROWS = 2**15
_ROWS_OF_WORK, _COPIED_ROWS = 2**10, 2**12

Chosen = NDArray[np.int64] | None
"""Ascending numbers of columns; ``None`` for all."""

Blocks = Iterator[tuple[slice, Floats]]
"""Dense blocks of a table with their rows."""

Work = Callable[[Floats, int, int], None]
"""Takes a dense block of a table, and the numbers of its first row and column."""


class BlockTable(ABC):
    """Base class of tables of numbers that are read in blocks, NaN for missing values."""

    is_on_disk: ClassVar[bool] = False
    is_sparse: ClassVar[bool] = False
    dtype: np.dtype[Any]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """``(n, d)``"""

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def row_hashes(
        self, columns: NDArray[np.int64] | None = None, team: ThreadTeam | None = None
    ) -> NDArray[np.uint64]:
        """Hash the values of each row in all columns, or in some of them, on all threads, (n,)."""
        hashes, every = np.zeros(len(self), dtype=np.uint64), np.arange(self.shape[1])
        n_rows = _BLOCK_ROWS if columns is not None else _BLOCK_ROWS // 16

        def add(begin: int) -> None:
            rows = slice(begin, begin + n_rows)
            table, sums = self[rows], hashes[rows]
            if columns is None:
                blocks = ((own, every, block) for own, block in table.row_blocks(every))
            else:
                whole = slice(None)
                blocks = ((whole, k, table.column(int(k[0]))[:, None]) for k in columns[:, None])
            for own, numbers, block in blocks:
                add_hashes(np.require(block, np.float64, ["C", "W"]), numbers, sums[own])

        (team or ThreadTeam()).map(add, range(0, len(self), n_rows), per_thread=2)
        return hashes

    def parts(self) -> Iterator[BlockTable]:
        """Yield tables of consecutive rows, of all columns: small ones first."""
        begin, end = 0, _FIRST_PART
        while begin < len(self):
            yield self[begin:end]
            begin, end = end, min(2 * end, end + _LARGEST_PART)

    def array(self) -> Floats:
        """Return the whole table as a new array (n, d)."""
        matrix = np.empty(self.shape, dtype=self.dtype)
        for rows, block in self.row_blocks():
            matrix[rows] = block
        return matrix

    @abstractmethod
    def sampled(self, rows: NDArray[np.uint32] | None, team: ThreadTeam) -> BlockTable:
        """Return the table of some rows, or of all, whose columns threads read fast."""

    @abstractmethod
    def map_blocks(self, work: Work, team: ThreadTeam) -> None:
        """Let threads work on small dense blocks, which begin at every eighth column at most."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return memory for values of the rows, on disk if the table is."""
        return np.empty(shape, dtype=dtype)

    @abstractmethod
    def __getitem__(self, rows: Any) -> BlockTable:
        """Return the table of some of the rows."""

    @abstractmethod
    def column(self, k: int) -> Floats:
        """Return column ``k``, (n,) float64 or float32."""

    @abstractmethod
    def row_blocks(self, columns: Chosen = None) -> Blocks:
        """Yield dense blocks (m, n_columns) of 16 MiB of all rows, with the chosen columns."""


def rows_per_block(n_columns: int) -> int:
    """Return the number of rows of float64 in a block."""
    return max(64, _BLOCK_BYTES // (8 * max(1, n_columns)))


class DenseTable(BlockTable):
    """Some rows of an array, or of columns with individual dtypes, without a copy.

    ``columns``: (n,): Floats, NaN for missing, integers or booleans.  Not modified. ``rows``: Rows
    of the table; ``None`` means all rows.

    ``dtype``: float32 if all columns are float32, otherwise float64.
    """

    def __init__(
        self, columns: NDArray[Any] | Sequence[NDArray[Any]], rows: NDArray[np.uint32] | None = None
    ) -> None:
        self._columns, self._matrix = columns, columns if isinstance(columns, np.ndarray) else None
        self._rows = rows if rows is None or not RowBits.is_smaller(rows) else RowBits(rows)
        arrays = columns if self._matrix is None else [self._matrix]
        single = all(array.dtype == np.float32 for array in arrays)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``"""
        if self._matrix is not None:
            n, d = self._matrix.shape
        else:
            n, d = len(self._columns[0]), len(self._columns)
        return (n if self._rows is None else len(self._rows)), d

    def __getitem__(self, rows: Any) -> DenseTable:
        columns = self._columns
        if self._rows is not None:
            return DenseTable(columns, self._rows[rows])
        if isinstance(rows, slice):
            one = self._matrix
            return DenseTable([each[rows] for each in columns] if one is None else one[rows])
        rows = np.asarray(rows)
        if rows.dtype.kind != "u":
            rows = np.arange(len(self), dtype=ROW)[rows]
        return DenseTable(columns, rows.astype(ROW, copy=False))

    def column(self, k: int) -> Floats:
        """Return column ``k``, (n,) float64 or float32."""
        values = self._columns[k] if self._matrix is None else self._matrix[:, k]
        values = values if self._rows is None else values[self._rows[:]]
        return values.astype(self.dtype, copy=False)

    def sampled(self, rows: NDArray[np.uint32] | None, team: ThreadTeam) -> DenseTable:
        """Return the table of some rows, or of all, whose columns threads read fast."""
        if rows is None and self._rows is None:
            return self
        table = self if rows is None else self[rows]
        found = np.empty(table.shape, dtype=self.dtype, order="F")

        def copy(begin: int) -> None:
            end = min(begin + _COPIED_ROWS, len(found))
            found[begin:end] = table.block(begin, end)

        team.map(copy, range(0, len(found), _COPIED_ROWS))
        return DenseTable(found)

    def map_blocks(self, work: Work, team: ThreadTeam) -> None:
        """Let threads work on blocks of rows."""
        n = len(self)

        def on_rows(begin: int) -> None:
            work(self.block(begin, min(begin + _ROWS_OF_WORK, n)), begin, 0)

        team.map(on_rows, range(0, n, _ROWS_OF_WORK))

    def block(self, begin: int, end: int) -> Floats:
        """Return the rows ``[begin, end)``, (end - begin, d) float64 or float32, C-ordered."""
        matrix = self._matrix
        rows: Any = slice(begin, end) if self._rows is None else self._rows[begin:end]
        if matrix is not None:
            if self._rows is None or not matrix.flags.c_contiguous:
                block = matrix[rows]
            else:
                # Copies whole rows, unlike [rows]; of an array in another order, it would copy all.
                block = matrix.take(rows, axis=0)
            return np.ascontiguousarray(block, dtype=self.dtype)
        block = np.empty((end - begin, len(self._columns)), dtype=self.dtype)
        for k, column in enumerate(self._columns):
            block[:, k] = column[rows]
        return block

    def row_blocks(self, columns: Chosen = None) -> Blocks:
        """Yield dense blocks (m, n_columns) of 16 MiB of all rows, with the chosen columns."""
        n, d = self.shape
        step = rows_per_block(d)
        every = columns is None or len(columns) == d
        for begin in range(0, n, step):
            end = min(begin + step, n)
            block = self.block(begin, end)
            yield slice(begin, end), block if every else np.ascontiguousarray(block[:, columns])


def as_table(X: object) -> Any:
    """Return an array as a table, so that taking rows copies none; other inputs are unchanged."""
    return DenseTable(X) if isinstance(X, np.ndarray) else X
