"""Predictions of classes, their scores and sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_name
from hilboost.core.target import Target
from hilboost.estimators.conformal import ConformalPredictions
from hilboost.estimators.losses import class_loss
from hilboost.estimators.signatures import available_if, public_methods, public_prediction
from hilboost.losses.registry import gives_probabilities
from hilboost.model.codecs import ClassCodec, TargetCodec
from hilboost.model.scores import class_scores
from hilboost.validation.weights import check_weights


def has_probabilities(model: Any) -> bool:
    """Whether the loss gives probabilities; the error of those without is a sentence."""
    fitted = getattr(model, "fitted_", None)
    losses = [model.loss] if fitted is None else [model.loss, model.loss_]
    if all(map(gives_probabilities, losses)):
        return True
    name = model.loss if isinstance(model.loss, str) else type(losses[-1]).__name__
    raise AttributeError(
        f"a model with loss={name!r} has scores but no probabilities; use decision_function, fit "
        "with loss='log_loss', or wrap the estimator in sklearn's CalibratedClassifierCV."
    )


def own_scores(raw: Floats) -> Floats:
    """Scores as classifiers return them: (n,) for two classes, else a copy of ``raw``."""
    return (raw[:, 0] if raw.shape[1] == 1 else raw).copy()


@public_methods
class ClassPredictions(ConformalPredictions):
    """Mixin for class labels, which are encoded as integer codes."""

    _kind = "classes"
    class_weight: Any

    def _learn_codec(self, y: object, n: int) -> tuple[TargetCodec, Floats]:
        return ClassCodec.learn(y, n)

    def _weighted(self, target: Target, codec: TargetCodec) -> Target:
        return codec.of_classes().with_class_weights(target, self.class_weight)

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return class_loss(self.loss, codec.of_classes().n_classes)

    @property
    def classes_(self) -> NDArray[Any]:
        """Sorted class labels, (n_classes,)."""
        return self.fitted_.classes

    @available_if(has_probabilities)
    @public_prediction
    def predict_proba(self, X: object, offset: PerRow = None) -> Floats:
        """Predict class probabilities.  Not available with the losses of support vector machines.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``.
        """
        raw = self._raw_beside(X, offset)
        return self.loss_.inverse_link(raw)

    @available_if(has_probabilities)
    @public_prediction
    def predict_log_proba(self, X: object, offset: PerRow = None) -> Floats:
        """Predict the logarithms of class probabilities.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``; ``-inf`` where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

    @public_prediction
    def predict(self, X: object, offset: PerRow = None) -> NDArray[Any]:
        """Predict the most probable class; without probabilities, the one with the highest score.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n,) array of labels
        """
        return self._best(self._raw_beside(X, offset))

    @public_prediction
    def score(
        self, X: object, y: Any, sample_weight: PerRow = None, offset: PerRow = None
    ) -> float:
        """Compute the fraction of rows that are classified correctly.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,)
        sample_weight : array-like (n,), optional
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        predicted = self.predict(X, offset)
        y = self.fitted_.codec.of_classes().labels(y, len(predicted))
        weight = check_weights(sample_weight, predicted)
        return float(accuracy_score(y, predicted, sample_weight=weight))

    def decision_function(self, X: object, offset: PerRow = None) -> Floats:
        """Compute scores in link space.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n,) float64 for two classes (positive: class 1), else (n, n_classes)
        """
        return own_scores(self._raw_beside(X, offset))

    @public_prediction
    def staged_decision_function(self, X: object, offset: PerRow = None) -> Iterator[Floats]:
        """Compute scores in link space after each stage.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Yields
        ------
        (n,) float64 for two classes, else (n, n_classes)
        """
        yield from map(own_scores, self._staged_raw(X, offset))

    @available_if(has_probabilities)
    @public_prediction
    def staged_predict_proba(self, X: object, offset: PerRow = None) -> Iterator[Floats]:
        """Predict class probabilities after each stage.  Not available where there are none.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Yields
        ------
        (n, n_classes) float64
        """
        yield from (self.loss_.inverse_link(raw).copy() for raw in self._staged_raw(X, offset))

    @public_prediction
    def staged_predict(self, X: object, offset: PerRow = None) -> Iterator[NDArray[Any]]:
        """Predict classes after each stage.

        Those of a sparse kernel machine are the nested models of ``path_``, the smallest first.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Yields
        ------
        (n,) array of labels
        """
        yield from map(self._best, self._staged_raw(X, offset))

    def _best(self, raw: Floats) -> NDArray[Any]:
        return self.fitted_.classes[self.loss_.inverse_link(raw).argmax(axis=1)]

    def _scores(self, raw: Floats, X: object, y: object) -> Floats:
        codes = self.fitted_.encode_target(y, len(raw)).astype(np.intp)
        scores = class_scores(self.loss_, raw, len(self.classes_))
        return np.take_along_axis(scores, codes, axis=1)

    def _labels_of_groups(
        self, groups: PerRow, y: object, n: int
    ) -> tuple[NDArray[Any] | None, bool]:
        if not is_name(groups, "class"):
            return super()._labels_of_groups(groups, y, n)
        return self.classes_[self.fitted_.encode_target(y, n)[:, 0].astype(np.intp)], True

    @public_prediction
    def predict_set(
        self, X: object, coverage: float = 0.9, *, groups: PerRow = None, offset: PerRow = None
    ) -> NDArray[np.bool_]:
        """Predict sets that contain the class of a new row with at least the given probability.

        After :meth:`calibrate`, sets are split-conformal: the probability is at least ``coverage``
        if the calibration rows and the new rows are exchangeable.  Without it, cross-validated
        ensembles (``cv_folds`` of boosted trees) use the rows that each member did not learn from:
        the probability is at least about ``1 - 2 (1 - coverage)``, and about ``coverage`` in
        practice.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added to the predictions in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, n_classes) bool
            Columns in the order of ``classes_``.  Classes enter a set in the order of their
            probabilities, and the most probable one always does.

        Raises
        ------
        InvalidData
            The model is not calibrated, or with too few rows for this coverage.
        InvalidParameter
            ``coverage`` is not between 0 and 1.
        """
        calibration = self._calibration("predict_set")
        coverage = check_coverage(coverage)
        raws = self._raws(X, calibration, offset)
        n_classes = len(self.classes_)
        scores = [class_scores(self.loss_, raw, n_classes) for raw in raws]
        numbers = self._group_numbers(calibration, groups, len(raws[0]))
        if calibration.group_names is None:
            return calibration.accepted(scores, coverage)
        if not calibration.by_class:
            return scores[0] <= calibration.thresholds(coverage, numbers)[:, None]
        known = calibration.group_numbers(self.classes_)
        return scores[0] <= calibration.thresholds(coverage, known)[None]
