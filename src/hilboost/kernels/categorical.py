"""Categorical kernels, which compare codes for equality.

Codes are finite numbers; with float32 rows, they are integers below 2^24.  A missing code (NaN) is
a category of its own: it equals other missing codes only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Kernel, LengthScales, Names


@dataclass(frozen=True, eq=False)
class Delta(LengthScales, Kernel):
    """``exp(-sum_l [a_l ≠ b_l] / length_scale_l)``: every differing column reduces the similarity.

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each.  With small values, rows are similar only if all codes
        are equal; with a large value, the column is ignored.

    Raises
    ------
    InvalidParameter
        If a length scale is not positive and finite.

    Notes
    -----
    This is the product over columns of ``ρ + (1 - ρ) [a_l = b_l]`` with
    ``ρ = exp(-1 / length_scale_l)``, each positive semidefinite (the exchangeable correlation
    function of Qian, Wu & Wu 2008, "Gaussian process models for computer experiments with
    qualitative and quantitative factors").  With one length scale, it is the Gaussian kernel of
    one-hot codes.  Cost O(a b d): a few passes over the block for each column.
    """

    short_names: ClassVar[Names] = {"delta": {}}
    file_name = "delta"
    reads_raw_columns = True

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        exponent = _zeros(A, B)
        for differs, rate in zip(_differing(A, B), self._rates(A), strict=True):
            differs *= -rate
            exponent += differs
        return array_api.exp(exponent)

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write ``exp`` of a sum over columns."""
        rates = np.broadcast_to(1 / self.length_scale, (B.shape[1],))
        return graph.add("Exp", _differing_operators(graph, A, B, -rates))

    def stretched(self, factor: float) -> Self:
        """Return the kernel: codes have no distances."""
        return self

    def _rates(self, A: Array) -> list[float]:
        return [float(rate) for rate in np.broadcast_to(1 / self.length_scale, (A.shape[1],))]

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """``sum_ij W_ij k_ij [a_l ≠ b_l] / length_scale_l``, column by column."""
        return self.gradient_of_pulls(A, W * self.block(A, A))

    def gradient_of_pulls(self, A: Array, M: Array) -> Floats:
        """Compute the gradient of ``sum_ij W_ij k_ij`` from the products of weights and kernel.

        Parameters
        ----------
        A : (a, d) array
            Rows of category codes.
        M : (a, a) array
            ``M_ij = W_ij k_ij``.

        Returns
        -------
        (g,) float64
            One entry for each group of length scales, with respect to their logarithms.
        """
        xp = array_api.namespace(A)
        by_column = np.array(
            [
                rate * float(xp.sum(M * differs))
                for differs, rate in zip(_differing(A, A), self._rates(A), strict=True)
            ]
        )
        return by_column if len(self.length_scale) > 1 else by_column.sum(keepdims=True)


@dataclass(frozen=True)
class Hamming(Kernel):
    """Fraction of the columns that are equal."""

    short_names: ClassVar[Names] = {"hamming": {}}
    file_name = "hamming"
    reads_raw_columns = True

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), in a few passes over it for each column."""
        count = _zeros(A, B)
        for differs in _differing(A, B):
            count += differs
        count *= -1 / A.shape[1]
        count += 1
        return count

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write one minus a sum over columns."""
        d = B.shape[1]
        return graph.plus(_differing_operators(graph, A, B, np.full(d, -1 / d)), 1.0)

    def diag(self, A: Array) -> Array:
        """Ones."""
        return array_api.zeros((A.shape[0],), A, "float64") + 1.0


def _zeros(A: Array, B: Array) -> Array:
    return array_api.zeros((A.shape[0], B.shape[0]), A, array_api.precision(A))


def _differing(A: Array, B: Array) -> Iterator[Array]:
    """Yield for each column 1 where the codes differ and 0 where they are equal, (a, b)."""
    xp = array_api.namespace(A)
    dtype, width = A.dtype, A.shape[1]
    # Contiguous columns: the comparisons pass over the block once for each.
    A, B = (xp.stack([table[:, k] for k in range(width)]) for table in (_filled(A), _filled(B)))
    for a, b in zip(A, B, strict=True):
        yield xp.astype(a[:, None] != b[None, :], dtype)


def _differing_operators(graph: OperatorGraph, A: str, B: Floats, factors: Floats) -> str:
    """Write ``sum_l factor_l [a_l ≠ b_l]``, (n, m), column by column."""
    total = ""
    for column, factor in enumerate(factors):
        codes = graph.add("Gather", A, graph.integers(column), axis=1)
        equal = graph.add("Equal", codes, graph.constant(B[:, column][None, :]))
        differs = graph.times(graph.as_numbers(graph.add("Not", equal)), float(factor))
        total = graph.add("Add", total, differs) if total else differs
    return total


def _filled(A: Array) -> Array:
    """Replace NaN by a number that is not a code, so that it equals itself."""
    xp = array_api.namespace(A)
    missing = xp.isnan(A)
    if not bool(xp.any(missing)):
        return A
    filled = xp.asarray(A, copy=True)
    filled[missing] = -np.inf
    return filled
