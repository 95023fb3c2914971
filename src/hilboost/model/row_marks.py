"""Hashes of some training rows, by which reports and calibrations recognize them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.reductions.distinct import distinct
from hilboost.tables import BlockTable, as_table

_MARKED = 4096  # different rows, or more if several share a key
_MOST_MARKED, _BLOCK = 2**16, 2**16
_MOST_CELLS = 2**19  # of which all columns are hashed
_KEY_COLUMNS, _CANDIDATES, _SAMPLED, _KEYS = 4, 64, 1000, 500
_CHECKED, _FEWEST = 20_000, 5
_LEAK = 0.1  # share of training rows, above which results are too good


@dataclass(frozen=True)
class RowMarks:
    """Hashes of different rows of a training table; they are not saved in model files.

    A row is marked if its key is small, which depends on its values alone.  Keys are hashes of all
    columns, and in large tables of a few.
    """

    hashes: NDArray[np.uint64]  # (m,) uint64: of the marked rows, ascending
    limit: np.uint64  # largest key of a marked row
    # (k,) int64 or None: columns whose hash is the key; ``None`` means all
    columns: NDArray[np.int64] | None
    by_chance: float  # share of the training rows with marked values that occur more than once

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Mark a training table (n, d).

        Returns RowMarks or None: ``None`` for tables on disk, which are read in order, for large
        sparse tables, and for large tables with few different keys.
        """
        table = as_table(X)
        if not isinstance(table, BlockTable):
            return None
        columns = None
        if table.n_stored > _MOST_CELLS:
            if table.n_stored < table.size:
                return None
            columns = _key_columns(table)
        keys, hashes = np.empty(0, np.uint64), np.empty(0, np.uint64)
        counts = np.empty(0, np.int64)
        limit = np.uint64(2**64 - 1)
        for begin in range(0, len(table), _BLOCK):
            block = table[begin : begin + _BLOCK]
            new = block.row_hashes(columns)
            near = np.flatnonzero(new <= limit)
            different = distinct(np.concatenate([keys, new[near]]))
            if len(different) > _MARKED:
                limit = different[_MARKED - 1]
                kept = keys <= limit
                keys, hashes, counts = keys[kept], hashes[kept], counts[kept]
                near = near[new[near] <= limit]
            found = new[near] if columns is None else block[near].row_hashes()
            both, first, number = np.unique(np.concatenate([hashes, found]), True, True)
            counts = np.bincount(number, np.concatenate([counts, np.ones(len(found))]))
            keys, hashes = np.concatenate([keys, new[near]])[first], both
            if len(hashes) > _MOST_MARKED:
                return None
        return cls(hashes, limit, columns, float(1 - (counts == 1).sum() / counts.sum()))

    def share_of(self, X: Any) -> float:
        """Estimate the share of the rows of a table (m, d) that are training rows.

        The share is exact if the training data have at most 4,096 different rows and ``X`` has at
        most 20,000, and 0 if ``X`` has too few rows to estimate it.
        """
        table = as_table(X)
        table = table[_spaced(len(table), _CHECKED)]
        rows = np.flatnonzero(table.row_hashes(self.columns) <= self.limit)
        if len(rows) < min(_FEWEST, len(table)):
            return 0.0
        return float(np.isin(table[rows].row_hashes(), self.hashes).mean())

    def leaked_share(self, X: Any) -> float:
        """Estimate the share of training rows, or 0 if as many rows of new data would recur.

        A new row recurs with about the probability that a training row occurs twice (Good 1953).
        """
        share, chance = self.share_of(X), self.by_chance
        noise = 3 * np.sqrt(chance * (1 - chance) / min(len(as_table(X)), _CHECKED))
        return share if share > chance + max(_LEAK, noise) else 0.0


def _spaced(n: int, most: int) -> NDArray[np.intp]:
    """Numbers of at most ``most`` of ``n`` rows or columns."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _key_columns(table: BlockTable) -> NDArray[np.int64]:
    """Few columns with many different values in a sample of rows, ascending."""
    sample = table[_spaced(len(table), _SAMPLED)]
    candidates = _spaced(table.shape[1], _CANDIDATES)
    counts = np.array([len(np.unique(sample.column(int(k)))) for k in candidates])
    order = np.argsort(-counts, kind="stable")[:_KEY_COLUMNS]
    enough = np.cumprod(counts[order].astype(np.float64)) >= _KEYS
    chosen = order[: 1 + int(np.argmax(enough))] if enough.any() else order
    return np.sort(candidates[chosen]).astype(np.int64)
