"""Metrics of predicted distributions; less is better."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np

from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidParameter, shown
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target
from hilboost.distributions import Distribution
from hilboost.tables.bounds import as_fields, holds_bounds


class _Predicts(Protocol):
    def predict_distribution(self, X: object) -> Distribution: ...


class _Score(Metric):
    """Mean of the scores of the rows.  As ``scoring`` of scikit-learn, it is minus this mean."""

    divides_rows = True
    of_distributions = True

    @abstractmethod
    def _scores(self, predicted: Distribution, y: Any) -> Floats:
        """Score of each row, (n,)."""

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Numbers are not distributions."""
        return super().parts(target, predicted)  # type: ignore[safe-super]

    def parts_of_distribution(self, target: Target, predicted: Distribution) -> MetricParts:
        """Score of each row, with its weight."""
        y = as_fields(target.y) if target.y.shape[1] > 1 else target.y[:, 0]
        return MetricParts(self._scores(predicted, y), target.weight)

    def __call__(
        self, estimator: _Predicts, X: object, y: object, sample_weight: PerRow = None
    ) -> float:
        """Return minus the mean score of a fitted estimator, as scikit-learn maximizes scores.

        Parameters
        ----------
        estimator : estimator with ``predict_distribution``
        X : array-like (n, d)
        y : array-like (n,)
        sample_weight : array-like (n,), optional

        Returns
        -------
        float
        """
        y = y if holds_bounds(y) else np.asarray(y, dtype=np.float64)
        scores = self._scores(estimator.predict_distribution(X), y)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        return -float(np.average(scores, weights=weight))


class CRPS(_Score):
    """Continuous ranked probability score, in units of the target."""

    names = ("crps",)

    def _scores(self, predicted: Distribution, y: Any) -> Floats:
        """Score of each row."""
        return predicted.crps(y)


class LogScore(_Score):
    """Negative logarithm of the density."""

    names = ("log_score",)
    scores_bounds = True

    def _scores(self, predicted: Distribution, y: Any) -> Floats:
        """Score of each row."""
        return predicted.log_score(y)


class IntervalScore(_Score):
    """Width of central intervals, plus a penalty for targets outside.

    Parameters
    ----------
    coverage : float in (0, 1), default=0.9

    Raises
    ------
    InvalidParameter
        If ``coverage`` is not between 0 and 1.
    """

    names = ("interval_score",)

    def __init__(self, coverage: float = 0.9) -> None:
        if not 0 < coverage < 1:
            raise InvalidParameter(
                f"coverage must be a number between 0 and 1; got {shown(coverage)}."
            )
        self.coverage = coverage

    def _scores(self, predicted: Distribution, y: Any) -> Floats:
        """Score of each row."""
        return predicted.interval_score(y, self.coverage)
