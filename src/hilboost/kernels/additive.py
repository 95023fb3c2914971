"""Additive kernels, whose functions are sums of functions of single columns and pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.backends.kernel_values import Factors, additive_block, additive_pulls
from hilboost.core.dtypes import Floats
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Fields, Kernel, LengthScales, Names
from hilboost.kernels.validation import positive

_ALPHA = 4.0  # of the rational quadratic kernels; the power of `additive_block`


@dataclass(frozen=True, eq=False)
class Additive(LengthScales, Kernel):
    """Mean of kernels of single columns, and mean of the products of two of them.

    ``main Σ_l k_l / d + pairs Σ_{l<m} k_l k_m / (d (d - 1) / 2)``, with the rational quadratic
    kernel ``k_l = (1 + s_l² / 8)⁻⁴`` of each column, ``s_l = (a_l - b_l) / length_scale_l``
    (Durrande, Ginsbourger & Roustant 2012; Duvenaud, Nickisch & Rasmussen 2011, eq. 2, up to order
    two).  Its functions are sums of main effects and interactions of two columns, which need far
    fewer rows than functions of all columns at once.

    Parameters
    ----------
    length_scale : float or (d,) floats, default=1.0
        One for all columns, or one for each, in the units of the columns.
    main : float, default=1.0
        Share of the main effects.
    pairs : float, default=1.0
        Share of the interactions of two columns; a single column has none.

    Raises
    ------
    InvalidParameter
        If a length scale or a share is not positive and finite.

    Notes
    -----
    A block costs O(a b d), with one division for each pair of rows and column.
    """

    short_names: ClassVar[Names] = {"additive": {}}
    file_name = "additive"
    file_fields: ClassVar[Fields] = {"length_scale": "numbers", "main": "number", "pairs": "number"}

    main: float = 1.0
    pairs: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("main", "pairs"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), computed in float64."""
        factors = self._factors(A.shape[1])
        if array_api.namespace(A) is np:
            out = np.empty((len(A), len(B)), A.dtype)
            total, squares = np.empty((2, len(B)))
            additive_block(self._scaled(A), self._scaled(B), factors, total, squares, out)
            return out
        sums, sums_of_squares = 0.0, 0.0
        for values in self._columns(A, B):
            sums, sums_of_squares = sums + values, sums_of_squares + values * values
        of_pairs = sums * sums - sums_of_squares
        return factors.main * sums + 0.5 * factors.pairs * of_pairs

    def diag(self, A: Array) -> Array:
        """The sum of the shares."""
        pairs = self.pairs if A.shape[1] > 1 else 0.0
        return array_api.zeros((A.shape[0],), A, "float64") + (self.main + pairs)

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the sums column by column."""
        d = B.shape[1]
        main, pairs = self._factors(d)
        factors = self._rates(d)
        total = squares = ""
        for column in range(d):
            own = graph.add("Gather", A, graph.integers(column), axis=1)
            step = graph.add("Sub", own, graph.constant(B[:, column][None, :]))
            step = graph.times(step, float(factors[column]))
            base = graph.plus(graph.add("Mul", step, step), 1.0)
            value = graph.add("Pow", base, graph.constant(-_ALPHA))
            square = graph.add("Mul", value, value)
            total = graph.add("Add", total, value) if total else value
            squares = graph.add("Add", squares, square) if squares else square
        of_pairs = graph.add("Sub", graph.add("Mul", total, total), squares)
        return graph.add("Add", graph.times(total, main), graph.times(of_pairs, 0.5 * pairs))

    @property
    def log_parameters(self) -> Floats:
        """Logarithms of the length scales, and of the shares."""
        return np.log([*self.length_scale, self.main, self.pairs])

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other length scales and shares."""
        main, pairs = np.exp(theta[-2:]).tolist()
        return replace(self, length_scale=np.exp(theta[:-2]), main=main, pairs=pairs)

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """``∂k_l/∂log length_scale_l = 8 (1 - u) k_l`` with ``u = (1 + s_l² / 8)⁻¹``."""
        A, W = array_api.to_numpy(A), array_api.to_numpy(W)
        (n, d), factors = A.shape, self._factors(A.shape[1])
        sums = np.empty((d + 2, n))
        inverses, working, squares = np.empty((d, n)), np.empty(n), np.empty(n)
        scaled, W = self._scaled(A), np.ascontiguousarray(W)
        additive_pulls(scaled, W, factors, inverses, working, squares, sums)
        *by_column, of_columns, of_pairs = (2 * sums.sum(axis=1)).tolist()
        trace = float(np.trace(W))  # of equal rows, whose columns all have the kernel one
        of_columns, of_pairs = of_columns + d * trace, of_pairs + 0.5 * d * (d - 1) * trace
        scales = by_column if len(self.length_scale) > 1 else [sum(by_column)]
        shares = factors.main * of_columns, factors.pairs * of_pairs
        return np.array([*(2 * _ALPHA * s for s in scales), *shares])

    def _factors(self, d: int) -> Factors:
        return Factors(self.main / d, 2 * self.pairs / (d * (d - 1)) if d > 1 else 0.0)

    def _rates(self, d: int) -> Floats:
        """Factors (d,) of the columns, for kernels ``(1 + (a - b)²)⁻⁴``."""
        return np.broadcast_to(1 / (self.length_scale * np.sqrt(2 * _ALPHA)), (d,))

    def _scaled(self, A: Floats) -> Floats:
        """Scaled columns (d, a) in float64."""
        return np.ascontiguousarray((A * self._rates(A.shape[1])).T, dtype=np.float64)

    def _columns(self, A: Array, B: Array) -> Iterator[Array]:
        """The kernel of each column, (a, b)."""
        rates = array_api.like(self._rates(A.shape[1]), A)
        left, right = A * rates, B * rates
        for column in range(A.shape[1]):
            step = left[:, column][:, None] - right[:, column][None, :]
            inverse = 1 / (1 + step * step)
            squared = inverse * inverse
            yield squared * squared
