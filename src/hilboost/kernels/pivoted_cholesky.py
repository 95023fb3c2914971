"""Pivoted Cholesky factors of Gram matrices: low-rank approximations ``K ≈ Φ Φ'``.

The greedy choice of pivots selects in each step the row with the largest residual, so that the
trace of the residual decreases fast (Harbrecht, Peters and Schneider 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import DataWarning, InvalidData, NotPositive, warn_caller
from hilboost.core.exchange import RowShare

_ROWS_CHECKED = 2000
_MOST_COLUMNS = 4096
_ROUNDING = 1e-8  # of the largest diagonal entry
_ALMOST = 1.0 - 1e-9  # of a remainder, which is rounded


@dataclass(frozen=True)
class GramFactor:
    """``K ≈ Φ Φ'``."""

    pivots: Ints  # (r,) int64: rows whose columns of ``K`` span the approximation
    codes: Floats  # (n, r) float64: ``Φ``; its rows at ``pivots`` form a lower triangular matrix

    @property
    def triangle(self) -> Floats:
        """The factor ``L`` (r, r) with ``L L' = K[pivots, pivots]``."""
        return self.codes[self.pivots]

    def encode(self, cross: Floats) -> Floats:
        """Encode new objects as points (m, r), from their kernel values with the pivots, (m, r)."""
        return self._solved(cross, 0)

    def weights(self, raw: Floats) -> Floats:
        """Find ``W`` (m, r) with ``raw = W Φ[pivots]``: points as combinations of the pivots."""
        return self._solved(raw, 1)

    def _solved(self, rows: Floats, trans: int) -> Floats:
        if rows.shape[1] == 0:
            return np.empty((len(rows), 0))
        return np.ascontiguousarray(
            scipy.linalg.solve_triangular(self.triangle, rows.T, lower=True, trans=trans).T
        )


def factor_gram(
    gram: Floats, tolerance: float = 0.0, max_rank: int | None = None, what: str = "the kernel"
) -> GramFactor:
    """Factor a whole Gram matrix, except for a fraction of its trace; 0 is exact up to rounding.

    Cost O(n³) at worst, in LAPACK's blocked ``pstrf``; memory 2 n² numbers.
    """
    check_symmetric(gram, what)
    n = len(gram)
    largest = float(gram.diagonal().max(initial=0.0))
    found, order, rank, _ = scipy.linalg.lapack.dpstrf(
        gram, lower=1, tol=max(n * np.finfo(float).eps * largest, 0.0)
    )
    order = order.astype(np.int64) - 1
    rank = int(rank) if largest > 0 else 0
    lower = np.tril(found[:, :rank])
    left = gram.trace() - np.cumsum((lower**2).sum(axis=0))
    enough = np.flatnonzero(left <= tolerance * gram.trace())
    if tolerance > 0 and len(enough):
        rank = int(enough[0]) + 1
    if max_rank is not None:
        rank = min(rank, max_rank)
    codes = np.empty((n, rank))
    codes[order] = lower[:, :rank]
    factor = GramFactor(order[:rank], codes)
    _check_positive(gram, factor, largest, what)
    return factor


def factor_columns(
    diagonal: Floats,  # (n,) float64
    column: Callable[[int], Floats],  # ``column(i)`` is ``K[:, i]``, (n,)
    tolerance: float,  # fraction of the trace that may be omitted
    # ``None`` means 4,096, with a warning if more than ``tolerance`` is omitted
    max_rank: int | None = None,
    what: str = "the kernel",  # name of the matrix in error messages
    # A block of rows whose entries ``diagonal`` and ``column`` return; other workers have
    # the others
    share: RowShare | None = None,
) -> GramFactor:  # with all rows
    """Factor a Gram matrix from single columns, for matrices that do not fit into memory.

    Cost O(n r²), memory n r numbers.
    """
    here = _RowsHere(len(diagonal), share)
    refuse_unfinished(diagonal, what, here.first)
    left = diagonal.astype(np.float64, copy=True)
    first = here.summary(left)
    _refuse_negative(left, first.value, what, here.first)
    codes = np.zeros((min(here.n_rows, _MOST_COLUMNS if max_rank is None else max_rank), len(left)))
    pivots: list[int] = []

    def enough(found: _Remainder) -> bool:
        return bool(
            found.value <= here.n_rows * np.finfo(float).eps * first.value
            or _ALMOST * found.trace <= tolerance * first.trace
        )

    found = first
    while len(pivots) < len(codes) and not enough(found):
        k, pivot = len(pivots), found.row
        values = column(pivot)
        refuse_unfinished(values, what, here.first)
        new = values - here.of_row(codes[:k], pivot) @ codes[:k]
        solved = here.positions(pivots)
        _check_solved(values, new, solved, (here.first, pivot), what)
        new /= np.sqrt(found.value)
        new[solved] = 0.0
        codes[k] = new
        left -= new**2
        left[here.positions([pivot])] = 0.0
        _refuse_negative(left, first.value, what, here.first)
        np.maximum(left, 0.0, out=left)
        pivots.append(pivot)
        found = here.summary(left)
    if max_rank is None and not enough(found):
        _warn_of_low_rank(len(pivots), found.trace / first.trace, tolerance, what)
    chosen = np.array(pivots, dtype=np.int64)
    return GramFactor(chosen, here.of_all(np.ascontiguousarray(codes[: len(pivots)].T)))


class _Remainder(NamedTuple):
    """The largest entry of the diagonal of a residual, its row, and the sum of all entries."""

    value: float
    row: int
    trace: float


class _RowsHere:
    """A block of rows; other workers may have further rows."""

    def __init__(self, n: int, share: RowShare | None) -> None:
        self._share, self._n = share, n
        self.first = 0 if share is None or not n else int(share.numbers[0])
        self.n_rows = n if share is None else share.n_rows

    def summary(self, left: Floats) -> _Remainder:
        """Of the diagonal of the residual; the first of rows that are equal up to rounding."""
        row = _first_largest(left) if len(left) else 0
        largest = float(left[row]) if len(left) else 0.0
        own = np.array([[largest, self.first + row, left.sum()]])
        if self._share is not None:
            own = self._share.exchange.gathered(own)
        best = own[_first_largest(own[:, 0])]
        return _Remainder(float(best[0]), int(best[1]), float(own[:, 2].sum()))

    def positions(self, rows: Sequence[int]) -> Ints:
        """Positions of those rows that are here."""
        found = np.array(rows, dtype=np.int64) - self.first
        return found[(found >= 0) & (found < self._n)]

    def of_row(self, codes: Floats, row: int) -> Floats:
        """The column (k,) of codes (k, n) of a row, which may be elsewhere."""
        position = self.positions([row])
        own = codes[:, position].sum(axis=1)
        return own if self._share is None else self._share.exchange.added(own)

    def of_all(self, codes: Floats) -> Floats:
        """Codes (n, r) of the rows of all workers."""
        return codes if self._share is None else self._share.exchange.gathered(codes)


def _first_largest(values: Floats) -> int:
    """Position of the first value that is the largest up to rounding."""
    return int(np.argmax(values >= _ALMOST * values.max()))


def check_symmetric(gram: Floats, what: str) -> None:
    """Reject NaN and matrices that are not symmetric."""
    refuse_unfinished(gram, what)
    allowed = _ROUNDING * float(np.abs(gram).max(initial=0.0))
    for begin in range(0, len(gram), 1024):
        block = np.abs(gram[begin : begin + 1024] - gram[:, begin : begin + 1024].T)
        if block.max(initial=0.0) > allowed:
            i, j = divmod(int(block.argmax()), len(gram))
            i += begin
            raise _not_symmetric(i, j, gram[i, j], gram[j, i], what)


def _check_solved(
    values: Floats, left: Floats, solved: Ints, at: tuple[int, int], what: str
) -> None:
    """Check that nothing of a column is left in the rows of earlier pivots.

    ``at`` is the number of the first row that is here, and that of the column.
    """
    gap = np.abs(left[solved])
    if gap.max(initial=0.0) > _ROUNDING * np.abs(values).max(initial=0.0):
        i = int(solved[gap.argmax()])
        raise _not_symmetric(at[0] + i, at[1], values[i], values[i] - left[i], what)


def _not_symmetric(i: int, j: int, value: float, mirrored: float, what: str) -> InvalidData:
    return InvalidData(
        f"{what} is not symmetric: k({i}, {j}) = {value:.6g} and k({j}, {i}) = {mirrored:.6g}. "
        "Use a symmetric matrix, such as (K + K.T) / 2."
    )


def _check_positive(gram: Floats, factor: GramFactor, largest: float, what: str) -> None:
    """Check that the residual is positive semidefinite: ``|R_ij|² <= R_ii R_jj``."""
    n = len(gram)
    left = gram.diagonal() - (factor.codes**2).sum(axis=1)
    slack = _ROUNDING * max(largest, float(np.abs(gram).max(initial=0.0)))
    row = int(left.argmin()) if n else 0
    bad = n > 0 and left[row] < -slack
    if not bad and n:
        step = max(1, n // _ROWS_CHECKED)
        rest = gram[::step] - factor.codes[::step] @ factor.codes.T
        # For a diagonal entry that is zero up to rounding, entries may be as large as its root.
        bound = np.sqrt(np.maximum(left, 0.0) + n * np.finfo(float).eps * largest)
        excess = np.abs(rest) - bound[::step, None] * bound
        worst = int(excess.argmax())
        bad = bool(excess.flat[worst] > slack)
        row = step * (worst // n)
    if bad:
        raise _not_positive(row, what)


def refuse_unfinished(values: Floats, what: str, first: int = 0) -> None:
    """Reject NaN and infinity; ``first`` is the number of the first row."""
    if not np.isfinite(values).all():
        row = first + int(np.argwhere(~np.isfinite(values))[0, 0])
        raise InvalidData(
            f"{what} contains NaN or infinity in row {row}; its values must be finite."
        )


def _refuse_negative(left: Floats, largest: float, what: str, first: int) -> None:
    if len(left) and left.min() < -_ROUNDING * max(largest, float(np.abs(left).max())):
        raise _not_positive(first + int(left.argmin()), what)


def _not_positive(row: int, what: str) -> NotPositive:
    return NotPositive(
        f"{what} is not positive semidefinite (detected in row {row}); use a kernel that is, or "
        "add a constant to the diagonal."
    )


def _warn_of_low_rank(rank: int, omitted: float, tolerance: float, what: str) -> None:
    warn_caller(
        f"{what} is approximated by {rank} columns, which omit {omitted:.2%} of its trace, more "
        f"than tolerance={tolerance:g}. Increase max_rank or tolerance.",
        DataWarning,
    )
