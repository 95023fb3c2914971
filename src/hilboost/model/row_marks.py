"""Hashes of some training rows, by which reports, calibrations and fits recognize them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.target import Target
from hilboost.reductions.rows import of_all_workers
from hilboost.tables.blocks import BlockTable, as_table

_MARKED = 4096
_KEY_COLUMNS = 2
_CHECKED, _FEWEST = 20_000, 5
_LEAK = 0.1  # share of training rows, above which results are too good
_ALL = np.uint64(2**64 - 1)
_LOW = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


@dataclass(frozen=True)
class RowMarks:
    """The smallest hashes of the different rows of a training table.

    The upper half of a hash, the key, is of two columns, so that most rows of a large table need
    no hash of all columns, which is the lower half.
    """

    hashes: NDArray[np.uint64]  # (m,) uint64: ascending
    limit: np.uint64  # rows with larger hashes are unknown
    n_rows: int  # number of training rows with these hashes
    n_repeated: int  # number of these whose hash occurs more than once

    @classmethod
    def of(cls, X: object, target: Target | None = None, n_threads: int = 1) -> Self:
        """Mark a training table (n, d); the rows of the target may be divided among workers."""
        hashes, counts, limit = np.empty(0, np.uint64), np.empty(0, np.int64), _ALL
        with ThreadTeam(n_threads) as team:
            for part in as_table(X).parts():
                new = _hashes_up_to(limit, part, team)
                ones = np.ones(len(new), np.int64)
                hashes, counts, limit = _smallest(
                    np.concatenate([hashes, new]), np.concatenate([counts, ones])
                )
        if target is not None and target.is_divided:
            hashes, counts, limit = _smallest(
                of_all_workers(hashes, target), of_all_workers(counts, target)
            )
        n_rows = int(counts.sum())
        return cls(hashes, limit, n_rows, n_rows - int((counts == 1).sum()))

    def first(self, most: int) -> RowMarks:
        """Return at most this number of marks, with the counts of all."""
        if len(self.hashes) <= most:
            return self
        return replace(self, hashes=self.hashes[:most], limit=self.hashes[most - 1])

    def share_of(self, X: object) -> float:
        """Estimate the share of the rows of a table (m, d) that are training rows.

        The share is exact if all training rows have marks and ``X`` has at most 20,000 rows, and 0
        if ``X`` has too few rows to estimate it.
        """
        n_near, n_known = self._known(X, None)
        return n_known / n_near if n_near else 0.0

    def leaked_share(self, X: object, target: Target | None = None) -> float:
        """Estimate the share of training rows, or 0 if as many rows of new data would recur.

        A new row recurs with about the probability that a training row occurs twice, whose error
        has about the variance below (Good 1953).  The rows of the target may be divided among
        workers.
        """
        n_near, n_known = self._known(X, target)
        if not n_near:
            return 0.0
        share, chance = n_known / n_near, self.n_repeated / self.n_rows
        variance = chance * (1 - chance) / n_near + chance * (2 - chance) / self.n_rows
        return share if share > chance + max(_LEAK, 3 * np.sqrt(variance)) else 0.0

    def _known(self, X: object, target: Target | None) -> tuple[int, int]:
        """Count the rows up to the limit, or none if they are few, and the training rows."""
        table = as_table(X)
        table = table[_spaced(len(table), _CHECKED)]
        found = _hashes_up_to(self.limit, table)
        counts = np.array([[len(table), len(found), np.isin(found, self.hashes).sum()]])
        if target is not None:
            counts = of_all_workers(counts, target)
        n, n_near, n_known = counts.sum(axis=0).tolist()
        return (n_near, n_known) if n_near >= min(_FEWEST, n) else (0, 0)


def _spaced(n: int, most: int) -> NDArray[np.intp]:
    """Numbers of at most ``most`` of ``n`` rows or columns."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _hashes_up_to(
    limit: np.uint64, table: BlockTable, team: ThreadTeam | None = None
) -> NDArray[np.uint64]:
    """Hash the rows whose hash is at most the limit, (m,)."""
    keys = table.row_hashes(_spaced(table.shape[1], _KEY_COLUMNS), team)
    near = np.flatnonzero(keys >> _HALF <= limit >> _HALF)
    hashes = keys[near] & ~_LOW | table[near].row_hashes(None, team) & _LOW
    return hashes[hashes <= limit]


def _smallest(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], np.uint64]:
    """Return the smallest different hashes, ascending, their counts, and the limit of hashes."""
    different, number = np.unique(hashes, return_inverse=True)
    sums = np.bincount(number, counts, len(different)).astype(np.int64)
    limit = different[_MARKED - 1] if len(different) > _MARKED else _ALL
    return different[:_MARKED], sums[:_MARKED], limit
