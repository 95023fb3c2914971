"""Pivoted Cholesky factors of Gram matrices: low-rank approximations ``K ≈ Φ Φ'``.

The greedy choice of pivots selects in each step the row with the largest residual, so that the
trace of the residual decreases fast (Harbrecht, Peters and Schneider 2012).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import DataWarning, InvalidData, NotPositive

_ROWS_CHECKED = 2000
_MOST_COLUMNS = 4096
_ROUNDING = 1e-8  # of the largest diagonal entry


@dataclass(frozen=True)
class GramFactor:
    """``K ≈ Φ Φ'``.

    Attributes
    ----------
    pivots : (r,) int64
        Rows whose columns of ``K`` span the approximation.
    codes : (n, r) float64
        ``Φ``; its rows at ``pivots`` form a lower triangular matrix.
    """

    pivots: NDArray[np.int64]
    codes: Floats

    @property
    def triangle(self) -> Floats:
        """The factor ``L`` (r, r) with ``L L' = K[pivots, pivots]``."""
        return self.codes[self.pivots]

    def encode(self, cross: Floats) -> Floats:
        """Encode new objects as points (m, r), from their kernel values with the pivots, (m, r)."""
        if cross.shape[1] == 0:
            return np.empty((len(cross), 0))
        return np.ascontiguousarray(
            scipy.linalg.solve_triangular(self.triangle, cross.T, lower=True).T
        )

    def weights(self, raw: Floats) -> Floats:
        """Find ``W`` (m, r) with ``raw = W Φ[pivots]``: points as combinations of the pivots."""
        if raw.shape[1] == 0:
            return np.empty((len(raw), 0))
        return np.ascontiguousarray(
            scipy.linalg.solve_triangular(self.triangle, raw.T, lower=True, trans=1).T
        )


def factor_gram(
    gram: Floats, tolerance: float = 0.0, max_rank: int | None = None, what: str = "the kernel"
) -> GramFactor:
    """Factor a whole Gram matrix.

    Parameters
    ----------
    gram : (n, n) float64
    tolerance : float
        Fraction of the trace that may be omitted; 0 is exact up to rounding.
    max_rank : int or None
    what : str
        Name of the matrix in error messages.

    Returns
    -------
    GramFactor

    Raises
    ------
    InvalidData
        The matrix contains NaN or infinity, or is not symmetric; the message names the rows.
    NotPositive
        The matrix is not positive semidefinite.

    Notes
    -----
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
    diagonal: Floats,
    column: Callable[[int], Floats],
    tolerance: float,
    max_rank: int | None = None,
    what: str = "the kernel",
) -> GramFactor:
    """Factor a Gram matrix from single columns, for matrices that do not fit into memory.

    Parameters
    ----------
    diagonal : (n,) float64
    column : callable
        ``column(i)`` is ``K[:, i]``, (n,).
    tolerance : float
        Fraction of the trace that may be omitted.
    max_rank : int or None
        ``None`` means 4,096, with a warning if more than ``tolerance`` is omitted.
    what : str
        Name of the matrix in error messages.

    Returns
    -------
    GramFactor

    Raises
    ------
    InvalidData
        NaN, infinity or asymmetry is found at the pivots; the message names the rows.
    NotPositive
        The evaluated columns show that the matrix is not positive semidefinite.

    Warns
    -----
    DataWarning
        See ``max_rank``.

    Notes
    -----
    Cost O(n r²), memory n r numbers.
    """
    refuse_unfinished(diagonal, what)
    n = len(diagonal)
    left = diagonal.astype(np.float64, copy=True)
    trace, largest = float(left.sum()), float(left.max(initial=0.0))
    _refuse_negative(left, largest, what)
    codes = np.zeros((min(n, _MOST_COLUMNS if max_rank is None else max_rank), n))
    pivots: list[int] = []

    def enough() -> bool:
        return bool(
            left.max(initial=0.0) <= n * np.finfo(float).eps * largest
            or left.sum() <= tolerance * trace
        )

    while len(pivots) < len(codes) and not enough():
        pivot = int(np.argmax(left))
        k = len(pivots)
        new = _residual(column(pivot), codes[:k], pivots, pivot, what)
        new /= np.sqrt(left[pivot])
        new[pivots] = 0.0
        codes[k] = new
        left -= new**2
        left[pivot] = 0.0
        _refuse_negative(left, largest, what)
        np.maximum(left, 0.0, out=left)
        pivots.append(pivot)
    if max_rank is None and not enough():
        _warn_of_low_rank(len(pivots), left.sum() / trace, tolerance, what)
    chosen = np.array(pivots, dtype=np.int64)
    return GramFactor(chosen, np.ascontiguousarray(codes[: len(pivots)].T))


def check_symmetric(gram: Floats, what: str) -> None:
    """Reject NaN and matrices that are not symmetric.

    Raises
    ------
    InvalidData
    """
    refuse_unfinished(gram, what)
    allowed = _ROUNDING * float(np.abs(gram).max(initial=0.0))
    for begin in range(0, len(gram), 1024):
        block = np.abs(gram[begin : begin + 1024] - gram[:, begin : begin + 1024].T)
        if block.max(initial=0.0) > allowed:
            i, j = divmod(int(block.argmax()), len(gram))
            i += begin
            raise _not_symmetric(i, j, gram[i, j], gram[j, i], what)


def _residual(values: Floats, codes: Floats, pivots: list[int], pivot: int, what: str) -> Floats:
    """Column at ``pivot`` minus its part from earlier pivots; zero in the rows of these."""
    refuse_unfinished(values, what)
    left = values - codes[:, pivot] @ codes
    gap = np.abs(left[pivots])
    if gap.max(initial=0.0) > _ROUNDING * np.abs(values).max():
        i = pivots[int(gap.argmax())]
        raise _not_symmetric(i, pivot, values[i], values[i] - left[i], what)
    return left


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


def refuse_unfinished(values: Floats, what: str) -> None:
    """Reject NaN and infinity.

    Raises
    ------
    InvalidData
        The message names the first row that contains one.
    """
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise InvalidData(
            f"{what} contains NaN or infinity in row {row}; its values must be finite."
        )


def _refuse_negative(left: Floats, largest: float, what: str) -> None:
    if len(left) and left.min() < -_ROUNDING * max(largest, float(np.abs(left).max())):
        raise _not_positive(int(left.argmin()), what)


def _not_positive(row: int, what: str) -> NotPositive:
    return NotPositive(
        f"{what} is not positive semidefinite (detected in row {row}); use a kernel that is, or "
        "add a constant to the diagonal."
    )


def _warn_of_low_rank(rank: int, omitted: float, tolerance: float, what: str) -> None:
    warnings.warn(
        f"{what} is approximated by {rank} columns, which omit {omitted:.2%} of its trace, more "
        f"than tolerance={tolerance:g}. Increase max_rank or tolerance.",
        DataWarning,
        stacklevel=3,
    )
