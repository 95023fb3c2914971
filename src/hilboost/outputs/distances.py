"""Squared distances in the output space, including components outside the embedding's span."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Embedding
from hilboost.outputs.kernel_output import KernelEmbedding
from hilboost.outputs.precomputed import PrecomputedEmbedding


def to_points(embedding: Embedding, labels: Any, points: Floats) -> Floats:
    """Compute ``|φ(y_i) - p_i|²``, (n,), for points (n, r) in the span of the training outputs."""
    codes = embedding.encode(labels)
    return ((codes - points) ** 2).sum(axis=1) + _left_out(embedding, labels, codes)


def to_labels(embedding: Embedding, labels: Any, others: Any) -> Floats:
    """Compute ``|φ(y_i) - φ(y'_i)|²``, (n,).

    With an output kernel, labels may lie outside the span of the training outputs.
    """
    if isinstance(embedding, KernelEmbedding | PrecomputedEmbedding):
        squares = embedding.norms(labels) + embedding.norms(others)
        return np.maximum(squares - 2 * embedding.products(labels, others), 0.0)
    codes = embedding.encode(others)
    return to_points(embedding, labels, codes) + _left_out(embedding, others, codes)


def _left_out(embedding: Embedding, labels: Any, codes: Floats) -> Floats:
    return np.maximum(embedding.norms(labels) - np.einsum("ij,ij->i", codes, codes), 0.0)
