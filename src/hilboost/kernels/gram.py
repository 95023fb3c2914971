"""Tiled Gram matrices, kept in memory if they fit into a given budget.

A tile fits into the cache and takes one matrix product and a few passes over it.  Kernel values
are float32 (or float64, if requested); sums over rows are float64.  The tiles, and the order in
which their results are added, do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.errors import InvalidParameter
from hilboost.core.exchange import Exchange
from hilboost.kernels.base import Kernel

_DIGITS = 52
_SMALLEST_EXPONENT = -800
_TILE_ROWS = 256
_TILE_COLUMNS = 1024
_FEW_COLUMNS = 16  # where calls would take longer than the numbers
_ROWS_AT_ONCE = 1024
_ROWS_ON_A_DEVICE = 4096
_ROWS_OF_A_WORKER = 4096  # and of a block of sums; a multiple of the others
_COLUMNS_OF_A_SUM = 4096  # with more terms, float32 products are too inaccurate for small λ


class OrderFreeSum:
    """A sum of float64 arrays that does not depend on the order of the terms.

    Terms are rounded to a grid so coarse that adding them is exact, and what is cut off to a finer
    one::

        term    =  high  +  low  +  less than 2**-80 of the bound
        sum     =  sum of all high  +  sum of all low,    both exact, rounded once

    Workers that add up some of the terms each, and then their sums, find the bits of one process.

    ``beside``: an array of the same library and device. ``bound``: bound of the sum of the absolute
    values; if it is exceeded, rounding depends on the order. ``n_terms``: maximum number of terms.
    """

    def __init__(self, shape: tuple[int, ...], beside: Array, bound: float, n_terms: int) -> None:
        bound = min(max(bound, 2.0**_SMALLEST_EXPONENT), 2.0**900)
        exponent = math.frexp(bound)[1]
        self._coarse = math.ldexp(1.5, exponent)  # its last digit is the coarse grid
        finer = exponent - _DIGITS + max(n_terms, 1).bit_length()
        self._fine = math.ldexp(1.5, finer)
        self._high = array_api.zeros(shape, beside, "float64")
        self._low = array_api.zeros(shape, beside, "float64")

    def add(self, term: Array, rows: slice = slice(None)) -> None:
        """Add a term, which is overwritten, to the whole sum or to some of its rows."""
        high = term + self._coarse
        high -= self._coarse
        self._high[rows] += high
        term -= high
        term += self._fine
        term -= self._fine
        self._low[rows] += term

    def total(self, exchange: Exchange | None) -> Array:
        """Return the sum over the terms of all workers."""
        if exchange is None:
            return self._high + self._low
        parts = np.stack([array_api.to_numpy(self._high), array_api.to_numpy(self._low)])
        high, low = exchange.added(parts)
        return array_api.like(high + low, self._high, "float64")


def require_memory(
    needed: float, budget: float, what: str, fewer: str = "basis vectors (n_basis)"
) -> None:
    """Reject a memory budget that is too small."""
    if needed > budget:
        raise InvalidParameter(
            f"memory_budget is {_mebibytes(budget)} MiB, but {what} requires {_mebibytes(needed)} "
            f"MiB. Increase memory_budget, or use fewer {fewer}."
        )


def _mebibytes(n_bytes: float) -> int:
    return int(-(-n_bytes // 2**20))


def fill(out: Array, kernel: Kernel, A: Array, B: Array) -> None:
    """Compute ``out[i, j] = k(a_i, b_j)``, tile by tile."""
    for rows, columns in _tiles(out, A.shape[1]):
        out[rows, columns] = kernel.block(A[rows], B[columns])


def _tiles(out: Array, d: int) -> list[tuple[slice, slice]]:
    """Rows and columns of each tile of a block, for rows of length ``d``; one tile on a device."""
    if array_api.device_of(out) is not None:
        return [(slice(None), slice(None))]
    wide = d > 64  # the product of long rows dominates, so larger tiles are faster
    tile_rows, tile_columns = (1024, 2048) if wide else (_TILE_ROWS, _TILE_COLUMNS)
    if out.shape[1] <= _FEW_COLUMNS:
        tile_rows = _ROWS_AT_ONCE
    blocks = row_blocks(out.shape[1], tile_columns)
    return [(rows, columns) for rows in row_blocks(out.shape[0], tile_rows) for columns in blocks]


def row_blocks(end: int, size: int | None = None, first: int = 0) -> list[slice]:
    """Split the rows from ``first`` to ``end`` into slices of ``size`` rows."""
    size = _ROWS_AT_ONCE if size is None else size
    return [slice(i, min(i + size, end)) for i in range(first, end, size)]


@dataclass
class Gram:
    """``K = [k(a_i, b_j)]``, (a, b), as a linear map."""

    kernel: Kernel
    A: Array  # (a, d) array: its dtype determines that of the kernel values
    B: Array  # (b, d) array
    # maximum number of bytes of ``K``; larger matrices are evaluated in blocks on each use
    memory: float = 0.0
    team: ThreadTeam = field(default_factory=ThreadTeam)  # threads that share the blocks of rows
    # other workers that have the same ``A`` and ``B``: each evaluates some rows of ``K``
    exchange: Exchange | None = None
    _whole: Array | None = field(default=None, init=False, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (a, b)."""
        return self.A.shape[0], self.B.shape[0]

    @property
    def precision(self) -> str:
        """Dtype of the kernel values."""
        return array_api.precision(self.A)

    @property
    def n_bytes(self) -> float:
        """Size of the whole matrix."""
        return float(self.shape[0]) * self.shape[1] * self.A.itemsize

    @property
    def own_rows(self) -> slice:
        """The rows that are evaluated here: whole blocks, so that their tiles do not change."""
        n = self.shape[0]
        if self.exchange is None:
            return slice(0, n)
        rank, n_workers = self.exchange.rank, self.exchange.n_workers
        n_blocks = -(-n // _ROWS_OF_A_WORKER)
        first, last = n_blocks * rank // n_workers, n_blocks * (rank + 1) // n_workers
        return slice(first * _ROWS_OF_A_WORKER, min(last * _ROWS_OF_A_WORKER, n))

    @property
    def own_blocks(self) -> list[slice]:
        """The same rows in blocks; only the last one of all rows is shorter."""
        return row_blocks(self.own_rows.stop, _ROWS_OF_A_WORKER, self.own_rows.start)

    def summed(self, terms: Iterable[Array], r: int, bound: float) -> Array:
        """Add up a product (b, r) for each block of rows, over the rows of all workers.

        The terms are overwritten, and ``bound`` bounds an entry of the product of a row.
        """
        n = self.shape[0]
        total = OrderFreeSum((self.shape[1], r), self.A, n * bound, n)
        for term in terms:
            total.add(term)
        return total.total(self.exchange)

    @cached_property
    def largest(self) -> float:
        """Largest absolute kernel value of a positive semidefinite kernel."""
        ends = (array_api.to_numpy(self.kernel.diag(X)) for X in (self.A, self.B))
        return math.sqrt(math.prod(float(np.abs(d).max(initial=0.0)) for d in ends))

    def rows_of_all(self, own: Array) -> Array:
        """Put results (a', r) of the own rows of all workers together, (a, r)."""
        if self.exchange is None:
            return own
        found = self.exchange.gathered(array_api.to_numpy(own))
        return array_api.like(found, self.A, "float64")

    @property
    def is_kept(self) -> bool:
        """Whether the whole matrix fits into memory and is evaluated only once."""
        return self.n_bytes <= self.memory

    def whole(self) -> Array:
        """Return the matrix, which is evaluated on first use; rows of other workers are empty."""
        if self._whole is None:
            whole = array_api.empty(self.shape, self.A, array_api.precision(self.A))

            def evaluate(rows: slice) -> None:
                self._fill_together(whole[rows], rows)

            self._map(evaluate)
            self._whole = whole
        return self._whole

    def block(self, rows: slice) -> Array:
        """Compute ``K[rows]``."""
        if self.is_kept:
            return self.whole()[rows]
        block = array_api.empty(
            (rows.stop - rows.start, self.shape[1]), self.A, array_api.precision(self.A)
        )
        fill(block, self.kernel, self.A[rows], self.B)
        return block

    @property
    def _adds_tiles(self) -> bool:
        """Whether products are sums over tiles, which stay in the cache."""
        is_double = self.precision == "float64"
        return is_double and not self.is_kept and array_api.is_on_host(self.A)

    def _map(self, function: Callable[[slice], Any]) -> list[Any]:
        on_device = array_api.device_of(self.A) is not None
        size, most = (_ROWS_AT_ONCE, 2.0**26) if not on_device else (_ROWS_ON_A_DEVICE, 2.0**29)
        while size > 64 and size * self.shape[1] * self.A.itemsize > most:
            size //= 2
        blocks = row_blocks(self.own_rows.stop, size, self.own_rows.start)
        if self.team.n_threads == 1 or on_device:
            return [function(rows) for rows in blocks]
        with array_api.one_blas_thread():
            return self.team.map(function, blocks)

    def times(self, V: Array, exactly: bool = False) -> Array:
        """Compute ``K V`` for ``V`` (t, r), float64, with the first t columns of ``K``.

        Products are in the precision of ``K``, or ``exactly`` in float64.
        """
        if self.is_kept:
            self.whole()
        out = array_api.empty((self.shape[0], V.shape[1]), self.A, "float64")
        precision, t = "float64" if exactly else self.precision, V.shape[0]
        short = array_api.cast(V, precision)
        tile = self.kernel.tiles(self.A, self.B) if self._adds_tiles else None

        def multiply(rows: slice) -> None:
            if tile is None:
                out[rows] = _product(array_api.cast(self.block(rows)[:, :t], precision), short)
                return
            for some in row_blocks(rows.stop, _TILE_ROWS, rows.start):
                products = (tile(some, own) @ V[own] for own in row_blocks(t, _TILE_COLUMNS))
                out[some] = sum(products)

        self._map(multiply)
        return self.rows_of_all(out[self.own_rows])

    def transposed_times(self, U: Array, exactly: bool = False) -> Array:
        """Compute ``K' U`` for ``U`` (a, r), float64, with products as in :meth:`times`."""
        if self.is_kept:
            self.whole()
        precision = "float64" if exactly else self.precision
        short = array_api.cast(U, precision)

        def product(rows: slice) -> Array:
            block = array_api.cast(self.block(rows), precision)
            return array_api.cast(block.T @ short[rows], "float64")

        return self.summed(self._map(product), U.shape[1], self.largest * _largest(U))

    def normal_times(self, V: Array, weight: Array | None = None) -> Array:
        """Compute ``K' W K V`` in one pass over the rows, float64."""
        if self.is_kept:
            self.whole()
        short = array_api.cast(V, array_api.precision(self.A))

        def both(rows: slice) -> Array:
            block = self.block(rows)
            product = _product(block, short)
            if weight is not None:
                product *= weight[rows, None]
            return array_api.cast(
                block.T @ array_api.cast(product, array_api.precision(self.A)), "float64"
            )

        column_sums = np.abs(array_api.to_numpy(V)).sum(axis=0)
        of_a_row = self.largest * float(column_sums.max(initial=0.0))
        heaviest = 1.0 if weight is None else _largest(weight)
        bound = self.largest * of_a_row * heaviest
        return self.summed(self._map(both), V.shape[1], bound)

    def sums(self, weight: Array | None, right: Array | None) -> tuple[Array, Array | None]:
        """Compute ``K' W K`` (b, b) and ``K' R`` (b, r) for ``R`` (a, r), summed in float64."""
        if self.is_kept:
            self.whole()
        n, b = self.shape
        heaviest = 1.0 if weight is None else _largest(weight)
        gram = OrderFreeSum((b, b), self.A, n * self.largest**2 * heaviest, n)
        product = None
        if right is not None:
            bound = n * self.largest * _largest(right)
            product = OrderFreeSum((b, right.shape[1]), self.A, bound, n)
        size = 2 ** int(math.log2(min(_ROWS_OF_A_WORKER, max(256, 2**28 // (8 * b)))))
        buffer = None
        for rows in row_blocks(self.own_rows.stop, size, self.own_rows.start):
            if self.is_kept:
                block = self.whole()[rows]
            else:
                if buffer is None:
                    buffer = array_api.empty((size, b), self.A, array_api.precision(self.A))
                block = buffer[: rows.stop - rows.start]
                self._fill_together(block, rows)
            double = array_api.cast(block, "float64")
            if product is not None:
                assert right is not None
                product.add(
                    array_api.product(double.T, array_api.cast(right[rows], "float64"), self.team)
                )
            if weight is not None:
                double = double * array_api.namespace(weight).sqrt(weight[rows])[:, None]
            gram.add(array_api.square(double, self.team))
        return gram.total(self.exchange), product and product.total(self.exchange)

    def _fill_together(self, block: Array, rows: slice) -> None:
        """Evaluate the tiles of a block of rows on all threads, with the same tiles as on one."""
        if self.team.n_threads == 1 or array_api.device_of(block) is not None:
            fill(block, self.kernel, self.A[rows], self.B)
            return
        A = self.A[rows]

        def evaluate(tile: tuple[slice, slice]) -> None:
            block[tile] = self.kernel.block(A[tile[0]], self.B[tile[1]])

        with array_api.one_blas_thread():
            self.team.map(evaluate, _tiles(block, A.shape[1]))


def _largest(values: Array) -> float:
    return float(np.abs(array_api.to_numpy(values)).max(initial=0.0))


def _product(block: Array, short: Array) -> Array:
    """Compute ``block @ short``: float64 sums of float32 products of a few thousand terms."""
    b = block.shape[1]
    total = array_api.cast(block[:, :_COLUMNS_OF_A_SUM] @ short[:_COLUMNS_OF_A_SUM], "float64")
    for j in range(_COLUMNS_OF_A_SUM, b, _COLUMNS_OF_A_SUM):
        total += block[:, j : j + _COLUMNS_OF_A_SUM] @ short[j : j + _COLUMNS_OF_A_SUM]
    return total


def evaluate(kernel: Kernel, A: Array, B: Array, team: ThreadTeam | None = None) -> Array:
    """Evaluate the whole Gram matrix in the dtype of ``A``."""
    return Gram(kernel, A, B, np.inf, team or ThreadTeam()).whole()


def mean_diagonal(kernel: Kernel, X: Array) -> float:
    """Mean absolute value of ``k(x, x)`` over some rows, above zero."""
    return max(float(np.abs(array_api.to_numpy(kernel.diag(X))).mean()), 1e-300)
