"""Dense linear algebra, written once for NumPy, Torch and CuPy arrays.

NumPy arrays take in-place routines of LAPACK; other arrays routines of their own library, found
through the array API.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import lapack
from hilboost.backends.kernel_values import exponentials
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.errors import NotPositive

Array = Any
NOT_POSITIVE = (
    "the kernel matrix is not positive semidefinite; use a kernel that is, or a larger "
    "regularization."
)
_NOT_FINITE = "the kernel matrix contains NaN or infinity; scale the columns or the sample weights."
_ROWS_OF_BLOCK, _ROWS_OF_MIRROR = 256, 128
_TILE = 256  # rows and columns of the tiles of a product
_LARGEST_LIMIT = 2**25 - 2**14  # bytes; of arrays whose size becomes the limit of glibc
_LARGEST_JITTER = 1e-2  # share of the mean diagonal; a matrix that needs more is not the one meant


def namespace(array: Array) -> Any:
    """The array-API namespace of an array."""
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def device_of(array: Array) -> Any:
    """Where an array lies; ``None`` for NumPy."""
    return None if namespace(array) is np else array.device


def is_on_host(array: Array) -> bool:
    """Whether an array lies in the memory of the processor."""
    device = device_of(array)
    return device is None or str(device) == "cpu"


def to_numpy(array: Array) -> np.ndarray:
    """A NumPy array, float64."""
    if namespace(array) is np:
        return array.astype(np.float64, copy=False)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get(), dtype=np.float64)
    return np.asarray(array.cpu(), dtype=np.float64)


def like(array: np.ndarray, other: Array, dtype: str | None = None) -> Array:
    """A NumPy array as an array of the library, device and (unless given) dtype of another."""
    xp = namespace(other)
    wanted = other.dtype if dtype is None else getattr(xp, dtype)
    if xp is np:
        return np.asarray(array, dtype=wanted)
    writable = np.require(array, requirements=["C", "W"])  # PyTorch warns of others
    return xp.asarray(writable, dtype=wanted, device=device_of(other))


def cast(array: Array, dtype: str) -> Array:
    """The array in another floating dtype, copied only where it differs."""
    xp = namespace(array)
    return xp.astype(array, getattr(xp, dtype), copy=False)


def copied(array: Array) -> Array:
    """A copy in the library, on the device and in the dtype of the array."""
    return namespace(array).asarray(array, copy=True)


def precision(array: Array) -> str:
    """``"float32"`` or ``"float64"``"""
    return str(array.dtype).rpartition(".")[2]


def empty(shape: tuple[int, ...], like_array: Array, dtype: str) -> Array:
    """An uninitialized array beside another."""
    xp = namespace(like_array)
    if xp is np:
        return np.empty(shape, dtype)
    return xp.empty(shape, dtype=getattr(xp, dtype), device=device_of(like_array))


def zeros(shape: tuple[int, ...], like_array: Array, dtype: str) -> Array:
    """An array of zeros beside another."""
    array = empty(shape, like_array, dtype)
    array[...] = 0
    return array


def flat(array: Array) -> Floats | None:
    """A flat view of what compiled loops can overwrite: NumPy arrays of float64 in one piece."""
    if namespace(array) is not np or array.dtype != np.float64:
        return None
    return array.reshape(-1, order="A") if array.flags.forc else None


def exp(array: Array) -> Array:
    """Exponentials of numbers up to 0, in place where the library can."""
    numbers = flat(array)
    if numbers is None:
        return _in_place("exp", array)
    exponentials(numbers)
    return array


def sqrt(array: Array) -> Array:
    """Square root, in place where the library can."""
    return _in_place("sqrt", array)


def _in_place(name: str, array: Array) -> Array:
    xp = namespace(array)
    function = getattr(xp, name)
    return function(array, out=array) if xp is np else function(array)


def floor_at(array: Array, bound: float) -> Array:
    """Entries below a bound are raised to it, in place where the library can."""
    xp = namespace(array)
    return np.maximum(array, bound, out=array) if xp is np else xp.clip(array, min=bound)


def clip(array: Array, lowest: float, highest: float) -> Array:
    """Entries outside an interval become its ends, in place where the library can."""
    xp = namespace(array)
    in_place = {"out": array} if xp is np else {}
    return xp.clip(array, lowest, highest, **in_place)


def cholesky(
    matrix: Array,
    jitter: float = 0.0,
    again: Callable[[], Array] | None = None,
    team: ThreadTeam | None = None,
) -> Array:
    """Lower Cholesky factor of a symmetric positive semidefinite matrix, which is overwritten.

    With a team, threads share the rows of a NumPy array; the factor does not depend on them.

    Only the lower triangle is read.  Where rounding makes it fail, the diagonal is raised tenfold
    step by step, from ``jitter`` (or the rounding error) times its mean to a hundredth of the mean.
    ``again`` computes the matrix once more then, in place of a copy of it.

    Raises
    ------
    NotPositive
        The matrix is not positive semidefinite, or not finite.
    """
    n = matrix.shape[0]
    xp = namespace(matrix)
    own = xp.asarray(xp.linalg.diagonal(matrix), copy=True)
    again = again or partial(_symmetric, xp.asarray(matrix, copy=True))
    if not bool(xp.all(xp.isfinite(own))):
        raise NotPositive(_NOT_FINITE)
    mean = float(xp.mean(own))
    smallest, added = n * float(xp.finfo(matrix.dtype).eps), jitter
    while True:
        set_diagonal(matrix, own + added * mean)
        factor = _try_cholesky(matrix, team)
        if factor is not None:
            return factor
        matrix[...] = again()
        if not bool(xp.all(xp.isfinite(xp.tril(matrix)))):
            raise NotPositive(_NOT_FINITE)
        added = max(10 * added, smallest)
        if added > max(_LARGEST_JITTER, smallest):
            raise NotPositive(NOT_POSITIVE)


def _symmetric(matrix: Array) -> Array:
    """The lower triangle on both sides of a diagonal of zeros."""
    lower = namespace(matrix).tril(matrix, k=-1)
    return lower + lower.T


def set_diagonal(matrix: Array, values: Array) -> None:
    """``matrix[i, i] = values[i]``, in place."""
    xp = namespace(matrix)
    if xp is np:
        matrix[np.diag_indices(len(matrix))] = values
    else:
        index = xp.arange(matrix.shape[0], device=device_of(matrix))
        matrix[index, index] = xp.astype(values, matrix.dtype)


def add_to_diagonal(matrix: Array, values: Any) -> Array:
    """``matrix + diag(values)`` in place; ``values`` is a number or (n,)."""
    set_diagonal(matrix, namespace(matrix).linalg.diagonal(matrix) + values)
    return matrix


def _try_cholesky(matrix: Array, team: ThreadTeam | None) -> Array | None:
    xp = namespace(matrix)
    if xp is np:
        factor = np.ascontiguousarray(matrix)
        if team is not None:
            is_positive = lapack.factor_by_tiles(factor, team)
        else:
            # LAPACK sees the transpose of a row-major matrix: its upper factor is our lower one.
            is_positive = lapack.factor(factor.T, lower=False)
        if not is_positive or not np.isfinite(factor[-1, -1]):
            return None
        _clear_above(factor, team or ThreadTeam())
        return factor
    try:
        factor = xp.linalg.cholesky(matrix)
    except Exception:  # every library has its own class for this
        return None
    return factor if bool(xp.all(xp.isfinite(factor))) else None


def _clear_above(matrix: Floats, team: ThreadTeam) -> None:
    """Set the entries above the diagonal to zero."""

    def clear(begin: int) -> None:
        end = begin + _ROWS_OF_BLOCK
        matrix[begin:end, end:] = 0
        square = matrix[begin:end, begin:end]
        np.copyto(square, 0, where=_above(len(square)))

    team.map(clear, range(0, len(matrix), _ROWS_OF_BLOCK))


@cache
def _above(n: int) -> NDArray[np.bool_]:
    """The entries above the diagonal, (n, n); one array for all blocks of a size."""
    return np.triu(np.ones((n, n), dtype=bool), 1)


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """``L⁻¹ B`` or ``L⁻ᵀ B`` for a lower triangle; ``B`` (m, k) may be overwritten."""
    if namespace(factor) is np:
        return _solved(factor, right, transposed)
    if hasattr(factor, "get"):
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(factor, right, lower=True, trans=int(transposed))
    import torch

    vector = right.ndim == 1
    right = right[:, None] if vector else right
    solution = torch.linalg.solve_triangular(
        factor.T if transposed else factor, right, upper=transposed
    )
    return solution[:, 0] if vector else solution


def _solved(factor: NDArray[Any], right: NDArray[Any], transposed: bool) -> NDArray[Any]:
    dtype = np.result_type(factor, right)
    triangle = np.ascontiguousarray(factor, dtype=dtype).T
    found = np.asfortranarray(right.reshape(len(right), -1), dtype=dtype)
    if not lapack.solve(triangle, found, lower=False, transposed=not transposed):
        raise NotPositive(NOT_POSITIVE)
    return found.reshape(right.shape, order="F")


def solve_cholesky(factor: Array, right: Array) -> Array:
    """``(L Lᵀ)⁻¹ B``."""
    return solve_lower(factor, solve_lower(factor, right), transposed=True)


def product(left: Array, right: Array, team: ThreadTeam) -> Array:
    """``A B``; threads share tiles of it, which do not depend on their number."""
    if namespace(left) is not np:
        return left @ right
    found = np.empty((left.shape[0], right.shape[1]), np.result_type(left, right))

    def multiply(tile: tuple[slice, slice]) -> None:
        found[tile] = left[tile[0]] @ right[:, tile[1]]

    team.map(multiply, product_tiles(*found.shape))
    return found


def square(matrix: Array, team: ThreadTeam) -> Array:
    """``A'A``, in half the time of a product."""
    if namespace(matrix) is not np:
        return matrix.T @ matrix
    m = matrix.shape[1]
    found = np.empty((m, m), matrix.dtype)

    def multiply(tile: tuple[slice, slice]) -> None:
        found[tile] = matrix[:, tile[0]].T @ matrix[:, tile[1]]
        found[tile[::-1]] = found[tile].T

    team.map(multiply, [tile for tile in product_tiles(m, m) if tile[1].start <= tile[0].start])
    return found


def product_tiles(n: int, m: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the tiles of a product."""
    return [
        (slice(i, min(i + _TILE, n)), slice(j, min(j + _TILE, m)))
        for i in range(0, n, _TILE)
        for j in range(0, m, _TILE)
    ]


def inverse_of_cholesky(factor: Floats, team: ThreadTeam | None = None) -> Floats:
    """``(L Lᵀ)⁻¹``, in a third of the time that a solution for the identity takes."""
    inverse, team = np.array(factor, order="C"), team or ThreadTeam()
    lapack.invert_by_tiles(inverse, team)

    def mirror(begin: int) -> None:
        rows = slice(begin, begin + _ROWS_OF_MIRROR)
        inverse[:begin, rows] = inverse[rows, :begin].T
        corner = inverse[rows, rows]
        np.copyto(corner, corner.T.copy(), where=_above(len(corner)))

    team.map(mirror, range(0, len(inverse), _ROWS_OF_MIRROR))
    return inverse


def left_out(
    factor: Floats, right: Floats, team: ThreadTeam | None = None
) -> tuple[Floats, Floats]:
    """Residuals ``α_i / C⁻¹_ii`` of rows that are left out one by one, and ``α = C⁻¹Y``, (n, k).

    ``factor`` is ``L`` of ``C = L Lᵀ``; see Rasmussen & Williams 2006, eq. 5.12.
    """
    inverse = lapack.inverse_by_tiles(factor, team or ThreadTeam())
    alpha = inverse.T @ (inverse @ right)
    return alpha / np.einsum("ij,ij->j", inverse, inverse)[:, None], alpha


@cache
def _blas() -> list[tuple[Callable[[], int], Callable[[int], None]]]:
    """Functions that get and set the number of threads of each BLAS library of the process.

    threadpoolctl ignores all threads but the first one that sets the number for OpenBLAS.
    """
    from threadpoolctl import ThreadpoolController

    return [
        (
            library.get_num_threads,
            getattr(library, "_real_set_num_threads", library.set_num_threads),
        )
        for library in ThreadpoolController().lib_controllers
        if library.user_api == "blas"
    ]


class _BlasLimit:
    """Blocks in which BLAS has one thread; its number of threads is one for the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._original: list[int] = []

    def enter(self) -> None:
        """Begin a block; the first one keeps the number."""
        with self._lock:
            if self._n_inside == 0:
                self._original = [get_number() for get_number, _ in _blas()]
                for _, set_number in _blas():
                    set_number(1)
            self._n_inside += 1

    def leave(self) -> None:
        """End a block; the last one restores the number."""
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                for (_, set_number), number in zip(_blas(), self._original, strict=True):
                    set_number(number)


_LIMIT = _BlasLimit()


@cache
def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed matrices for the next ones.

    By default, glibc returns it to the system, and the next matrix of a few megabytes takes as long
    to get its pages as to be computed.  Its limits rise with the largest array of up to 32 MiB that
    has been freed; the one here is never written, so that it has no pages.
    """
    np.empty(_LARGEST_LIMIT, np.uint8)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within the block, BLAS has one thread, so that results do not depend on its number.

    Threads of a team share tiles of products and factors instead.  Freed memory is kept.
    """
    keep_freed_memory()
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
