"""Squared distances in the output space, including components outside the embedding's span."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Embedding


def to_points(embedding: Embedding, labels: Any, points: Floats) -> Floats:
    """Compute ``|φ(y_i) - p_i|²``, (n,), for points (n, r) in the span of the training outputs."""
    codes = embedding.encode(labels)
    return ((codes - points) ** 2).sum(axis=1) + _left_out(embedding.norms(labels), codes)


def to_labels(embedding: Embedding, labels: Any, others: Any) -> Floats:
    """Compute ``|φ(y_i) - φ(y'_i)|²``, (n,).

    With an output kernel, labels may lie outside the span of the training outputs.
    """
    norms, other_norms = embedding.norms(labels), embedding.norms(others)
    products = embedding.products(labels, others)
    if products is not None:
        return np.maximum(norms + other_norms - 2 * products, 0.0)
    codes, other_codes = embedding.encode(labels), embedding.encode(others)
    apart = ((codes - other_codes) ** 2).sum(axis=1)
    return apart + _left_out(norms, codes) + _left_out(other_norms, other_codes)


def _left_out(norms: Floats, codes: Floats) -> Floats:
    return np.maximum(norms - np.einsum("ij,ij->i", codes, codes), 0.0)
