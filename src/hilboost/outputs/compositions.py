"""Compositions: non-negative shares that sum to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import scipy.linalg
from scipy.special import softmax

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import OutputSpace, ShortNames
from hilboost.outputs.agreement import minus_distance
from hilboost.outputs.exact_embedding import ExactEmbedding
from hilboost.outputs.label_checks import as_table, check_choice, in_words, refuse_rows

_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Compositions(OutputSpace):
    """Output space of compositions: rows (n, K) of non-negative shares that sum to 1 (within 1e-6).

    Parameters
    ----------
    geometry : {"hellinger", "aitchison"}, default="hellinger"
        ``"hellinger"`` embeds labels on the unit sphere by ``φ(y) = √y``, where distances are
        Hellinger distances times √2.  ``"aitchison"`` is the isometric log-ratio transform (Egozcue
        et al. 2003) with K - 1 coordinates.  It depends only on ratios of shares and does not
        allow zeros.

    Notes
    -----
    Decoding methods: ``"exact"`` computes the nearest composition in closed form, in O(n K) or
    O(n K²); ``"nearest"`` and ``"cosine"`` choose among the training compositions.  Metric:
    minus the mean distance of the geometry, ``"hellinger"`` or ``"aitchison"`` (decoded by
    ``"exact"``).
    """

    in_files = True
    short_names: ClassVar[ShortNames] = {"composition": {}}

    geometry: str = "hellinger"

    def fit(self, labels: object) -> CompositionEmbedding:
        """See :class:`~hilboost.core.output_space.OutputSpace`."""
        check_choice("geometry", self.geometry, tuple(_GEOMETRIES))
        return CompositionEmbedding(_shares(labels, None, self.geometry), self.geometry)


@dataclass(frozen=True)
class CompositionEmbedding(ExactEmbedding):
    """Fitted embedding of compositions."""

    file_name = "compositions"

    training: Floats  # (n, K) float64
    geometry: str

    def checked(self, labels: object, what: str = "Y") -> Floats:
        """Validate shares, (n, K)."""
        return _shares(labels, self.training.shape[1], self.geometry, what)

    def points(self, labels: Floats) -> Floats:
        """Return the coordinates of the geometry, (n, K) or (n, K - 1)."""
        return _GEOMETRIES[self.geometry].encode(labels)

    def exact(self, raw: Floats) -> Floats:
        """Return the nearest shares (n, K), which sum to 1."""
        return _GEOMETRIES[self.geometry].decode(raw)

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Distance of the geometry."""
        return {self.geometry: OutputMetric("exact", self._minus_distance)}

    def _minus_distance(self, labels: object, predicted: object) -> Floats:
        found = minus_distance(self.encode(labels), self.encode(predicted))
        return found * _GEOMETRIES[self.geometry].unit


def _shares(labels: object, width: int | None, geometry: str, what: str = "Y") -> Floats:
    """Validate shares and normalize them to sum to 1, (n, K)."""
    rows = as_table(labels, "the shares of all parts", width, what)
    if rows.shape[1] < 2:
        raise InvalidData(f"row 0 of {what} has only one share; pass one column for each part.")
    refuse_rows(
        rows.min(axis=1) < 0,
        lambda i: (
            f"row {i} of {what}, {in_words(rows[i])}, has a negative share; shares must be zero or "
            "positive."
        ),
    )
    total: Floats = rows.sum(axis=1)
    refuse_rows(
        np.abs(total - 1) > _SUM_TOLERANCE,
        lambda i: (
            f"row {i} of {what} sums to {total[i]:.6g}; a composition must sum to 1. Divide each "
            "row by its sum."
        ),
    )
    if geometry == "aitchison":
        refuse_rows(
            rows.min(axis=1) == 0,
            lambda i: (
                f"row {i} of {what}, {in_words(rows[i])}, has a share of zero, which has no "
                "logarithm; use Compositions('hellinger'), or replace zeros by small shares."
            ),
        )
    return rows / total[:, None]


def _decode_roots(raw: Floats) -> Floats:
    """Find the nearest non-negative point of the unit sphere, and square it."""
    largest = raw.argmax(axis=1)[:, None]
    roots = raw.clip(0)
    # If no coordinate is positive, the nearest composition has a single nonzero share.
    nothing = np.take_along_axis(roots, largest, axis=1) == 0
    vertex = np.arange(raw.shape[1]) == largest
    roots = np.where(nothing, vertex, roots)
    roots /= roots.max(axis=1, keepdims=True)
    squares = roots**2
    return squares / squares.sum(axis=1, keepdims=True)


def _encode_ratios(shares: Floats) -> Floats:
    return np.log(shares) @ scipy.linalg.helmert(shares.shape[1]).T


def _decode_ratios(raw: Floats) -> Floats:
    # BLAS, and sums over columns in Fortran order, depend on the number of rows in the last bits.
    logarithms = np.einsum("ij,jk->ik", raw, scipy.linalg.helmert(raw.shape[1] + 1), order="C")
    return np.asarray(softmax(logarithms, axis=1))


@dataclass(frozen=True)
class _Geometry:
    """Functions that encode compositions as points and decode points to the nearest composition.

    ``unit`` is the distance of labels whose points have distance 1.
    """

    encode: Callable[[Floats], Floats]
    decode: Callable[[Floats], Floats]
    unit: float


_GEOMETRIES = MappingProxyType(
    {
        "hellinger": _Geometry(np.sqrt, _decode_roots, np.sqrt(0.5)),
        "aitchison": _Geometry(_encode_ratios, _decode_ratios, 1.0),
    }
)
