"""Distances in the output space, and training outputs that span all of them.

Squared distances include components outside the span of the training outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import InvalidData
from hilboost.core.labels import take_labels
from hilboost.core.output_space import Choice, Embedding
from hilboost.outputs.label_checks import count_rows
from hilboost.outputs.preimage import checked_allowed
from hilboost.tables.arrays import without_frame
from hilboost.tables.sparse import is_sparse

_CELLS_AT_ONCE = 2**22
_ROUNDING = 1e-12  # of the squares whose difference a squared distance is
_NEGLIGIBLE = 1e-10  # of the largest pivot


def to_points(embedding: Embedding, labels: object, points: Floats) -> Floats:
    """Compute ``|φ(y_i) - p_i|²``, (n,), for points (n, r) in the span of the training outputs."""
    codes = embedding.encode(labels)
    return ((codes - points) ** 2).sum(axis=1) + _left_out(embedding.norms(labels), codes)


def to_labels(embedding: Embedding, labels: object, others: object) -> Floats:
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


def labels_within(
    embedding: Embedding,
    raw: Floats,  # (n, r) float64: predicted points ``F(x)``
    radius: Floats,  # (n,) float64
    # candidates and those allowed for each row; by default the training labels
    choice: Choice | None = None,
) -> list[Any]:  # labels with ``|φ(y') - F(x)| <= radius``, the nearest first
    """Find the candidates whose embeddings lie within a distance of each point.

    The cost is O(n c r), in matrix products over blocks of rows.
    """
    labels = _labels(embedding, choice)
    codes, norms = embedding.encode(labels), embedding.norms(labels)
    among = None
    if choice is not None and choice.allowed is not None:
        among = checked_allowed(choice.allowed, len(raw), len(codes))
    lengths = np.einsum("ij,ij->i", raw, raw)
    size = max(1, _CELLS_AT_ONCE // len(codes))
    found = []
    for begin in range(0, len(raw), size):
        rows = range(begin, min(begin + size, len(raw)))
        squares = raw[begin : begin + size] @ (-2 * codes.T)
        squares += norms
        squares += lengths[begin : begin + size, None]
        for i, square in zip(rows, squares, strict=True):
            near = np.flatnonzero(square <= radius[i] ** 2 + _ROUNDING * (norms + lengths[i]))
            if among is not None:
                near = np.intersect1d(near, among[i])
            found.append(take_labels(labels, near[np.argsort(square[near], kind="stable")]))
    return found


def _labels(embedding: Embedding, choice: Choice | None) -> Any:
    labels = embedding.training_labels() if choice is None else choice.labels
    if labels is None:
        raise InvalidData(
            f"{type(embedding).__name__} keeps no labels to choose from; give candidates."
        )
    if not count_rows(labels, "labels", "candidates"):
        raise InvalidData("candidates is empty; give at least one label to choose from.")
    return labels.toarray() if is_sparse(labels) else without_frame(labels)


def spanning_rows(embedding: Embedding, codes: Floats) -> Ints:
    """Find rows of ``codes`` (n, r) that span all rows.

    For a pivoted Cholesky factor, these are its pivots.  Otherwise, they are found by a pivoted QR
    factorization in O(n r²).
    """
    known = embedding.spanning()
    if known is not None:
        return known
    triangle, order = scipy.linalg.qr(codes.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(sizes > _NEGLIGIBLE * sizes.max(initial=0.0)))
    return np.asarray(order[:rank], dtype=np.int64)
