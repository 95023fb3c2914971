"""Symmetric positive definite matrices with the log-Euclidean distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, counted
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.outputs.agreement import minus_distance
from hilboost.outputs.exact_embedding import ExactEmbedding
from hilboost.outputs.label_checks import as_rows, refuse_rows

_ASYMMETRY = 1e-6  # relative to the largest entry; covariances in float32 have about 1e-7


@dataclass(frozen=True)
class PositiveMatrices(OutputSpace):
    """Output space of symmetric positive definite matrices (n, p, p), such as covariances.

    The embedding is ``φ(Y) = log Y`` (Arsigny et al. 2006), stored as the vector of its upper
    triangle with off-diagonal entries multiplied by √2.  The distance between points is
    ``‖log A - log B‖_F``.

    Notes
    -----
    Decoding methods: ``"exact"`` is the matrix exponential, which is positive definite for any
    point; ``"nearest"`` and ``"cosine"`` choose among the training matrices.  The cost is O(n p³).
    Metric: ``"log_euclidean"`` is minus the mean distance (decoded by ``"exact"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"positive_matrix": {}}

    def fit(self, labels: object) -> PositiveMatrixEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        return PositiveMatrixEmbedding(_matrices(labels, None))


@dataclass(frozen=True)
class PositiveMatrixEmbedding(ExactEmbedding):
    """Fitted embedding of matrices by their logarithms."""

    file_name = "positive_matrices"

    training: Floats  # (n, p, p) float64

    def checked(self, labels: object, what: str = "Y") -> Floats:
        """Validate matrices, (n, p, p)."""
        return _matrices(labels, self.training.shape[1], what)

    def points(self, labels: Floats) -> Floats:
        """Return the logarithms, (n, p(p+1)/2)."""
        return _logarithms(labels)

    def exact(self, raw: Floats) -> Floats:
        """Return the matrices at these points, (n, p, p)."""
        return _exponentials(raw, self.training.shape[1])

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Log-Euclidean distance."""
        return {"log_euclidean": OutputMetric("exact", self._on_points(minus_distance))}


def _matrices(labels: Any, width: int | None, what: str = "Y") -> Floats:
    """Validate matrices, (n, p, p), and make them exactly symmetric."""
    rows = as_rows(labels, what)
    shape = np.shape(labels)
    if len(shape) != 3 or shape[1] != shape[2]:
        raise InvalidData(
            f"each row of {what}, from row 0, must be a square matrix, so its shape must be "
            f"(n, p, p); got shape {shape}."
        )
    if width is not None and shape[1] != width:
        raise InvalidData(
            f"row 0 of {what} is a matrix with {counted(shape[1], 'row')}; the model was fitted "
            f"with {width}."
        )
    given = rows.reshape(shape)
    other = given.transpose(0, 2, 1)
    gap = np.abs(given - other).max(axis=(1, 2))
    refuse_rows(
        gap > _ASYMMETRY * np.abs(rows).max(axis=1),
        lambda i: (
            f"row {i} of {what} is not symmetric: it differs from its transpose by {gap[i]:.3g}. "
            "Use (Y + Y') / 2."
        ),
    )
    matrices = (given + other) / 2
    values = np.linalg.eigvalsh(matrices)
    # Smaller eigenvalues are rounding errors, and their logarithms are meaningless.
    least = values[:, -1] * shape[1] * np.finfo(np.float64).eps
    refuse_rows(
        values[:, 0] <= np.maximum(least, 0),
        lambda i: (
            f"row {i} of {what} is not positive definite: its smallest eigenvalue is "
            f"{values[i, 0]:.3g} and its largest {values[i, -1]:.3g}. Add a small multiple of the "
            "identity to all matrices."
        ),
    )
    return matrices


def _logarithms(matrices: Floats) -> Floats:
    """Compute matrix logarithms, from (n, p, p) to (n, p(p+1)/2).

    ::

        a b        ─log→  A B   →  A  √2 B  C
        b c               B C
    """
    values, vectors = np.linalg.eigh(matrices)
    log = (vectors * np.log(values)[:, None, :]) @ vectors.transpose(0, 2, 1)
    first, second = np.triu_indices(matrices.shape[1])
    return log[:, first, second] * np.where(first == second, 1.0, np.sqrt(2))


def _exponentials(codes: Floats, p: int) -> Floats:
    """Compute matrix exponentials, from (n, p(p+1)/2) to (n, p, p)."""
    first, second = np.triu_indices(p)
    log = np.empty((len(codes), p, p))
    log[:, first, second] = codes / np.where(first == second, 1.0, np.sqrt(2))
    log[:, second, first] = log[:, first, second]
    values, vectors = np.linalg.eigh(log)
    found = (vectors * np.exp(values)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray((found + found.transpose(0, 2, 1)) / 2)
