"""Matrix routines that overwrite arrays, and release the global interpreter lock.

SciPy is linked to the BLAS and LAPACK that provide them.  SciPy's own functions hold the lock, so
that of several threads only one would compute at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats

_TILE, _ROWS = 256, 128  # columns of a tile, and rows that one thread takes at a time
_LARGE, _TILE_OF_SMALL = 1500, 128
_MOST_OF_ONE_TILE = 640  # columns, of a matrix that two threads would factor no faster than one
_TILE_OF_SUMS = 512
_TILE_OF_INVERSE = 96  # of smaller matrices
_LETTERS = {np.dtype(np.float64): "d", np.dtype(np.float32): "s"}


@cache
def _routine(library: str, name: str, n_arguments: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _call(library: str, name: str, dtype: np.dtype[Any], *arguments: Any) -> int:
    """Call a routine for numbers of a type, which may end with a status; return the status."""
    letter = _LETTERS[dtype]
    real = ctypes.c_double if letter == "d" else ctypes.c_float
    status = ctypes.c_int(0)

    def address(argument: Any) -> Any:
        if isinstance(argument, np.ndarray):
            return argument.ctypes.data
        if isinstance(argument, bytes):
            return argument
        number = real(argument) if isinstance(argument, float) else ctypes.c_int(argument)
        return ctypes.byref(number)

    args = [*map(address, arguments), *([ctypes.byref(status)] if library == "lapack" else [])]
    _routine(library, letter + name, len(args))(*args)
    return status.value


def _height(matrix: NDArray[Any]) -> int:
    """Distance of the columns of a matrix in Fortran order, or of some of its rows."""
    assert matrix.ndim == 2
    assert matrix.strides[0] == matrix.itemsize or len(matrix) < 2
    return max(1, len(matrix), matrix.strides[1] // matrix.itemsize)


def factor(matrix: NDArray[Any], *, lower: bool) -> bool:
    """Replace a triangle of a symmetric matrix by its Cholesky factor; return whether it has one.

    ``matrix``: (n, n) float32 or float64, in Fortran order, overwritten. ``lower``: which triangle.
    The other one is neither read nor written.
    """
    side, height = b"L" if lower else b"U", _height(matrix)
    return _call("lapack", "potrf", matrix.dtype, side, len(matrix), matrix, height) == 0


def solve(triangle: NDArray[Any], right: NDArray[Any], *, lower: bool, transposed: bool) -> bool:
    """Replace ``B`` by the solution ``X`` of ``T X = B`` or ``Tᵀ X = B``; return whether it exists.

    ``triangle``: (n, n) float32 or float64, in Fortran order. ``right``: (n, k) of the same type,
    in Fortran order, overwritten. ``lower``: which triangle.
    """
    side, turned = b"L" if lower else b"U", b"T" if transposed else b"N"
    sizes, heights = (len(triangle), right.shape[1]), (_height(triangle), _height(right))
    arguments = side, turned, b"N", *sizes, triangle, heights[0], right, heights[1]
    return _call("lapack", "trtrs", triangle.dtype, *arguments) == 0


def factor_by_tiles(matrix: NDArray[Any], team: ThreadTeam) -> bool:  # whether there is a factor
    """Replace the lower triangle of a symmetric matrix by its Cholesky factor, on several threads.

    ``matrix``: (n, n) float32 or float64, in C order, overwritten: above the diagonal, only squares
    of 256 × 256 entries along it are overwritten.

    Notes
    -----
    The columns of a tile are updated by those before them, and divided by the factor of the tile on
    the diagonal.  Threads share the rows, and one of them factors the next tile on the diagonal
    meanwhile.  The result does not depend on their number.
    """
    n = len(matrix)
    if n <= _MOST_OF_ONE_TILE:
        return factor(matrix.T, lower=False)
    width = _TILE if n > _LARGE else _TILE_OF_SMALL

    def tiles(first: int, height: int, end: int = n) -> list[slice]:
        return [slice(begin, min(begin + height, end)) for begin in range(first, end, height)]

    def update(rows: slice, columns: slice) -> None:
        before = slice(0, columns.start)
        _subtract_products(matrix[rows, before], matrix[columns, before], matrix[rows, columns])

    first, *others = tiles(0, width)
    if not factor(matrix[first, first].T, lower=False):
        return False
    for columns in others:
        done = slice(columns.start - width, columns.start)

        def divided(rows: slice, done: slice = done) -> None:
            divide(matrix[rows, done], matrix[done, done])

        def proceed(rows: slice, columns: slice = columns, divided: Any = divided) -> bool:
            """Divide the last columns and update the next ones; factor those on the diagonal."""
            if rows != columns:
                divided(rows)
            update(rows, columns)
            return rows != columns or factor(matrix[columns, columns].T, lower=False)

        team.map(divided, tiles(columns.start, _ROWS, columns.stop))
        if not all(team.map(proceed, [columns, *tiles(columns.stop, _ROWS)])):
            return False
    return True


def inverse_by_tiles(factor: NDArray[Any], team: ThreadTeam) -> NDArray[Any]:
    """Compute the inverse of a lower triangle (n, n), in C order, on several threads.

    The result does not depend on the number of threads, which share the columns.
    """
    inverse = np.eye(len(factor), dtype=factor.dtype)

    def solve_columns(columns: slice) -> None:
        triangle = factor[columns.start :, columns.start :].T
        right = inverse[columns.start :, columns].T
        sizes, heights = right.shape, (_height(triangle), _height(right))
        arguments = b"R", b"U", b"N", b"N", *sizes, 1.0, triangle, heights[0], right, heights[1]
        _call("blas", "trsm", right.dtype, *arguments)

    team.map(solve_columns, _tiles_of_inverse(len(factor)))
    return inverse


def invert_by_tiles(factor: NDArray[Any], team: ThreadTeam) -> None:
    """Replace a Cholesky factor ``L`` by the lower triangle of ``(L Lᵀ)⁻¹``, on several threads.

    ``factor``: (n, n) float32 or float64, in C order, overwritten; above the diagonal, entries are
    undefined afterwards.  The result does not depend on the number of threads.
    """
    inverse = inverse_by_tiles(factor, team)

    def multiply(rows: slice) -> None:
        below = inverse[rows.start :]
        np.matmul(below[:, rows].T, below[:, : rows.stop], out=factor[rows, : rows.stop])

    team.map(multiply, _tiles_of_inverse(len(factor)))


def _tiles_of_inverse(n: int) -> list[slice]:
    return [slice(i, min(i + _TILE_OF_INVERSE, n)) for i in range(0, n, _TILE_OF_INVERSE)]


def _subtract_products(left: NDArray[Any], right: NDArray[Any], sums: NDArray[Any]) -> None:
    """``C -= A Bᵀ`` for blocks (m, k), (n, k), (m, n) of matrices in C order."""
    (m, n), k = sums.shape, left.shape[1]
    factors = right.T, _height(right.T), left.T, _height(left.T)
    arguments = b"T", b"N", n, m, k, -1.0, *factors, 1.0, sums.T, _height(sums.T)
    _call("blas", "gemm", sums.dtype, *arguments)


def divide(rows: NDArray[Any], triangle: NDArray[Any]) -> None:
    """Replace ``B`` by ``B L⁻ᵀ`` for a lower triangle ``L``.

    ``rows``: (m, n) float32 or float64. ``triangle``: (n, n) of the same type. Both are in C order,
    or blocks of such matrices.
    """
    m, n = rows.shape
    matrices = triangle.T, _height(triangle.T), rows.T, _height(rows.T)
    arguments = b"L", b"U", b"T", b"N", n, m, 1.0, *matrices
    _call("blas", "trsm", rows.dtype, *arguments)


def add_products(factors: NDArray[Any], sums: Floats, team: ThreadTeam) -> None:
    """Add ``Kᵀ K`` to the lower triangle of a symmetric matrix, on several threads.

    ``factors``: (n, m) float64, in C order. ``sums``: (m, m) float64, in C order, overwritten up to
    the diagonal.  The result does not depend on the number of threads, which share tiles.
    """
    n, m = factors.shape

    def add(tile: tuple[slice, slice]) -> None:
        left, right, total = factors[:, tile[0]], factors[:, tile[1]], sums[tile]
        # BLAS sees the transposes of matrices in C order.
        of_right, of_sums = (right.T, _height(right.T)), (total.T, _height(total.T))
        if tile[0] == tile[1]:
            arguments: Any = b"U", b"N", len(total), n, 1.0, *of_right, 1.0, *of_sums
            _call("blas", "syrk", sums.dtype, *arguments)
        else:
            sizes, of_left = (total.shape[1], total.shape[0], n), (left.T, _height(left.T))
            arguments = b"N", b"T", *sizes, 1.0, *of_right, *of_left, 1.0, *of_sums
            _call("blas", "gemm", sums.dtype, *arguments)

    ranges = [slice(i, min(i + _TILE_OF_SUMS, m)) for i in range(0, m, _TILE_OF_SUMS)]
    team.map(add, [(rows, columns) for k, rows in enumerate(ranges) for columns in ranges[: k + 1]])


def symmetric_product(matrix: Floats, right: Floats, *, lower: bool) -> Floats:
    """Compute ``S B`` for a symmetric matrix by one of its triangles, (m, k).

    ``matrix``: (m, m) float64. ``right``: (m, k) float64. ``lower``: which triangle.
    """
    (m, k), side = right.shape, b"L" if lower else b"U"
    matrix, right = np.asfortranarray(matrix), np.asfortranarray(right)
    result = np.empty((m, k), order="F")
    factors = matrix, _height(matrix), right, _height(right)
    arguments = b"L", side, m, k, 1.0, *factors, 0.0, result, _height(result)
    _call("blas", "symm", matrix.dtype, *arguments)
    return result
