"""Kernel machines as ONNX operators: matrix products and functions of their entries, in float64.

``A`` is the name of rows (n, d) in the graph; ``B`` (m, d) float64 are the basis vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts
from hilboost.export.onnx_graph import Graph
from hilboost.kernels import (
    Constant,
    Cosine,
    Delta,
    Gaussian,
    Hamming,
    Kernel,
    Laplace,
    Linear,
    Mapped,
    Matern,
    OnColumns,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
    Tanimoto,
)
from hilboost.kernels.stationary import _LARGEST_SQUARE
from hilboost.learners.kernel_machine import KernelExpansion
from hilboost.learners.kernel_machine.inputs import _FARTHEST


def add_expansion(graph: Graph, X: str, model: KernelExpansion) -> str:
    """``k(x, basis) weights``, (n, r) or (1, r)."""
    centered = graph.add("Sub", X, graph.constant(model.inputs.center))
    scaled = graph.add("Div", centered, graph.constant(model.inputs.scale))
    rows = graph.add("Clip", scaled, graph.constant(-_FARTHEST), graph.constant(_FARTHEST))
    if model.basis.dtype == np.float32:
        rows = graph.rounded(rows)  # as the basis vectors are: codes stay equal
    block = _block(graph, model.kernel, rows, np.asarray(model.basis, dtype=np.float64))
    return graph.add("MatMul", block, graph.constant(model.weights))


def _block(graph: Graph, kernel: Kernel, A: str, B: Floats) -> str:
    """The Gram block (n, m); (1, m) where all rows are equal."""
    write = _BLOCKS.get(type(kernel))
    if write is None:
        raise IncompatibleParts(
            f"to_onnx writes hilboost's own kernels as operators; {type(kernel).__name__} is a "
            "function that ONNX does not have. Fit with a kernel that hilboost names."
        )
    return write(graph, kernel, A, B)


def _stationary(graph: Graph, kernel: Any, A: str, B: Floats) -> str:
    scale = np.broadcast_to(kernel.length_scale, (B.shape[1],))
    middle = (B / scale).mean(axis=0)  # cancellation is least around the middle
    B = B / scale - middle
    scaled = graph.add("Div", A, graph.constant(scale))
    centered = graph.add("Sub", scaled, graph.constant(middle))
    squares = graph.row_sums(graph.add("Mul", centered, centered))
    product = graph.add("MatMul", centered, graph.constant(-2 * B.T))
    total = graph.add("Add", product, graph.constant((B * B).sum(axis=1)[None, :]))
    total = graph.add("Add", total, squares)
    S = graph.add("Clip", total, graph.constant(0.0), graph.constant(_LARGEST_SQUARE))
    return _PROFILES[type(kernel)](graph, kernel, S)


def _gaussian(graph: Graph, kernel: Gaussian, S: str) -> str:
    return graph.add("Exp", _times(graph, S, -0.5))


def _exponential(graph: Graph, kernel: Any, S: str) -> str:
    return graph.add("Exp", graph.add("Neg", graph.add("Sqrt", S)))


def _matern(graph: Graph, kernel: Matern, S: str) -> str:
    if kernel.nu == 0.5:
        return _exponential(graph, kernel, S)
    t = graph.add("Sqrt", _times(graph, S, 2 * kernel.nu))
    polynomial = t
    if kernel.nu == 2.5:
        polynomial = graph.add("Mul", t, _plus(graph, _times(graph, t, 1 / 3), 1.0))
    decay = graph.add("Exp", graph.add("Neg", t))
    return graph.add("Mul", _plus(graph, polynomial, 1.0), decay)


def _rational_quadratic(graph: Graph, kernel: RationalQuadratic, S: str) -> str:
    base = _plus(graph, _times(graph, S, 1 / (2 * kernel.alpha)), 1.0)
    return graph.add("Pow", base, graph.constant(-kernel.alpha))


def _linear(graph: Graph, kernel: Linear, A: str, B: Floats) -> str:
    return _plus(graph, graph.add("MatMul", A, graph.constant(B.T)), kernel.offset)


def _polynomial(graph: Graph, kernel: Polynomial, A: str, B: Floats) -> str:
    product = graph.add("MatMul", A, graph.constant(kernel.scale * B.T))
    return graph.add("Pow", _plus(graph, product, kernel.offset), graph.constant(kernel.degree))


def _cosine(graph: Graph, kernel: Cosine, A: str, B: Floats) -> str:
    is_zero = ~B.any(axis=1)
    B = B / (np.abs(B).max(axis=1) + is_zero)[:, None]
    B = B / np.sqrt((B * B).sum(axis=1) + is_zero)[:, None]
    largest = graph.add("ReduceMax", graph.add("Abs", A), graph.integers(1), keepdims=1)
    zero = graph.as_numbers(graph.add("Equal", largest, graph.constant(0.0)))
    scaled = graph.add("Div", A, graph.add("Add", largest, zero))
    squares = graph.row_sums(graph.add("Mul", scaled, scaled))
    unit = graph.add("Div", scaled, graph.add("Sqrt", graph.add("Add", squares, zero)))
    product = graph.add("MatMul", unit, graph.constant(B.T))
    both_zero = graph.add("Mul", zero, graph.constant([is_zero]))
    return graph.add("Add", product, both_zero)


def _tanimoto(graph: Graph, kernel: Tanimoto, A: str, B: Floats) -> str:
    is_zero = ~B.any(axis=1)
    largest = graph.add("ReduceMax", graph.add("Abs", A), graph.integers(1), keepdims=1)
    zero = graph.as_numbers(graph.add("Equal", largest, graph.constant(0.0)))
    product = graph.add("MatMul", A, graph.constant(B.T))
    both_zero = graph.add("Mul", zero, graph.constant([is_zero]))
    shared = graph.add("Add", product, both_zero)
    squares = graph.add("Add", graph.row_sums(graph.add("Mul", A, A)), zero)
    total = graph.add("Add", squares, graph.constant(((B * B).sum(axis=1) + is_zero)[None, :]))
    return graph.add("Div", shared, graph.add("Sub", total, shared))


def _differing(graph: Graph, A: str, B: Floats, factors: Floats) -> str:
    """``sum_l factor_l [a_l ≠ b_l]``, (n, m), column by column."""
    total = ""
    for column, factor in enumerate(factors):
        codes = graph.add("Gather", A, graph.integers(column), axis=1)
        equal = graph.add("Equal", codes, graph.constant(B[:, column][None, :]))
        differs = _times(graph, graph.as_numbers(graph.add("Not", equal)), float(factor))
        total = graph.add("Add", total, differs) if total else differs
    return total


def _delta(graph: Graph, kernel: Delta, A: str, B: Floats) -> str:
    rates = np.broadcast_to(1 / kernel.length_scale, (B.shape[1],))
    return graph.add("Exp", _differing(graph, A, B, -rates))


def _hamming(graph: Graph, kernel: Hamming, A: str, B: Floats) -> str:
    d = B.shape[1]
    return _plus(graph, _differing(graph, A, B, np.full(d, -1 / d)), 1.0)


def _constant(graph: Graph, kernel: Constant, A: str, B: Floats) -> str:
    return graph.constant(np.full((1, len(B)), kernel.value))


def _scaled(graph: Graph, kernel: Scaled, A: str, B: Floats) -> str:
    return _times(graph, _block(graph, kernel.kernel, A, B), kernel.factor)


def _combination(operator: str) -> Callable[[Graph, Any, str, Floats], str]:
    def write(graph: Graph, kernel: Any, A: str, B: Floats) -> str:
        total = _block(graph, kernel.parts[0], A, B)
        for part in kernel.parts[1:]:
            total = graph.add(operator, total, _block(graph, part, A, B))
        return total

    return write


def _on_columns(graph: Graph, kernel: OnColumns, A: str, B: Floats) -> str:
    part = graph.add("Gather", A, graph.integers(*kernel.columns), axis=1)
    return _block(graph, kernel.kernel, part, B[:, list(kernel.columns)])


def _mapped(graph: Graph, kernel: Mapped, A: str, B: Floats) -> str:
    image = graph.add("MatMul", A, graph.constant(kernel.matrix))
    return _block(graph, kernel.kernel, image, B @ kernel.matrix)


def _times(graph: Graph, name: str, factor: float) -> str:
    return graph.add("Mul", name, graph.constant(factor))


def _plus(graph: Graph, name: str, offset: float) -> str:
    return graph.add("Add", name, graph.constant(offset))


_PROFILES: dict[type, Callable[[Graph, Any, str], str]] = {
    Gaussian: _gaussian,
    Laplace: _exponential,
    Matern: _matern,
    RationalQuadratic: _rational_quadratic,
}
_BLOCKS: dict[type, Callable[[Graph, Any, str, Floats], str]] = {
    **dict.fromkeys(_PROFILES, _stationary),
    Constant: _constant,
    Cosine: _cosine,
    Delta: _delta,
    Hamming: _hamming,
    Linear: _linear,
    Mapped: _mapped,
    OnColumns: _on_columns,
    Polynomial: _polynomial,
    Product: _combination("Mul"),
    Scaled: _scaled,
    Sum: _combination("Add"),
    Tanimoto: _tanimoto,
}
