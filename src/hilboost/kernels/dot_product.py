"""Kernels of the dot product ``a·b``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Fields, Kernel, Names
from hilboost.kernels.validation import not_negative, positive, positive_integer


@dataclass(frozen=True)
class Linear(Kernel):
    """``a·b + offset``: linear functions, with an intercept if the offset is positive.

    Parameters
    ----------
    offset : float, default=0.0
        Prior variance of the intercept.

    Raises
    ------
    InvalidParameter
        If ``offset`` is negative or not finite.
    """

    short_names: ClassVar[Names] = {"linear": {}}
    file_name = "linear"
    file_fields: ClassVar[Fields] = {"offset": "number"}

    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", not_negative("offset", self.offset))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), from one matrix product."""
        block = A @ B.T
        if self.offset:
            block += self.offset
        return block

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write one matrix product."""
        return graph.plus(graph.add("MatMul", A, graph.constant(B.T)), self.offset)

    def diag(self, A: Array) -> Array:
        """``|a|² + offset``, (a,)."""
        return _squares(A) + self.offset


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``(scale a·b + offset)^degree``: polynomials of the columns up to a degree.

    Parameters
    ----------
    degree : int, default=3
    offset : float, default=1.0
        Zero gives products of exactly ``degree`` columns.
    scale : float, default=1.0
        Values near one over the number of columns keep kernel values near one.

    Raises
    ------
    InvalidParameter
        If ``degree`` is not a positive integer, ``offset`` is negative, or ``scale`` is not
        positive.
    """

    short_names: ClassVar[Names] = {"polynomial": {}}
    file_name = "polynomial"
    file_fields: ClassVar[Fields] = {"degree": "integer", "offset": "number", "scale": "number"}

    degree: int = 3
    offset: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", positive_integer("degree", self.degree))
        object.__setattr__(self, "offset", not_negative("offset", self.offset))
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), from a matrix product and about ``2 log2(degree)`` passes over it."""
        return self._power(A @ B.T)

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write a power of a matrix product."""
        product = graph.add("MatMul", A, graph.constant(self.scale * B.T))
        return graph.add("Pow", graph.plus(product, self.offset), graph.constant(self.degree))

    def diag(self, A: Array) -> Array:
        """``(scale |a|² + offset)^degree``, (a,)."""
        return self._power(_squares(A))

    def _power(self, block: Array) -> Array:
        """Square repeatedly: a general power costs as much as a logarithm and an exponential."""
        block *= self.scale
        block += self.offset
        power, rest = None, self.degree
        while True:
            if rest % 2:
                power = block if power is None else power * block
            rest //= 2
            if not rest:
                return power
            block = block * block


@dataclass(frozen=True)
class Cosine(Kernel):
    """``a·b / (|a| |b|)``: the cosine of the angle between two rows, whatever their lengths.

    For rows of zeros, the angle is undefined.  Their similarity is 1 to other rows of zeros and 0
    to all other rows; the kernel remains positive semidefinite with ones on the diagonal.
    """

    short_names: ClassVar[Names] = {"cosine": {}}
    file_name = "cosine"

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), from one matrix product of the scaled rows."""
        return _unit(A) @ _unit(B).T

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write one matrix product of the scaled rows."""
        is_zero = ~B.any(axis=1)
        B = B / (np.abs(B).max(axis=1) + is_zero)[:, None]
        B = B / np.sqrt((B * B).sum(axis=1) + is_zero)[:, None]
        largest, zero = _zero_rows(graph, A)
        scaled = graph.add("Div", A, graph.add("Add", largest, zero))
        squares = graph.row_sums(graph.add("Mul", scaled, scaled))
        unit = graph.add("Div", scaled, graph.add("Sqrt", graph.add("Add", squares, zero)))
        product = graph.add("MatMul", unit, graph.constant(B.T))
        both_zero = graph.add("Mul", zero, graph.constant([is_zero]))
        return graph.add("Add", product, both_zero)

    def diag(self, A: Array) -> Array:
        """Ones."""
        return array_api.zeros((A.shape[0],), A, "float64") + 1.0


@dataclass(frozen=True)
class Tanimoto(Kernel):
    """``a·b / (|a|² + |b|² - a·b)``: for sets as binary rows, intersection over union.

    Suited to fingerprints and counts.  The similarity of two rows of zeros is 1, as for two empty
    sets; that of a row of zeros to all other rows is 0.

    Notes
    -----
    Ralaivola et al. 2005, "Graph kernels for chemical informatics".  Positive semidefinite for all
    real rows: it is the sum over k ≥ 1 of ``(a·b)^k / (|a|² + |b|²)^k``, and ``(x + y)^-k`` is a
    mixture of the products ``exp(-t x) exp(-t y)``.
    """

    short_names: ClassVar[Names] = {"tanimoto": {}}
    file_name = "tanimoto"

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write one matrix product, and sums of squares."""
        is_zero = ~B.any(axis=1)
        _, zero = _zero_rows(graph, A)
        product = graph.add("MatMul", A, graph.constant(B.T))
        both_zero = graph.add("Mul", zero, graph.constant([is_zero]))
        shared = graph.add("Add", product, both_zero)
        squares = graph.add("Add", graph.row_sums(graph.add("Mul", A, A)), zero)
        total = graph.add("Add", squares, graph.constant(((B * B).sum(axis=1) + is_zero)[None, :]))
        return graph.add("Div", shared, graph.add("Sub", total, shared))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b), from one matrix product and three passes over it."""
        xp = array_api.namespace(A)
        A, B = _with_zero_column(A), _with_zero_column(B)
        shared = A @ B.T
        total = xp.sum(A * A, axis=1)[:, None] + xp.sum(B * B, axis=1)[None, :]
        total -= shared
        shared /= total
        return shared

    def diag(self, A: Array) -> Array:
        """Ones."""
        return array_api.zeros((A.shape[0],), A, "float64") + 1.0


def _zero_rows(graph: OperatorGraph, A: str) -> tuple[str, str]:
    """Write the largest absolute entry of each row, and 1 where it is zero, (n, 1) each."""
    largest = graph.add("ReduceMax", graph.add("Abs", A), graph.integers(1), keepdims=1)
    return largest, graph.as_numbers(graph.add("Equal", largest, graph.constant(0.0)))


def _squares(A: Array) -> Array:
    """``|a|²``, (a,) float64."""
    A = array_api.cast(A, "float64")
    return array_api.namespace(A).sum(A * A, axis=1)


def _with_zero_column(A: Array) -> Array:
    """Append a column that is 1 in rows of zeros, which gives them a direction of their own.

    2 3        2 3 0
    0 0   →    0 0 1
    0 4        0 4 0
    """
    xp = array_api.namespace(A)
    is_zero = xp.all(A == 0, axis=1)
    return xp.concat([A, xp.astype(is_zero, A.dtype)[:, None]], axis=1)


def _unit(A: Array) -> Array:
    """Scale rows to length one; rows of zeros get a direction of their own."""
    xp = array_api.namespace(A)
    A = _with_zero_column(A)
    A = A / xp.max(xp.abs(A), axis=1)[:, None]  # avoids underflow and overflow of squares
    return A / xp.sqrt(xp.sum(A * A, axis=1))[:, None]
