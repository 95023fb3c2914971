"""Symmetric Gram matrices, of which only the lower triangle is evaluated and stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.kernels.base import Kernel
from hilboost.kernels.gram import fill, row_blocks

_ROWS = 512
_COLUMNS = 1024  # a tile is read twice, the second time from the cache
_ON_A_DEVICE = 4096  # rows and columns of a tile there; each product takes microseconds to start


@dataclass
class SymmetricGram:
    """``K = [k(a_i, a_j)]``, (n, n), as a linear map.

    Row block i is stored as ``K[i, : end of i]``.  This takes half the memory, half the
    evaluations, and one pass over the values in a product.

    Parameters
    ----------
    kernel : Kernel
    A : (n, d) array
    memory : float
        Maximum number of bytes of the triangle; larger triangles are evaluated again in each
        product.
    team : ThreadTeam
    """

    kernel: Kernel
    A: Array
    memory: float = 0.0
    team: ThreadTeam = field(default_factory=ThreadTeam)
    _triangle: list[Array] | None = field(default=None, init=False, repr=False)

    @property
    def precision(self) -> str:
        """Dtype of the kernel values."""
        return array_api.precision(self.A)

    @property
    def n_bytes(self) -> float:
        """Size of the triangle."""
        n = float(self.A.shape[0])
        return 0.5 * n * (n + (_ON_A_DEVICE if self._on_device else _ROWS)) * self.A.itemsize

    @property
    def _on_device(self) -> bool:
        return not isinstance(self.A, np.ndarray)

    def _blocks(self) -> list[slice]:
        # Process the longest blocks first, so that threads finish together.
        return row_blocks(self.A.shape[0], _ON_A_DEVICE if self._on_device else _ROWS)[::-1]

    def _map(self, function: Callable[[int], Any]) -> list[Any]:
        if self.team.n_threads == 1 or self._on_device:
            return [function(i) for i in range(len(self._blocks()))]
        with array_api.blas_threads(1):
            return self.team.map(function, range(len(self._blocks())))

    def _evaluated(self, rows: slice) -> Array:
        block = array_api.empty((rows.stop - rows.start, rows.stop), self.A, self.precision)
        fill(block, self.kernel, self.A[rows], self.A[: rows.stop])
        return block

    def times(self, V: Array) -> Array:
        """Compute ``K V`` for ``V`` (n, r), float64."""
        blocks = self._blocks()
        if self._triangle is None and self.n_bytes <= self.memory:
            self._triangle = self._map(lambda i: self._evaluated(blocks[i]))
        short = array_api.cast(V, self.precision)
        n, r = self.A.shape[0], V.shape[1]
        columns = _ON_A_DEVICE if self._on_device else _COLUMNS

        def multiply(i: int) -> tuple[Array, Array]:
            rows = blocks[i]
            block = self._evaluated(rows) if self._triangle is None else self._triangle[i]
            return _both_products(block, short, rows, columns)

        total = array_api.zeros((n, r), self.A, "float64")
        for rows, (across, down) in zip(blocks, self._map(multiply), strict=True):
            total[rows] += across
            total[: rows.start] += down
        return total


def _both_products(block: Array, short: Array, rows: slice, columns: int) -> tuple[Array, Array]:
    """Compute ``block V`` for its own rows and ``block' V`` for columns left of the diagonal."""
    own = short[rows]
    across = array_api.zeros(tuple(own.shape), own, "float64")
    down = array_api.zeros((rows.start, own.shape[1]), own, "float64")
    for j in range(0, rows.stop, columns):
        tile = block[:, j : j + columns]
        across += tile @ short[j : min(j + columns, rows.stop)]
        left = min(j + columns, rows.start) - j
        if left > 0:
            down[j : j + left] = tile[:, :left].T @ own
    return across, down
