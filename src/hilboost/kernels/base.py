"""The contract of a kernel: a similarity ``k(a, b)`` of two rows.

Arrays: ``A`` (a, d) and ``B`` (b, d) in one floating dtype, of NumPy or any array-API library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats

if TYPE_CHECKING:
    from hilboost.kernels.algebra import Product, Scaled, Sum


class Kernel(ABC):
    """A positive semidefinite similarity of rows."""

    @abstractmethod
    def block(self, A: Array, B: Array) -> Array:
        """Gram block; cost O(a b d).

        Parameters
        ----------
        A : (a, d) array
        B : (b, d) array

        Returns
        -------
        (a, b) array
            In the dtype of ``A``.
        """

    @abstractmethod
    def diag(self, A: Array) -> Array:
        """``k(a, a)`` of every row.

        Parameters
        ----------
        A : (a, d) array

        Returns
        -------
        (a,) array
        """

    # What can be fitted; a kernel that has nothing to fit leaves these as they are.

    @property
    def log_parameters(self) -> Floats:
        """Logarithms of the positive hyperparameters, and others as they are, (p,)."""
        return np.empty(0)

    def with_log_parameters(self, theta: Floats) -> Self:
        """The same kernel with other hyperparameters.

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
        """``sum_ij W_ij ∂k(a_i, a_j)/∂t_p`` for symmetric ``W``.

        ``t`` are the ``log_parameters``.

        Parameters
        ----------
        A : (a, d) array
        W : (a, a) array

        Returns
        -------
        (p,) float64
        """
        return np.empty(0)

    def stretched(self, factor: float) -> Kernel:
        """The same kernel with its length scales multiplied; itself where it has none.

        Parameters
        ----------
        factor : float

        Returns
        -------
        Kernel
        """
        return self

    def check(self, n_columns: int) -> None:
        """Refuse inputs of the wrong width.

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
