"""Symmetric Gram matrices; only the lower triangle is evaluated and stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.exchange import Exchange
from hilboost.kernels.base import Kernel
from hilboost.kernels.gram import OrderFreeSum, fill, row_blocks

_ROWS = 512
_COLUMNS = 1024  # a tile is read twice, the second time from the cache
_ON_A_DEVICE = 4096  # rows and columns of a tile there; each product takes microseconds to start


@dataclass
class SymmetricGram:
    """``K = [k(a_i, a_j)]``, (n, n), as a linear map.

    Row block i is stored as ``K[i, : end of i]``.  This takes half the memory, half the
    evaluations, and one pass over the values in a product.
    """

    kernel: Kernel
    A: Array  # (n, d) array
    # maximum number of bytes of the triangle; larger triangles are evaluated again in each product
    memory: float = 0.0
    team: ThreadTeam = field(default_factory=ThreadTeam)
    # other workers that have the same ``A``: each evaluates and stores some row blocks
    exchange: Exchange | None = None
    _triangle: list[Array] | None = field(default=None, init=False, repr=False)

    @property
    def precision(self) -> str:
        """Dtype of the kernel values."""
        return array_api.precision(self.A)

    @property
    def n_bytes(self) -> float:
        """Size of the row blocks that are stored here."""
        sizes = [float(rows.stop - rows.start) * rows.stop for rows in self._blocks()]
        return sum(sizes) * self.A.itemsize

    @property
    def _on_device(self) -> bool:
        return array_api.device_of(self.A) is not None

    def _blocks(self) -> list[slice]:
        # Process the longest blocks first, so that threads finish together.
        blocks = row_blocks(self.A.shape[0], _ON_A_DEVICE if self._on_device else _ROWS)[::-1]
        if self.exchange is None:
            return blocks
        return blocks[self.exchange.rank :: self.exchange.n_workers]

    def _empty_sum(self, V: Array) -> OrderFreeSum:
        """The sum of the products of all row blocks with ``V``."""
        n, r = V.shape
        largest = float(np.abs(array_api.to_numpy(self.kernel.diag(self.A))).max(initial=0.0))
        column_sums = np.abs(array_api.to_numpy(V)).sum(axis=0)
        return OrderFreeSum((n, r), self.A, largest * float(column_sums.max(initial=0.0)), n)

    def _map(self, function: Callable[[int], Any]) -> list[Any]:
        if self.team.n_threads == 1 or self._on_device:
            return [function(i) for i in range(len(self._blocks()))]
        with array_api.one_blas_thread():
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
        columns = _ON_A_DEVICE if self._on_device else _COLUMNS

        total, lock = self._empty_sum(V), Lock()

        def multiply(i: int) -> None:
            rows = blocks[i]
            block = self._evaluated(rows) if self._triangle is None else self._triangle[i]
            across, down = _both_products(block, short, rows, columns)
            with lock:  # the sum does not depend on the order
                total.add(across, rows)
                total.add(down, slice(0, rows.start))

        self._map(multiply)
        return total.total(self.exchange)


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
