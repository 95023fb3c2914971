"""Metrics of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import masses_of_groups
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target

_SMALLEST_PROBABILITY = 1e-15


def _codes(target: Target) -> NDArray[np.intp]:
    return target.y[:, 0].astype(np.intp)


def _own(metric: Metric, target: Target, predicted: Floats) -> Floats:
    """Predicted probability of the class of each row."""
    if predicted.min(initial=0.0) < 0 or predicted.max(initial=0.0) > 1:
        raise IncompatibleParts(
            f"eval_metric={metric.name!r} requires probabilities, and the loss predicts scores; "
            "set loss='log_loss', or another eval_metric such as 'accuracy' or 'auc'."
        )
    return np.take_along_axis(predicted, _codes(target)[:, None], axis=1)[:, 0]


class ClassLogLoss(Metric):
    """Mean negative logarithm of the probability of the class."""

    names = ("log_loss", "neg_log_loss")
    kind = "classes"
    divides_rows = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Value of each row."""
        own = _own(self, target, predicted)
        return MetricParts(-np.log(np.maximum(own, _SMALLEST_PROBABILITY)), target.weight)


class Brier(Metric):
    """Mean squared error of the probabilities; for two classes, of that of the second one."""

    names = ("brier", "neg_brier_score")
    kind = "classes"
    divides_rows = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Value of each row."""
        own = _own(self, target, predicted)
        # Of the sum over the classes, (1 - own)² is that of the class of the row.
        total = (predicted**2).sum(axis=1) - own**2 + (1 - own) ** 2
        return MetricParts(total / 2 if predicted.shape[1] == 2 else total, target.weight)


class Accuracy(Metric):
    """Fraction of the rows whose most probable class is theirs."""

    names = ("accuracy",)
    kind = "classes"
    divides_rows = True
    higher_is_better = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """1 where the class is right, otherwise 0."""
        right = predicted.argmax(axis=1) == _codes(target)
        return MetricParts(right.astype(np.float64), target.weight)


class BalancedAccuracy(Metric):
    """Mean of the accuracies of the classes that occur."""

    names = ("balanced_accuracy",)
    kind = "classes"
    higher_is_better = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """One value for each class."""
        codes = _codes(target)
        right = predicted.argmax(axis=1) == codes
        n_classes = predicted.shape[1]
        hits = masses_of_groups(np.where(right, codes, -1), target.weight, n_classes)
        mass = masses_of_groups(codes, target.weight, n_classes)
        return MetricParts(hits[mass > 0] / mass[mass > 0])


class _OneVersusRest(Metric):
    """A score of the second of two classes, or its mean over all classes against the rest."""

    kind = "classes"
    higher_is_better = True

    def _score(self, score: Callable[..., Any], target: Target, predicted: Floats) -> MetricParts:
        codes, n_classes = _codes(target), predicted.shape[1]
        scored = [1] if n_classes == 2 else range(n_classes)
        if len(np.unique(codes)) < n_classes:
            raise InvalidData(
                f"eval_metric={self.name!r} requires all {n_classes} classes among the held-out "
                "rows; pass other rows as X_val, or another eval_metric."
            )
        weight = target.weight
        found = [score(codes == k, predicted[:, k], sample_weight=weight) for k in scored]
        return MetricParts(np.array(found))


class AUC(_OneVersusRest):
    """Area under the ROC curve."""

    names = ("auc", "roc_auc", "roc_auc_ovr")

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """One value for each class."""
        from sklearn.metrics import roc_auc_score  # slow to import

        return self._score(roc_auc_score, target, predicted)


class AveragePrecision(_OneVersusRest):
    """Area under the curve of precision and recall."""

    names = ("average_precision",)

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """One value for each class."""
        from sklearn.metrics import average_precision_score  # slow to import

        return self._score(average_precision_score, target, predicted)
