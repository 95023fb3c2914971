"""Mixins of output kernel models: errors, scores, and sets of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, unknown_name
from hilboost.core.metric import OutputMetric
from hilboost.core.output_space import Embedding
from hilboost.estimators.conformal import ConformalPredictions
from hilboost.estimators.fitted_properties import FittedProperties
from hilboost.estimators.signatures import public_methods, public_prediction
from hilboost.metrics.registry import same_metric
from hilboost.model.conformal import Calibration
from hilboost.model.scores import DistanceScale
from hilboost.outputs.distances import labels_within, to_labels, to_points
from hilboost.validation.targets import as_sequence, check_length
from hilboost.validation.weights import check_weights

_OF_ALL_SPACES = ("embedding", "preimage")


@public_methods
class OutputQuality(FittedProperties):
    """Mixin of the errors and scores of models that predict points of an output space."""

    metric: str
    output_: Any
    _decoded: Any

    def embedding_loss(self, X: object, Y: object, sample_weight: PerRow = None) -> float:
        """Compute the mean squared distance ``|φ(y) - F(x)|²`` (Err_φ of G2007).

        Parameters
        ----------
        X : array-like (n, d)
        Y : sequence of n labels
        sample_weight : array-like (n,), optional

        Returns
        -------
        float
        """
        raw = self.predict_raw(X)
        return _mean(to_points(self.output_, _one_each(Y, raw), raw), sample_weight, raw)

    def preimage_loss(self, X: object, Y: object, sample_weight: PerRow = None) -> float:
        """Compute the mean squared distance ``|φ(y) - φ(ŷ)|²`` of labels (Err_Y of G2007).

        Parameters
        ----------
        X : array-like (n, d)
        Y : sequence of n labels
        sample_weight : array-like (n,), optional

        Returns
        -------
        float
        """
        raw = self.predict_raw(X)
        distance = to_labels(self.output_, _one_each(Y, raw), self._decoded(raw, None))
        return _mean(distance, sample_weight, raw)

    @public_prediction
    def score(self, X: object, y: object, sample_weight: PerRow = None) -> float:
        """Compute the metric of the model; larger values are better.

        Parameters
        ----------
        X : array-like (n, d)
        y : sequence of n labels
        sample_weight : array-like (n,), optional

        Returns
        -------
        float
            Mean agreement of predicted and true labels by ``metric``.  With
            ``metric="embedding"``, the fraction of explained variance in the output space, which is
            R² for real vectors: ``1 - Σ|φ(y) - F(x)|² / Σ|φ(y) - mean φ|²``, where the mean is
            taken in the span of the training outputs.  With ``"preimage"``, the same for the points
            of the predicted labels.
        """
        metric = self._named_metric(self.output_)
        if metric is None:
            return self.explained_variance(X, y, sample_weight, self.metric == "preimage")
        raw = self.predict_raw(X)
        values = metric.agreement(_one_each(y, raw), self._decoded(raw, None))
        return _mean(values, sample_weight, raw)

    def _named_metric(self, embedding: Embedding) -> OutputMetric | None:
        """The metric, if it is one of the output space."""
        metrics = embedding.metrics()
        if self.metric in _OF_ALL_SPACES:
            return None
        if self.metric not in metrics:
            known = (*_OF_ALL_SPACES, *metrics)
            raise unknown_name("metric", self.metric, known, same_metric(self.metric, known))
        return metrics[self.metric]

    def explained_variance(
        self, X: object, Y: object, sample_weight: PerRow = None, decoded: bool = False
    ) -> float:
        """Compute the fraction of explained variance in the output space; see :meth:`score`.

        Parameters
        ----------
        X : array-like (n, d)
        Y : sequence of n labels
        sample_weight : array-like (n,), optional
        decoded : bool, default=False
            Whether to compare with the points of the predicted labels instead of the predicted
            points.

        Returns
        -------
        float
        """
        raw = self.predict_raw(X)
        y = _one_each(Y, raw)
        codes = self.output_.encode(y)
        mean = np.average(codes, axis=0, weights=check_weights(sample_weight, raw))
        outside = np.maximum(self.output_.norms(y) - np.einsum("ij,ij->i", codes, codes), 0.0)
        distances = [((codes - points) ** 2).sum(axis=1) + outside for points in (mean, raw)]
        if decoded:
            distances[1] = to_labels(self.output_, y, self._decoded(raw, None))
        total, left = (_mean(distance, sample_weight, raw) for distance in distances)
        return 1 - left / total if total > 0 else float(left == 0)


@public_methods
class CandidateSets(ConformalPredictions):
    """Mixin of sets of candidate labels in an output space."""

    output_: Any
    _choice: Any

    def _scores(self, raw: Floats, X: object, y: object) -> Floats:
        return np.sqrt(to_points(self.output_, _one_each(y, raw), raw))[:, None]

    def _with_scale(
        self, calibration: Calibration, X: object, kept: NDArray[np.intp]
    ) -> Calibration:
        points, squares = self.predict_raw(X)[kept], calibration.scores[:, 0] ** 2
        return replace(calibration, scale=DistanceScale.of(points, squares, calibration.weight))

    def _std(self, raw: Floats) -> Floats:
        """Root (n,) of the expected squared distance of the labels from predicted points."""
        scale = self._calibration("return_std=True").scale
        if scale is None:
            raise InvalidData(
                "the file of the model has no scale of its errors, because an earlier version "
                "wrote it; call calibrate(X_held_out, y_held_out) again for return_std=True."
            )
        return np.sqrt(scale(raw))

    @public_prediction
    def predict_set(
        self,
        X: object,
        coverage: float = 0.9,
        *,
        candidates: object = None,
        allowed: Sequence[Sequence[int]] | None = None,
        groups: PerRow = None,
    ) -> list[Any]:
        """Predict sets of candidates, which contain the label with at least the given probability.

        The set of a row holds all candidates whose embeddings lie within the calibrated distance
        of its predicted point.  If the calibration rows and the new rows are exchangeable, the
        label itself lies within this distance with probability ``coverage`` or more.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
        candidates : sequence of labels, optional
            Labels to choose from; the training labels by default.
        allowed : sequence of n sequences of int, optional
            Indices of the candidates that are allowed for each row.
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.

        Returns
        -------
        list of n arrays or lists
            The candidates within the distance, the nearest first.  A set may be empty.

        Raises
        ------
        InvalidData
            The model is not calibrated, or with too few rows for this coverage; or there are no
            candidates.
        InvalidParameter
            ``coverage`` is not between 0 and 1.

        Notes
        -----
        The cost is O(n c r) for ``c`` candidates.
        """
        calibration = self._calibration("predict_set")
        coverage = check_coverage(coverage)
        raw = self.predict_raw(X)
        numbers = self._group_numbers(calibration, groups, len(raw))
        if len(numbers):
            radius = calibration.thresholds(coverage, numbers)
        else:
            radius = np.full(len(raw), calibration.threshold(coverage))
        return labels_within(self.output_, raw, radius, self._choice(candidates, allowed))


def _one_each(y: object, raw: Floats) -> Any:
    """Return the labels as a sequence, with one label per predicted point (n, r)."""
    y = as_sequence(y)
    check_length(y, len(raw))
    return y


def _mean(values: Floats, sample_weight: PerRow, raw: Floats) -> float:
    return float(np.average(values, weights=check_weights(sample_weight, raw)))
