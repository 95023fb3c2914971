"""Tables that stay on disk and are read in order, a batch of rows at a time."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core import dtypes
from hilboost.core.disk import reserve
from hilboost.core.dtypes import Floats
from hilboost.tables.blocks import Blocks, BlockTable, Chosen, DenseTable, Work, as_table
from hilboost.tables.encoding import encode
from hilboost.tables.reading import read_table
from hilboost.tables.schema import Schema

Reader = Callable[[Sequence[str]], Iterator[Any]]
"""Yields Arrow tables with the named columns, in the order of the rows; may be called again."""


class FileTable(BlockTable):
    """Some rows of a table on disk."""

    is_on_disk: ClassVar[bool] = True

    def __init__(
        self,
        read: Reader,
        schema: Schema,  # with names
        n_rows: int,  # number of rows on disk
        folder: Path,  # for arrays that are as long as the table
        single: bool = False,  # whether all columns are float32
        # (m,) uint32 or None: ascending; ``None`` means all rows
        rows: NDArray[np.uint32] | None = None,
    ) -> None:
        self._read, self.schema, self._n_rows = read, schema, n_rows
        self._folder, self._single, self._rows = folder, single, rows
        self._stored: dict[int, Floats] = {}  # codes of category columns, (n_rows,)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``"""
        n = self._n_rows if self._rows is None else len(self._rows)
        return n, self.schema.n_columns

    def __getitem__(self, rows: Any) -> FileTable:
        known = np.arange(self._n_rows, dtype=dtypes.ROW) if self._rows is None else self._rows
        found = copy(self)
        found._rows = known[rows]
        return found

    def row_blocks(self, columns: Chosen = None) -> Blocks:
        """Yield dense blocks (m, n_columns) of all rows, with the chosen columns."""
        chosen = range(self.schema.n_columns) if columns is None else columns.tolist()
        names = [self._names[k] for k in chosen if k not in self._stored]
        first, begin = 0, 0
        for batch in self._read(names or self._names[:1]):
            n = int(batch.num_rows)
            rows: Any = slice(None)
            if self._rows is not None:
                low, high = np.searchsorted(self._rows, [first, first + n])
                rows = self._rows[low:high] - dtypes.ROW(first)
            first += n
            if self._rows is not None and not len(rows):
                continue
            values = self._values(batch, chosen, slice(first - n, first))[rows]
            yield slice(begin, begin + len(values)), np.ascontiguousarray(values)
            begin += len(values)

    def _values(self, batch: Any, columns: Sequence[int], rows: slice) -> Floats:
        """Values of a batch, which has the columns whose codes are not stored."""
        values = np.empty((batch.num_rows, len(columns)), dtype=self.dtype)
        read = [i for i, k in enumerate(columns) if k not in self._stored]
        if read:
            table = read_table(batch)
            assert table is not None
            found = encode(table, [self.schema.columns[columns[i]] for i in read])
            if len(read) == len(columns):
                return found.astype(self.dtype, copy=False)
            values[:, read] = found
        for i, k in enumerate(columns):
            if k in self._stored:
                values[:, i] = self._stored[k][rows]
        return values

    def with_stored_codes(self) -> FileTable:
        """Return the table with the codes of all rows in files, as encoding text is slow."""
        table = copy(self)
        table._rows = None
        stored = {
            k: self.empty((self._n_rows,), np.float32 if len(levels) < 2**24 else np.float64)
            for k, levels in self.schema.levels
        }
        for rows, values in table.row_blocks(np.array(list(stored), dtype=np.int64)):
            for codes, found in zip(stored.values(), values.T, strict=True):
                codes[rows] = found
        table._stored, table._rows = stored, self._rows
        return table

    @property
    def _names(self) -> Sequence[str]:
        assert self.schema.names is not None
        return self.schema.names

    def column(self, k: int) -> Floats:
        """Return column ``k``, (n,) float64 or float32."""
        parts = [values[:, 0] for _, values in self.row_blocks(np.array([k]))]
        return np.concatenate([np.empty(0, self.dtype), *parts])

    def parts(self) -> Iterator[BlockTable]:
        """Yield tables of consecutive rows, of all columns."""
        for _, values in self.row_blocks():
            yield DenseTable(values)

    def sampled(self, rows: NDArray[np.uint32] | None, team: ThreadTeam) -> DenseTable:
        """Return the table of some rows, or of all, in memory."""
        return DenseTable((self if rows is None else self[rows]).array())

    def map_blocks(self, work: Work, team: ThreadTeam) -> None:
        """Let threads work on the rows of one batch after the other."""
        for rows, values in self.row_blocks():

            def on_rows(block: Floats, begin: int, column: int, first: int = rows.start) -> None:
                work(block, first + begin, column)

            DenseTable(values).map_blocks(on_rows, team)

    def with_schema(self, schema: Schema) -> FileTable:
        """Return the table with other levels."""
        table = copy(self)
        table.schema, table._stored = schema, {}
        return table.with_stored_codes() if self._stored else table

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array in a file without a name, whose space is free once nothing uses it."""
        with tempfile.TemporaryFile(dir=self._folder) as file:
            reserve(file, math.prod(shape) * np.dtype(dtype).itemsize, self._folder)
            return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))


class EncodedTable(FileTable):
    """A table on disk whose blocks of codes are encoded when they are read.

    Additional columns (n, w) are written to disk.
    """

    def __init__(
        self, codes: FileTable, encode_block: Callable[[Floats], Floats], columns: Floats
    ) -> None:
        super().__init__(
            codes._read, codes.schema, codes._n_rows, codes._folder, codes._single, codes._rows
        )
        self._codes, self._encode_block = codes, encode_block
        self._columns = columns
        if columns.size:
            self._columns = self.empty(columns.shape, columns.dtype)
            self._columns[:] = columns

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d + w)``"""
        n, d = self._codes.shape
        return n, d + self._columns.shape[1]

    def __getitem__(self, rows: Any) -> EncodedTable:
        return EncodedTable(self._codes[rows], self._encode_block, self._columns[rows])

    def row_blocks(self, columns: Chosen = None) -> Blocks:
        """Yield dense blocks (m, n_columns) of all rows, with the chosen columns."""
        for rows, codes in self._codes.row_blocks():
            values = np.column_stack([self._encode_block(codes), self._columns[rows]])
            yield rows, values if columns is None else np.ascontiguousarray(values[:, columns])


def of_used_levels(
    X: Floats, schema: Schema, count: Callable[[Floats, int], Floats]
) -> tuple[Floats, Schema]:
    """Drop the levels that do not occur; an array is modified in place."""
    levels = []
    for k, own in schema.levels:
        n_rows = count(column_of(X, k), len(own))
        levels.append((k, tuple(level for level, n in zip(own, n_rows, strict=True) if n)))
    used = replace(schema, levels=tuple(levels))
    table = as_table(X)
    return (table.with_schema(used) if table.is_on_disk else recoded(X, schema, used)), used


def recoded(X: Floats, schema: Schema, other: Schema) -> Floats:
    """Convert the codes of categories to another schema, in place."""
    levels = dict(schema.levels)
    for k, wanted in other.levels:
        place = {level: code for code, level in enumerate(wanted)}
        codes = np.array([place.get(level, np.nan) for level in levels.get(k, ())], dtype=X.dtype)
        known = X[:, k] >= 0
        X[known, k] = codes[X[known, k].astype(np.int64)]
    return X


def column_of(table: Floats | BlockTable, k: int) -> Floats:
    """Return a column of an array (n, d), or of a table on disk, (n,)."""
    return as_table(table).column(k)


def encoded_table(
    codes: Floats | FileTable, encode_block: Callable[[Floats], Floats], columns: Floats
) -> Any:
    """Encode a table (n, d) by blocks of rows and add columns (n, w); on disk if the table is."""
    table: Any = codes
    if as_table(codes).is_on_disk:
        return EncodedTable(table, encode_block, columns)
    return np.column_stack([encode_block(table), columns])
