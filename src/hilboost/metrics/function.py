"""Metrics given by functions such as the scores of :mod:`sklearn.metrics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilboost.core.dtypes import NO_NUMBER, Floats
from hilboost.core.errors import IncompatibleParts, shown
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target


class FunctionMetric(Metric):
    """A metric that is a function of all targets and predictions.

    Parameters
    ----------
    function : callable
        ``function(y, predicted)`` returns a number, or ``function(y, predicted,
        sample_weight=weight)`` for rows with weights.  For regressors, ``predicted`` is what
        ``predict`` returns.  For classifiers, ``y`` holds the numbers of the classes, and
        ``predicted`` is what ``predict_proba`` returns.
    higher_is_better : bool, default=False
        Whether early stopping maximizes the metric.
    name : str, optional
        Name in the history, by default that of the function.
    """

    kind = "all"

    def __init__(
        self, function: Callable[..., Any], higher_is_better: bool = False, name: str | None = None
    ) -> None:
        self.function = function
        self.higher_is_better = higher_is_better  # type: ignore[misc]
        self._name = name

    @property
    def name(self) -> str:
        """Name in the history."""
        return self._name or str(getattr(self.function, "__name__", "metric"))

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """The value of the function."""
        y = target.y.astype(np.float64, copy=False)
        y = y[:, 0] if y.shape[1] == 1 else y
        predicted = predicted[:, 0] if predicted.shape[1] == 1 else predicted
        weight = {} if target.weight is None else {"sample_weight": target.weight}
        try:
            with np.errstate(divide="ignore", invalid="ignore"):  # NaN says that there is no value
                value = self.function(y, predicted, **weight)
        except (TypeError, ValueError, IndexError) as error:
            raise IncompatibleParts(
                f"the metric {self.name!r} fails ({error}); its arguments are y of shape {y.shape} "
                f"and predictions of shape {predicted.shape}, in classifiers the numbers of the "
                "classes and all probabilities, of which predicted[:, 1] is that of classes_[1]."
            ) from error
        try:
            return MetricParts(np.array([float(value)]))
        except NO_NUMBER as error:
            raise IncompatibleParts(
                f"the metric {self.name!r} must return a number; it returned {shown(value)}."
            ) from error
