"""Interface of kernels: similarities ``k(a, b)`` of two rows.

Arrays ``A`` (a, d) and ``B`` (b, d) have the same floating-point dtype and belong to NumPy or any
other array-API library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.core.operators import OperatorGraph
from hilboost.core.records import without_caches
from hilboost.kernels.validation import check_length_scales, length_scales

if TYPE_CHECKING:
    from hilboost.kernels.algebra import Product, Scaled, Sum


FieldKind = Literal["number", "numbers", "integer", "integers", "matrix", "kernel", "kernels"]
Fields = Mapping[str, FieldKind]
Names = Mapping[str, Mapping[str, Any]]


class Kernel(ABC):
    """Base class of kernels: positive semidefinite similarities of rows.

    Each built-in kernel declares the first three attributes in its own class.  Subclasses do not
    inherit these declarations, because they may change the formula.
    """

    short_names: ClassVar[Names] = {}
    """Short names for users, each with the parameters that it sets."""

    file_name: ClassVar[str | None] = None
    """Name in model files."""

    file_fields: ClassVar[Fields] = {}
    """Types of the parameters in model files."""

    mean_shift: ClassVar[bool] = False
    """Whether mean-shift steps climb weighted sums of it: pre-images then need no candidates."""

    __getstate__ = without_caches

    @abstractmethod
    def block(self, A: Array, B: Array) -> Array:
        """Compute a Gram block; cost O(a b d).

        Parameters
        ----------
        A : (a, d) array
        B : (b, d) array

        Returns
        -------
        (a, b) array
            In the dtype of ``A``.
        """

    def tiles(self, A: Array, B: Array) -> Callable[[slice, slice], Array]:
        """Prepare the tiles of a large Gram matrix, which :meth:`block` computes by default.

        Parameters
        ----------
        A : (a, d) array
        B : (b, d) array

        Returns
        -------
        callable
            Computes the block of a range of rows of each, up to rounding as :meth:`block`.
        """
        return lambda rows, columns: self.block(A[rows], B[columns])

    @abstractmethod
    def diag(self, A: Array) -> Array:
        """Compute ``k(a, a)`` of every row.

        Parameters
        ----------
        A : (a, d) array

        Returns
        -------
        (a,) array
        """

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the Gram block as ONNX operators; not supported by default.

        Call :func:`block_operators` for the kernels that a kernel is composed of.

        Parameters
        ----------
        graph : OperatorGraph
        A : str
            Name of the rows (n, d) in the graph.
        B : (m, d) float64

        Returns
        -------
        str
            Name of the block (n, m); (1, m) if all rows are equal.

        Raises
        ------
        IncompatibleParts
        """
        raise IncompatibleParts(
            f"to_onnx supports only built-in kernels and kernels that define `operators`; "
            f"{type(self).__name__} is neither. Fit with another kernel."
        )

    # Fitting of hyperparameters; kernels without any keep these defaults.

    @property
    def log_parameters(self) -> Floats:
        """Logarithms of the positive hyperparameters, and the other ones unchanged, (p,)."""
        return np.empty(0)

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other hyperparameters.

        Parameters
        ----------
        theta : (p,) float64
            As in ``log_parameters``.

        Returns
        -------
        Kernel
        """
        return self

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Compute ``sum_ij W_ij ∂k(a_i, a_j)/∂t_p`` for symmetric ``W``.

        Here, ``t`` are the ``log_parameters``.  Define this or :meth:`gram_and_gradient`.

        Parameters
        ----------
        A : (a, d) array
        W : (a, a) array

        Returns
        -------
        (p,) float64
        """
        if type(self).gram_and_gradient is Kernel.gram_and_gradient:
            return np.empty(0)
        return self.gram_and_gradient(A)[1](W)

    def gram_and_gradient(self, A: Array) -> tuple[Array, Callable[[Array], Floats]]:
        """Compute the Gram matrix, and what :meth:`parameter_gradient` returns for weights ``W``.

        Parameters
        ----------
        A : (a, d) array

        Returns
        -------
        gram : (a, a) array
            The caller may overwrite it.
        gradient : callable
            ``gradient(W)`` is ``parameter_gradient(A, W)``, without computing what both share
            twice; it can be called once.
        """
        return self.block(A, A), partial(self.parameter_gradient, A)

    def stretched(self, factor: float) -> Self:
        """Multiply the length scales; kernels without length scales are returned unchanged.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Kernel
        """
        return self

    @property
    def reads_raw_columns(self) -> bool:
        """Whether columns hold row numbers, counts or codes, which must not be standardized."""
        return False

    def raw_columns(self, n_columns: int) -> tuple[int, ...]:
        """Columns that hold row numbers, counts or codes, which must not be standardized.

        Parameters
        ----------
        n_columns : int
            Number of columns of the rows.

        Returns
        -------
        tuple of int
            All columns or none by default; a subset if only a part of the kernel reads them.
        """
        return tuple(range(n_columns)) if self.reads_raw_columns else ()

    def check(self, n_columns: int) -> None:
        """Reject inputs with the wrong number of columns.

        Parameters
        ----------
        n_columns : int

        Raises
        ------
        InvalidParameter
        """
        return

    def __add__(self, other: Kernel) -> Sum:
        from hilboost.kernels.algebra import Sum

        return Sum((self, other))

    def __mul__(self, other: Any) -> Product | Scaled:
        from hilboost.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scaled(self, other)

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class LengthScales:
    """Part of kernels with values of 1 on the diagonal and length scales as hyperparameters."""

    file_fields: ClassVar[Fields] = {"length_scale": "numbers"}

    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_scale", length_scales(self.length_scale))

    def check(self, n_columns: int) -> None:
        """Check that there is one length scale, or one for each column."""
        check_length_scales(self.length_scale, n_columns)

    def diag(self, A: Array) -> Array:
        """Ones."""
        return array_api.zeros((A.shape[0],), A, "float64") + 1.0

    def _scaled(self, A: Array) -> Array:
        return A / array_api.like(self.length_scale, A)

    def stretched(self, factor: float) -> Self:
        """Multiply the length scales by the factor."""
        return replace(self, length_scale=self.length_scale * factor)

    @property
    def log_parameters(self) -> Floats:
        """Logarithms of the length scales."""
        return np.log(self.length_scale)

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other length scales."""
        return replace(self, length_scale=np.exp(theta))


def block_operators(kernel: Kernel, graph: OperatorGraph, A: str, B: Floats) -> str:
    """Write the Gram block (n, m), or (1, m) if all rows are equal, of the rows ``A`` of a graph.

    A subclass that may have changed the formula has none.
    """
    own = vars(type(kernel))
    if "file_name" in own or "operators" in own:
        return kernel.operators(graph, A, B)
    return Kernel.operators(kernel, graph, A, B)


def first_of_equals(kernels: Sequence[Kernel]) -> tuple[int, ...]:
    """Position of the first equal kernel, for each kernel of a list."""
    return tuple(
        next(j for j, earlier in enumerate(kernels) if are_equal(earlier, kernel))
        for kernel in kernels
    )


def are_equal(a: Any, b: Any) -> bool:  # ``False`` for equal formulas in different terms
    """Whether two kernels, or parameters of kernels, are of one class and have equal values."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(are_equal, a, b))
    if is_dataclass(a) and not isinstance(a, type):
        names = [field.name for field in fields(a)]
        return all(are_equal(getattr(a, name), getattr(b, name)) for name in names)
    return bool(a == b)
