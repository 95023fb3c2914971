"""Kernel machines as ONNX operators: matrix products and elementwise functions, in float64."""

from __future__ import annotations

import numpy as np

from hilboost.export.onnx_graph import Graph
from hilboost.kernels.base import block_operators
from hilboost.learners.kernel_machine import KernelExpansion
from hilboost.learners.kernel_machine.inputs import _FARTHEST


def add_expansion(graph: Graph, X: str, model: KernelExpansion) -> str:
    """Add ``k(x, basis) weights``, (n, r) or (1, r)."""
    if model.inputs.bounds is not None:
        X = graph.add("Max", X, graph.constant(model.inputs.bounds.low))
        X = graph.add("Min", X, graph.constant(model.inputs.bounds.high))
    centered = graph.add("Sub", X, graph.constant(model.inputs.center))
    scaled = graph.add("Div", centered, graph.constant(model.inputs.scale))
    rows = graph.add("Clip", scaled, graph.constant(-_FARTHEST), graph.constant(_FARTHEST))
    if model.basis.dtype == np.float32:
        rows = graph.rounded(rows)  # as for the basis vectors, so that codes stay equal
    basis = np.asarray(model.basis, dtype=np.float64)
    block = block_operators(model.kernel, graph, rows, basis)
    return graph.add("MatMul", block, graph.constant(model.weights))
