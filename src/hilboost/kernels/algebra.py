"""Kernels made of kernels: constants, multiples, sums, products, restriction to columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, InvalidType
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Fields, Kernel, block_operators
from hilboost.kernels.validation import positive


def _require_kernels(owner: Kernel, parts: list[Any]) -> None:
    for part in parts:
        if not isinstance(part, Kernel):
            raise InvalidType(
                f"{type(owner).__name__} is made of kernels; got {type(part).__name__}. "
                "as_kernel() makes a kernel of a name, a function or a scikit-learn kernel."
            )


@dataclass(frozen=True)
class Constant(Kernel):
    """The same for every pair; ``θ_b`` of SY2006, eq. (23).

    Parameters
    ----------
    value : float
    """

    file_name = "constant"
    file_fields: ClassVar[Fields] = {"value": "number"}

    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive("value", self.value))

    def block(self, A: Array, B: Array) -> Array:
        """(a, b)"""
        block = dense.empty((A.shape[0], B.shape[0]), A, dense.precision(A))
        block[...] = self.value
        return block

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """One row for all."""
        return graph.constant(np.full((1, len(B)), self.value))

    def diag(self, A: Array) -> Array:
        """(a,)"""
        return dense.zeros((A.shape[0],), A, "float64") + self.value

    @property
    def log_parameters(self) -> Floats:
        """Its logarithm."""
        return np.log([self.value])

    def with_log_parameters(self, theta: Floats) -> Self:
        """Another constant."""
        return replace(self, value=float(np.exp(theta[0])))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The sum of ``W`` times the value."""
        return np.array([self.value * float(dense.namespace(W).sum(W))])


@dataclass(frozen=True)
class Scaled(Kernel):
    """A multiple of a kernel; ``θ0`` of SY2006, eq. (23).

    Parameters
    ----------
    kernel : Kernel
    factor : float
    """

    file_name = "scaled"
    file_fields: ClassVar[Fields] = {"kernel": "kernel", "factor": "number"}

    kernel: Kernel
    factor: float = 1.0

    def __post_init__(self) -> None:
        _require_kernels(self, [self.kernel])
        object.__setattr__(self, "factor", positive("factor", self.factor))

    def check(self, n_columns: int) -> None:
        """The kernel's own check."""
        self.kernel.check(n_columns)

    def block(self, A: Array, B: Array) -> Array:
        """(a, b)"""
        block = self.kernel.block(A, B)
        block *= self.factor
        return block

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """A multiple."""
        return graph.times(block_operators(self.kernel, graph, A, B), self.factor)

    def diag(self, A: Array) -> Array:
        """(a,)"""
        return self.kernel.diag(A) * self.factor

    def stretched(self, factor: float) -> Kernel:
        """Its kernel's length scales times the factor."""
        return replace(self, kernel=self.kernel.stretched(factor))

    @property
    def log_parameters(self) -> Floats:
        """The kernel's, then the factor's."""
        return np.append(self.kernel.log_parameters, np.log(self.factor))

    def with_log_parameters(self, theta: Floats) -> Self:
        """Another kernel, another factor."""
        kernel = self.kernel.with_log_parameters(theta[:-1])
        return replace(self, kernel=kernel, factor=float(np.exp(theta[-1])))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The kernel's, and ``sum W k`` for the factor."""
        inner = self.factor * self.kernel.parameter_gradient(A, W)
        total = self.factor * float(dense.namespace(W).sum(W * self.kernel.block(A, A)))
        return np.append(inner, total)


@dataclass(frozen=True)
class _Combination(Kernel):
    """Several kernels of the same rows.

    Parameters
    ----------
    parts : sequence of Kernel
    """

    parts: Any

    def __post_init__(self) -> None:
        parts = list(self.parts)
        _require_kernels(self, parts)
        flat: list[Kernel] = []
        for part in parts:
            flat.extend(part.parts if type(part) is type(self) else [part])
        if not flat:
            raise InvalidParameter(f"{type(self).__name__} needs at least one kernel.")
        object.__setattr__(self, "parts", tuple(flat))

    def _combined(self, operator: str, graph: OperatorGraph, A: str, B: Floats) -> str:
        total = block_operators(self.parts[0], graph, A, B)
        for part in self.parts[1:]:
            total = graph.add(operator, total, block_operators(part, graph, A, B))
        return total

    def check(self, n_columns: int) -> None:
        """Each part's own check."""
        for part in self.parts:
            part.check(n_columns)

    def stretched(self, factor: float) -> Kernel:
        """All length scales times the factor."""
        return replace(self, parts=tuple(part.stretched(factor) for part in self.parts))

    @property
    def log_parameters(self) -> Floats:
        """Part by part."""
        return np.concatenate([part.log_parameters for part in self.parts])

    def with_log_parameters(self, theta: Floats) -> Self:
        """Part by part."""
        ends = np.cumsum([len(part.log_parameters) for part in self.parts])[:-1]
        pieces = np.split(np.asarray(theta), ends)
        parts = (part.with_log_parameters(t) for part, t in zip(self.parts, pieces, strict=True))
        return replace(self, parts=tuple(parts))


class Sum(_Combination):
    """``k_1 + k_2 + …``: functions that are sums of a function of each kernel.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one; a sum among them is taken apart.
    """

    file_name = "sum"
    file_fields: ClassVar[Fields] = {"parts": "kernels"}

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """A sum of blocks."""
        return self._combined("Add", graph, A, B)

    def block(self, A: Array, B: Array) -> Array:
        """(a, b)"""
        total = self.parts[0].block(A, B)
        for part in self.parts[1:]:
            total += part.block(A, B)
        return total

    def diag(self, A: Array) -> Array:
        """(a,)"""
        return sum((part.diag(A) for part in self.parts[1:]), start=self.parts[0].diag(A))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Part by part."""
        return np.concatenate([part.parameter_gradient(A, W) for part in self.parts])


class Product(_Combination):
    """``k_1 · k_2 · …``: rows are alike where all kernels say so.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one; a product among them is taken apart.
    """

    file_name = "product"
    file_fields: ClassVar[Fields] = {"parts": "kernels"}

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """A product of blocks."""
        return self._combined("Mul", graph, A, B)

    def block(self, A: Array, B: Array) -> Array:
        """(a, b)"""
        product = self.parts[0].block(A, B)
        for part in self.parts[1:]:
            product *= part.block(A, B)
        return product

    def diag(self, A: Array) -> Array:
        """(a,)"""
        product = self.parts[0].diag(A)
        for part in self.parts[1:]:
            product = product * part.diag(A)
        return product

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Each part's, ``W`` multiplied by all other parts."""
        blocks = [part.block(A, A) for part in self.parts]
        pieces = []
        for k, part in enumerate(self.parts):
            others = W
            for j, block in enumerate(blocks):
                others = others if j == k else others * block
            pieces.append(part.parameter_gradient(A, others))
        return np.concatenate(pieces)


@dataclass(frozen=True)
class OnColumns(Kernel):
    """A kernel that sees some columns only.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
    """

    file_name = "on_columns"
    file_fields: ClassVar[Fields] = {"kernel": "kernel", "columns": "integers"}

    kernel: Kernel
    columns: Any

    def __post_init__(self) -> None:
        _require_kernels(self, [self.kernel])
        columns = np.asarray(self.columns)
        if columns.ndim != 1 or len(columns) == 0 or columns.dtype.kind not in "iu":
            raise InvalidParameter(
                f"columns must be a sequence of column numbers; got {self.columns!r}."
            )
        object.__setattr__(self, "columns", tuple(int(c) for c in columns))

    def check(self, n_columns: int) -> None:
        """Columns that exist, and the kernel's own check."""
        for column in self.columns:
            if not 0 <= column < n_columns:
                raise InvalidParameter(
                    f"OnColumns names column {column}; X has columns 0 to {n_columns - 1}."
                )
        self.kernel.check(len(self.columns))

    def block(self, A: Array, B: Array) -> Array:
        """(a, b)"""
        return self.kernel.block(self._part(A), self._part(B))

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """The kernel's, of some columns."""
        part = graph.add("Gather", A, graph.integers(*self.columns), axis=1)
        return block_operators(self.kernel, graph, part, self._part(B))

    def diag(self, A: Array) -> Array:
        """(a,)"""
        return self.kernel.diag(self._part(A))

    def _part(self, A: Array) -> Array:
        return A[:, list(self.columns)]

    def stretched(self, factor: float) -> Kernel:
        """Its kernel's length scales times the factor."""
        return replace(self, kernel=self.kernel.stretched(factor))

    @property
    def log_parameters(self) -> Floats:
        """The kernel's."""
        return self.kernel.log_parameters

    def with_log_parameters(self, theta: Floats) -> Self:
        """The kernel with others."""
        return replace(self, kernel=self.kernel.with_log_parameters(theta))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The kernel's."""
        return self.kernel.parameter_gradient(self._part(A), W)
