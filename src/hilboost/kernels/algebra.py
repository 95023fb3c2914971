"""Kernel algebra: constants, multiples, sums, products, and restriction to columns."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter, InvalidType, shown
from hilboost.core.operators import OperatorGraph
from hilboost.kernels.base import Fields, Kernel, block_operators
from hilboost.kernels.validation import positive

Operation = Callable[[Array, Array], Array]


def _require_kernels(owner: Kernel, parts: list[Any]) -> None:
    for part in parts:
        if not isinstance(part, Kernel):
            raise InvalidType(
                f"{type(owner).__name__} combines kernels; got {type(part).__name__}. Use "
                "as_kernel() to convert a name, a function or a scikit-learn kernel."
            )


@dataclass(frozen=True)
class Constant(Kernel):
    """Constant kernel; ``θ_b`` of SY2006, eq. (23).

    Parameters
    ----------
    value : float, default=1.0

    Raises
    ------
    InvalidParameter
        If ``value`` is not positive and finite.
    """

    file_name = "constant"
    file_fields: ClassVar[Fields] = {"value": "number"}

    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", positive("value", self.value))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        block = array_api.empty((A.shape[0], B.shape[0]), A, array_api.precision(A))
        block[...] = self.value
        return block

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write one row, which is the same for all rows."""
        return graph.constant(np.full((1, len(B)), self.value))

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return array_api.zeros((A.shape[0],), A, "float64") + self.value

    @property
    def log_parameters(self) -> Floats:
        """The logarithm of the constant."""
        return np.log([self.value])

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return a kernel with another constant."""
        return replace(self, value=float(np.exp(theta[0])))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The sum of ``W``, multiplied by the constant."""
        return np.array([self.value * float(array_api.namespace(W).sum(W))])


@dataclass(frozen=True)
class _Modified(Kernel):
    """Base class of kernels that are made of another one; by default, its parameters are theirs."""

    kernel: Kernel

    def check(self, n_columns: int) -> None:
        """Run the check of the kernel."""
        self.kernel.check(n_columns)

    def stretched(self, factor: float) -> Self:
        """Multiply the length scales of the kernel by the factor."""
        return replace(self, kernel=self.kernel.stretched(factor))

    @property
    def reads_raw_columns(self) -> bool:
        """Same as for the kernel."""
        return self.kernel.reads_raw_columns

    def raw_columns(self, n_columns: int) -> tuple[int, ...]:
        """Same as for the kernel."""
        return self.kernel.raw_columns(n_columns)

    @property
    def log_parameters(self) -> Floats:
        """Same as for the kernel."""
        return self.kernel.log_parameters

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel with other parameters."""
        return replace(self, kernel=self.kernel.with_log_parameters(theta))


@dataclass(frozen=True)
class Scaled(_Modified):
    """A kernel multiplied by a factor; ``θ0`` of SY2006, eq. (23).

    Parameters
    ----------
    kernel : Kernel
    factor : float, default=1.0

    Raises
    ------
    InvalidType
        If ``kernel`` is not a kernel.
    InvalidParameter
        If ``factor`` is not positive and finite.
    """

    file_name = "scaled"
    file_fields: ClassVar[Fields] = {"kernel": "kernel", "factor": "number"}

    factor: float = 1.0

    def __post_init__(self) -> None:
        _require_kernels(self, [self.kernel])
        object.__setattr__(self, "factor", positive("factor", self.factor))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        block = self.kernel.block(A, B)
        block *= self.factor
        return block

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the block of the kernel multiplied by the factor."""
        return graph.times(block_operators(self.kernel, graph, A, B), self.factor)

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return self.kernel.diag(A) * self.factor

    @property
    def log_parameters(self) -> Floats:
        """Parameters of the kernel, followed by the logarithm of the factor."""
        return np.append(self.kernel.log_parameters, np.log(self.factor))

    def with_log_parameters(self, theta: Floats) -> Self:
        """Return the kernel and the factor with other values."""
        kernel = self.kernel.with_log_parameters(theta[:-1])
        return replace(self, kernel=kernel, factor=float(np.exp(theta[-1])))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The gradient of the kernel, and ``sum W k`` for the factor."""
        inner = self.factor * self.kernel.parameter_gradient(A, W)
        total = self.factor * float(array_api.namespace(W).sum(W * self.kernel.block(A, A)))
        return np.append(inner, total)


@dataclass(frozen=True)
class _Combination(Kernel):
    """Base class for combinations of several kernels on the same rows."""

    # on values, in place and not, and its name in ONNX
    _operation: ClassVar[tuple[Operation, Operation, str]]

    parts: Any

    def __post_init__(self) -> None:
        try:
            parts = list(self.parts)
        except TypeError:
            parts = [self.parts]
        _require_kernels(self, parts)
        flat: list[Kernel] = []
        for part in parts:
            flat.extend(part.parts if type(part) is type(self) else [part])
        if not flat:
            raise InvalidParameter(f"{type(self).__name__} requires at least one kernel.")
        object.__setattr__(self, "parts", tuple(flat))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return reduce(self._operation[0], (part.block(A, B) for part in self.parts))

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return reduce(self._operation[1], (part.diag(A) for part in self.parts))

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the blocks and their combination."""
        blocks = (block_operators(part, graph, A, B) for part in self.parts)
        return reduce(partial(graph.add, self._operation[2]), blocks)

    @abstractmethod
    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The gradients of the parts."""

    def check(self, n_columns: int) -> None:
        """Run the check of every part."""
        for part in self.parts:
            part.check(n_columns)

    def stretched(self, factor: float) -> Self:
        """Multiply all length scales by the factor."""
        return replace(self, parts=tuple(part.stretched(factor) for part in self.parts))

    @property
    def reads_raw_columns(self) -> bool:
        """Whether any part does."""
        return any(part.reads_raw_columns for part in self.parts)

    def raw_columns(self, n_columns: int) -> tuple[int, ...]:
        """Those of every part."""
        found = {column for part in self.parts for column in part.raw_columns(n_columns)}
        return tuple(sorted(found))

    @property
    def log_parameters(self) -> Floats:
        """Process the parts one by one."""
        return np.concatenate([part.log_parameters for part in self.parts])

    def with_log_parameters(self, theta: Floats) -> Self:
        """Process the parts one by one."""
        ends = np.cumsum([len(part.log_parameters) for part in self.parts])[:-1]
        pieces = np.split(np.asarray(theta), ends)
        parts = (part.with_log_parameters(t) for part, t in zip(self.parts, pieces, strict=True))
        return replace(self, parts=tuple(parts))


class Sum(_Combination):
    """``k_1 + k_2 + …``: its functions are sums of functions of the individual kernels.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one; nested sums are flattened.

    Raises
    ------
    InvalidType
        If a part is not a kernel.
    InvalidParameter
        If there are no parts.
    """

    file_name = "sum"
    file_fields: ClassVar[Fields] = {"parts": "kernels"}

    _operation = (operator.iadd, operator.add, "Add")

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Process the parts one by one."""
        return np.concatenate([part.parameter_gradient(A, W) for part in self.parts])


class Product(_Combination):
    """``k_1 · k_2 · …``: rows are similar if they are similar under all kernels.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one; nested products are flattened.

    Raises
    ------
    InvalidType
        If a part is not a kernel.
    InvalidParameter
        If there are no parts.
    """

    file_name = "product"
    file_fields: ClassVar[Fields] = {"parts": "kernels"}

    _operation = (operator.imul, operator.mul, "Mul")

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """The gradient of each part, with ``W`` multiplied by all other parts."""
        blocks = [part.block(A, A) for part in self.parts]
        pieces = []
        for k, part in enumerate(self.parts):
            others = W
            for j, block in enumerate(blocks):
                others = others if j == k else others * block
            pieces.append(part.parameter_gradient(A, others))
        return np.concatenate(pieces)


@dataclass(frozen=True)
class OnColumns(_Modified):
    """A kernel restricted to some columns.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
        Indices of the columns on which the kernel is evaluated.

    Raises
    ------
    InvalidType
        If ``kernel`` is not a kernel.
    InvalidParameter
        If ``columns`` is not a nonempty sequence of integers.
    """

    file_name = "on_columns"
    file_fields: ClassVar[Fields] = {"kernel": "kernel", "columns": "integers"}

    columns: Any

    def __post_init__(self) -> None:
        _require_kernels(self, [self.kernel])
        columns = np.asarray(self.columns)
        if columns.ndim != 1 or len(columns) == 0 or columns.dtype.kind not in "iu":
            raise InvalidParameter(
                f"columns must be a sequence of column indices; got {shown(self.columns)}."
            )
        object.__setattr__(self, "columns", tuple(int(c) for c in columns))

    def check(self, n_columns: int) -> None:
        """Check that the columns exist, and run the check of the kernel."""
        for column in self.columns:
            if not 0 <= column < n_columns:
                raise InvalidParameter(
                    f"columns of OnColumns contains {column}; X has columns 0 to {n_columns - 1}."
                )
        self.kernel.check(len(self.columns))

    def block(self, A: Array, B: Array) -> Array:
        """Gram block (a, b)."""
        return self.kernel.block(self._part(A), self._part(B))

    def operators(self, graph: OperatorGraph, A: str, B: Floats) -> str:
        """Write the block of the kernel on the selected columns."""
        part = graph.add("Gather", A, graph.integers(*self.columns), axis=1)
        return block_operators(self.kernel, graph, part, self._part(B))

    def diag(self, A: Array) -> Array:
        """Diagonal (a,)."""
        return self.kernel.diag(self._part(A))

    def _part(self, A: Array) -> Array:
        return A[:, list(self.columns)]

    def raw_columns(self, n_columns: int) -> tuple[int, ...]:
        """Those of the selected columns that the kernel reads raw."""
        return tuple(self.columns[k] for k in self.kernel.raw_columns(len(self.columns)))

    def parameter_gradient(self, A: Array, W: Array) -> Floats:
        """Same as for the kernel."""
        return self.kernel.parameter_gradient(self._part(A), W)
