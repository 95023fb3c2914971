"""Hashes of some training rows, by which a report recognizes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.tables import BlockTable, DenseTable

_MARKED = 4096
_CHECKED = 20_000
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class RowMarks:
    """Hashes of evenly spaced rows of a training table; they are not saved in model files.

    Attributes
    ----------
    hashes : (m,) uint64
        Of up to 4,096 rows.
    n_rows : int
        Number of training rows.
    """

    hashes: NDArray[np.uint64]
    n_rows: int

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Mark a training table (n, d); ``None`` for tables on disk, which are read in order."""
        table = _table(X)
        if not isinstance(table, BlockTable):
            return None
        return cls(_hashes(table[_spaced(len(table), _MARKED)]), len(table))

    def share_of(self, X: Any) -> float:
        """Estimate the share of the rows of a table (m, d) that are training rows.

        The estimate is exact if the training data have at most 4,096 different rows and ``X`` has
        at most 20,000.
        """
        table = _table(X)
        rows = _hashes(table[_spaced(len(table), _CHECKED)])
        found = np.isin(rows, self.hashes).mean()
        return min(1.0, float(found) * self.n_rows / len(self.hashes))


def _table(X: Any) -> Any:
    return DenseTable(X) if isinstance(X, np.ndarray) else X


def _spaced(n: int, most: int) -> NDArray[np.intp]:
    """Numbers of at most ``most`` of ``n`` rows."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _hashes(table: BlockTable) -> NDArray[np.uint64]:
    """Hash each row, (m,), so that float32 and float64 of the same values have the same hash."""
    hashes = np.zeros(len(table), np.uint64)
    for rows, block in table.row_blocks(np.arange(table.shape[1])):
        values = np.asarray(block, np.float64)
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
        for column in bits.T:
            mixed = (hashes[rows] ^ column) * _FACTOR
            hashes[rows] = mixed ^ (mixed >> np.uint64(29))
    return hashes
