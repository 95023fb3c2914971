"""Metrics of predicted distributions; less is better."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import IncompatibleParts, InvalidData, first_true, shown
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target
from hilboost.distributions import Distribution
from hilboost.tables.bounds import as_fields, holds_bounds


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

    def __call__(self, estimator: Any, X: object, y: object, sample_weight: PerRow = None) -> float:
        """Return minus the mean score of a fitted estimator, as scikit-learn maximizes scores.

        Parameters
        ----------
        estimator : estimator with ``predict_distribution``, or a pipeline that ends with one
        X : array-like (n, d)
        y : array-like (n,)
        sample_weight : array-like (n,), optional

        Returns
        -------
        float

        Raises
        ------
        IncompatibleParts
            The estimator predicts no distributions.
        InvalidData
            The targets or weights do not match ``X``.
        """
        y = y if holds_bounds(y) else np.asarray(y)
        scores = self._scores(_distributions(estimator, X, self.names[0]), y)
        if (row := first_true(np.isnan(scores))) is not None:
            raise InvalidData(f"y contains NaN in row {row}; remove rows without a target.")
        weight = None if sample_weight is None else _weights(sample_weight, len(scores))
        return -float(np.average(scores, weights=weight))


def _distributions(estimator: Any, X: Any, metric: str) -> Distribution:
    """Distributions that an estimator or the last step of a pipeline predicts."""
    steps = getattr(estimator, "steps", None)
    if steps is not None:
        inputs = estimator[:-1].transform(X) if len(steps) > 1 else X
        return _distributions(steps[-1][1], inputs, metric)
    predict = getattr(estimator, "predict_distribution", None)
    if predict is None:
        raise IncompatibleParts(
            f"the metric {metric!r} scores distributions, and {type(estimator).__name__} has no "
            "predict_distribution; use an estimator that has it, such as "
            "BoostingRegressor(loss='normal')."
        )
    found: Distribution = predict(X)
    return found


def _weights(given: PerRow, n: int) -> Floats:
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (n,) or not ((weight >= 0).all() and 0 < weight.sum() < np.inf):
        raise InvalidData(
            f"sample_weight must have one number for each of the {n} rows, none of them negative "
            f"and not all of them zero; got {shown(given)}."
        )
    return weight


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
        self.coverage = check_coverage(coverage)

    def _scores(self, predicted: Distribution, y: Any) -> Floats:
        """Score of each row."""
        return predicted.interval_score(y, self.coverage)
