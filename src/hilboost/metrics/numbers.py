"""Metrics of numeric targets, averaged over the known targets of all rows."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, counted
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target


def _one_for_each_target(metric: Metric, target: Target, predicted: Floats) -> None:
    if target.y.shape != predicted.shape:
        raise IncompatibleParts(
            f"eval_metric={metric.name!r} requires one prediction for each target; the loss "
            f"predicts {counted(predicted.shape[1], 'number')} for {target.y.shape[1]}. Set "
            "eval_metric=None."
        )


class _MeanError(Metric):
    """Mean of the error of each known target."""

    divides_rows = True

    @abstractmethod
    def _error(self, y: Floats, predicted: Floats) -> Floats:
        """Error of each target (n, c)."""

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Error of each known target, with the weight of its row."""
        _one_for_each_target(self, target, predicted)
        known = ~np.isnan(target.y)
        weight = target.weight
        if weight is not None:
            weight = np.broadcast_to(weight[:, None], known.shape)[known]
        return MetricParts(self._error(target.y, predicted)[known], weight)


class MeanSquaredError(_MeanError):
    """Mean squared error."""

    names = ("mse", "mean_squared_error", "neg_mean_squared_error")

    def _error(self, y: Floats, predicted: Floats) -> Floats:
        """Squared difference."""
        return (y - predicted) ** 2


class RootMeanSquaredError(MeanSquaredError):
    """Square root of the mean squared error."""

    names = ("rmse", "root_mean_squared_error", "neg_root_mean_squared_error")

    def of_mean(self, mean: float) -> float:
        """Square root."""
        return float(np.sqrt(mean))


class MeanAbsoluteError(_MeanError):
    """Mean absolute error."""

    names = ("mae", "mean_absolute_error", "neg_mean_absolute_error")

    def _error(self, y: Floats, predicted: Floats) -> Floats:
        """Absolute difference."""
        return np.abs(y - predicted)


class MeanAbsolutePercentageError(_MeanError):
    """Mean absolute error relative to the target, as a fraction, as in scikit-learn."""

    names = ("mape", "mean_absolute_percentage_error", "neg_mean_absolute_percentage_error")

    def _error(self, y: Floats, predicted: Floats) -> Floats:
        """Absolute difference divided by the target."""
        return np.abs(y - predicted) / np.maximum(np.abs(y), np.finfo(np.float64).eps)


class R2(Metric):
    """Coefficient of determination, averaged over the target columns."""

    names = ("r2",)
    higher_is_better = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """One value for each target column."""
        from sklearn.metrics import r2_score  # slow to import

        _one_for_each_target(self, target, predicted)
        found = np.empty(target.y.shape[1])
        for k, rows in enumerate(~np.isnan(target.y.T)):
            weight = None if target.weight is None else target.weight[rows]
            found[k] = r2_score(target.y[rows, k], predicted[rows, k], sample_weight=weight)
        return MetricParts(found)
