"""Vectors of real numbers with the linear kernel: ordinary multi-output regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.outputs.agreement import minus_mean_square
from hilboost.outputs.exact_embedding import ExactEmbedding
from hilboost.outputs.label_checks import as_rows


@dataclass(frozen=True)
class Vectors(OutputSpace):
    """Output space of rows of numbers (n, c), with ``φ(y) = y``.

    Arrays with more dimensions, such as images, are flattened to rows.  Predictions have the
    original shape.  Metric: ``"mean_squared_error"`` is minus the mean over all entries.
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"linear": {}}

    def fit(self, labels: object) -> VectorEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        rows = as_rows(labels)
        return VectorEmbedding(rows, shape_of_one(labels))


def shape_of_one(labels: Any) -> tuple[int, ...]:
    """Return the shape of one label; () for numbers."""
    return tuple(np.shape(labels)[1:])


@dataclass(frozen=True)
class VectorEmbedding(ExactEmbedding):
    """Fitted identity embedding."""

    file_name = "vectors"

    training: Floats  # (n, c) float64
    shape: tuple[int, ...]  # shape of one label

    def checked(self, labels: object, what: str = "Y") -> Floats:
        """Validate labels as rows, (n, c)."""
        return as_rows(labels, what, self.training.shape[1])

    def points(self, labels: Floats) -> Floats:
        """Return the rows themselves."""
        return labels

    def exact(self, raw: Floats) -> Floats:
        """Return the points themselves."""
        return np.asarray(raw)

    def _as_given(self, labels: Floats) -> Floats:
        return labels.reshape(len(labels), *self.shape)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Mean squared error of the entries."""
        return {"mean_squared_error": OutputMetric("exact", self._on_points(minus_mean_square))}
