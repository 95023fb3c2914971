"""Ascending numbers of many rows, in one bit for each row of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import ROW

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
