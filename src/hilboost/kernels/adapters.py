"""Adapters for external kernels: scikit-learn kernels, plain functions, Gram matrices.

They support NumPy arrays only.  The returned values are checked: they must have the right shape and
be finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, counted
from hilboost.kernels.base import Kernel

_ROWS_OF_A_DIAGONAL = 32


@dataclass(frozen=True, eq=False)
class SklearnKernel(Kernel):
    """Adapter for kernels of ``sklearn.gaussian_process.kernels``.

    Hyperparameters that are not fixed are fitted.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Must not contain a ``WhiteKernel``, which models target noise, not similarity of rows.

    Raises
    ------
    InvalidType
        If ``kernel`` is not a scikit-learn kernel.
    InvalidParameter
        If it contains a ``WhiteKernel``.

    Notes
    -----
    Rows are passed as float64.  ``parameter_gradient`` takes O(n² p) memory, as the gradients of
    scikit-learn do.
    """

    kernel: Any

    def __post_init__(self) -> None:
        from sklearn.gaussian_process.kernels import Kernel as Theirs
        from sklearn.gaussian_process.kernels import WhiteKernel

        if not isinstance(self.kernel, Theirs):
            raise InvalidType(
                "kernel must be a kernel of sklearn.gaussian_process.kernels; got "
                f"{type(self.kernel).__name__}."
            )
        parts = [self.kernel, *self.kernel.get_params().values()]
        if any(isinstance(part, WhiteKernel) for part in parts):
            raise InvalidParameter(
                f"the kernel {self.kernel} contains a WhiteKernel, which models noise. Remove it; "
                "regularization has the same effect."
            )

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return _checked_block(self.kernel(_double(A), _double(B)), A, B, "the scikit-learn kernel")

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return np.array(self.kernel.diag(_double(A)), dtype=np.float64)

    @property
    def log_parameters(self) -> Floats:
        """The ``theta`` of the kernel."""
        return np.array(self.kernel.theta, dtype=np.float64)

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return a clone with another ``theta``."""
        return replace(self, kernel=self.kernel.clone_with_theta(np.asarray(theta)))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Compute the gradient from that of scikit-learn, (n, n, p)."""
        _, gradient = self.kernel(_double(A), eval_gradient=True)
        return np.einsum("ij,ijp->p", W, gradient)


@dataclass(frozen=True, eq=False)
class CallableKernel(Kernel):
    """A kernel that is computed by a function.

    Parameters
    ----------
    function : callable
        ``function(A, B) -> (a, b)`` array of similarities of all rows of ``A`` (a, d) and ``B``
        (b, d), float64.  It is called on subsets of the rows and from several threads in parallel,
        so each entry must depend only on its two rows.
    pairwise : bool
        Set it to ``True`` for a ``function(a, b) -> number`` of two rows (d,).  This is simpler to
        write but slow, with one call per pair.

    Raises
    ------
    InvalidType
        If ``function`` is not callable.
    """

    function: Callable[[Any, Any], Any]
    pairwise: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidType(f"function must be callable; got {type(self.function).__name__}.")

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        rows, columns = _double(A), _double(B)
        if self.pairwise:
            result: Any = [[self._number(a, b) for b in columns] for a in rows]
        else:
            result = self._call(rows, columns)
        return _checked_block(result, A, B, "the kernel function")

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        A = _double(A)
        if self.pairwise:
            return np.array([self._number(a, a) for a in A], dtype=np.float64)
        starts = range(0, len(A), _ROWS_OF_A_DIAGONAL)
        blocks = (A[i : i + _ROWS_OF_A_DIAGONAL] for i in starts)
        return np.concatenate([np.diagonal(self.block(block, block)) for block in blocks])

    def _number(self, a: Floats, b: Floats) -> Any:
        number = self._call(a, b)
        if np.ndim(number) != 0:
            raise InvalidType(
                f"the kernel function returned an array of shape {np.shape(number)} for two rows; "
                "with pairwise=True, it must return a number. For a function of two blocks of "
                "rows, set pairwise=False."
            )
        return number

    def _call(self, A: Floats, B: Floats) -> Any:
        try:
            return self.function(A, B)
        except Exception as error:
            error.add_note(
                f"Raised by the kernel function, called with arrays of shapes {A.shape} and "
                f"{B.shape}. For a function of two rows, use CallableKernel(function, "
                "pairwise=True)."
            )
            raise


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """Precomputed Gram matrix, looked up by row and column indices.

    The inputs are indices, stored in a table with one column, (n, 1).  ``block(A, B)`` returns
    ``gram[A[:, 0], B[:, 0]]``::

        A = 2     B = 0 1          gram =  1  .5 .2      block = .2 .4
                                          .5   1 .4
                                          .2  .4  1

    Parameters
    ----------
    gram : (p, q) float32 or float64
        Similarities of p rows to the q training rows.  For training, p = q and the matrix is
        symmetric positive semidefinite; for prediction, it has one row for each new point.

    Raises
    ------
    InvalidData
        If ``gram`` is not a matrix of numbers, or an entry is not finite.
    """

    reads_raw_columns = True

    gram: Any

    def __post_init__(self) -> None:
        gram = np.asarray(self.gram)
        if gram.ndim != 2 or gram.dtype.kind not in "biuf":
            raise InvalidData(
                "gram must be a matrix of numbers; got an array of shape "
                f"{gram.shape} and dtype {gram.dtype}."
            )
        if gram.dtype not in (np.float32, np.float64):
            gram = gram.astype(np.float64)
        _require_finite(gram, "the Gram matrix")
        object.__setattr__(self, "gram", gram)

    def check(self, n_columns: int) -> None:
        """Check that there is one column, which contains row indices."""
        if n_columns != 1:
            raise InvalidParameter(
                "with a Precomputed kernel, X must have one column of row indices; it has "
                f"{counted(n_columns, 'column')}."
            )

    def block(self, A: Array, B: Array) -> Array:
        """Copy the selected rows and columns, (a, b)."""
        rows, columns = self._numbers(A, 0), self._numbers(B, 1)
        return self.gram[rows[:, None], columns].astype(A.dtype, copy=False)

    def diag(self, A: Array) -> Array:
        """``gram[i, i]``, (a,); for training points only."""
        return self.gram[self._numbers(A, 0), self._numbers(A, 1)].astype(np.float64)

    def _numbers(self, A: Array, axis: int) -> np.ndarray:
        _require_numpy(A)
        numbers = A[:, 0]
        inside = (numbers >= 0) & (numbers < self.gram.shape[axis])
        if not (inside & (numbers == np.floor(numbers))).all():
            raise InvalidData(
                f"with a Precomputed kernel, X must contain indices of the "
                f"{'rows' if axis == 0 else 'columns'} of its Gram matrix: integers from 0 to "
                f"{self.gram.shape[axis] - 1}."
            )
        return numbers.astype(np.intp)


def _double(A: Array) -> Floats:
    _require_numpy(A)
    return A.astype(np.float64, copy=False)


def _require_numpy(A: Array) -> None:
    if not isinstance(A, np.ndarray):
        raise InvalidType(
            f"this kernel supports only NumPy arrays; got "
            f"{type(A).__module__}.{type(A).__name__}. Use device=None, or a built-in kernel."
        )


def _checked_block(result: object, A: Array, B: Array, owner: str) -> Array:
    """Validate a block and copy it to the dtype of ``A``, (a, b)."""
    expected = (A.shape[0], B.shape[0])
    values = np.asarray(result)
    if values.shape != expected or values.dtype.kind not in "biuf":
        raise InvalidType(
            f"{owner} returned an array of shape {values.shape} and dtype {values.dtype} for "
            f"{expected[0]} and {expected[1]} rows; it must return numbers of shape {expected}."
        )
    _require_finite(values, owner)
    return values.astype(A.dtype)  # a copy, because the function may keep its array


def _require_finite(values: np.ndarray, owner: str) -> None:
    if not np.isfinite(values).all():
        i, j = np.argwhere(~np.isfinite(values))[0]
        raise InvalidData(
            f"{owner} has the value {values[i, j]} for rows {i} and {j} of a block of "
            f"{values.shape[0]} by {values.shape[1]}; similarities must be finite."
        )
