"""Stationary kernels of linearly mapped rows, with a full metric instead of a diagonal one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, counted, shown
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Fields, Kernel, block_operators
from hilboost.kernels.stationary import Stationary


@dataclass(frozen=True, eq=False)
class Mapped(Kernel):
    """``k(M'a, M'b)``: a kernel of ``s² = (a - b)' M diag(1/length_scale²) M' (a - b)``.

    Functions that vary along sums or differences of columns are smooth in a metric that is not
    diagonal (Vivarelli & Williams 1999; Rasmussen & Williams 2006, section 5.1).

    Parameters
    ----------
    kernel : Stationary
        A kernel of the distance, such as a Gaussian.
    matrix : (d, q) floats
        The rows are multiplied by it from the right.

    Raises
    ------
    InvalidParameter
        If ``kernel`` is not stationary, ``matrix`` is not a finite matrix, or the number of its
        columns does not match the length scales.

    Notes
    -----
    A block costs O((a + b) d q) in addition to the O(a b q) of the kernel.  ``matrix`` is fitted
    like length scales; ``log_parameters`` contains its entries, which may be negative, unchanged.
    """

    file_name = "mapped"
    file_fields: ClassVar[Fields] = {"kernel": "kernel", "matrix": "matrix"}

    kernel: Stationary
    matrix: Any

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Stationary):
            raise InvalidParameter(
                "Mapped requires a kernel of the distance (Gaussian, Laplace, Matern, "
                f"RationalQuadratic); got {type(self.kernel).__name__}."
            )
        object.__setattr__(self, "matrix", _matrix(self.matrix))
        self.kernel.check(self.matrix.shape[1])

    def check(self, n_columns: int) -> None:
        """Check that there are as many columns as the matrix has rows."""
        if n_columns != len(self.matrix):
            raise InvalidParameter(
                f"the matrix of Mapped has {counted(len(self.matrix), 'row')}, but X has "
                f"{counted(n_columns, 'column')}; these numbers must be equal."
            )

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return self.kernel.block(self._image(A), self._image(B))

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the block of the kernel on the mapped rows."""
        image = graph.add("MatMul", A, graph.constant(self.matrix))
        return block_operators(self.kernel, graph, image, B @ self.matrix)

    def diag(self, A: Array) -> Array:
        """Ones."""
        return self.kernel.diag(A)

    def _image(self, A: Array) -> Array:
        return A @ array_api.like(self.matrix, A)

    @property
    def length_scale(self) -> Any:
        """Length scale of the kernel, or one for each of the mapped columns."""
        return self.kernel.length_scale

    def stretched(self, factor: float) -> Self:
        """Multiply the length scales of the kernel by the factor."""
        return replace(self, kernel=self.kernel.stretched(factor))

    @property
    def log_parameters(self) -> Floats:
        """Parameters of the kernel, followed by the entries of the matrix, row by row."""
        return np.append(self.kernel.log_parameters, self.matrix)

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel and the matrix with other values."""
        p = len(self.kernel.log_parameters)
        kernel = self.kernel.with_log_parameters(theta[:p])
        return replace(self, kernel=kernel, matrix=np.reshape(theta[p:], self.matrix.shape))

    def gram_and_gradient(self, A: Array) -> tuple[Array, Callable[[Array], Floats]]:
        """The kernel's, and ``A'G / length_scale`` for the gradient ``G`` of the mapped rows."""
        K, gradients = self.kernel.gram_and_gradients(self._image(A))
        centered = A - array_api.namespace(A).mean(A, axis=0)

        def gradient(W: Array) -> Floats:
            by_parameter, by_row = gradients(W)
            by_entry = array_api.to_numpy(centered.T @ by_row) / self.kernel.length_scale
            return np.append(by_parameter, by_entry)

        return K, gradient


def _matrix(value: object) -> Floats:
    """Copy a matrix to float64."""
    try:
        matrix = np.array(value)
    except ValueError:  # a ragged list
        matrix = np.empty(0)
    numeric = matrix.ndim == 2 and matrix.size > 0 and matrix.dtype.kind in "iuf"
    if not (numeric and np.isfinite(matrix).all()):
        raise InvalidParameter(
            f"matrix must be an array of finite numbers, (n_columns, n_mapped_columns); got "
            f"{shown(value)}."
        )
    return matrix.astype(np.float64)
