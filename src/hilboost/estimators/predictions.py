"""Prediction mixins of regressors and classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.estimators.conformal import PredictionIntervals, PredictionSets
from hilboost.estimators.losses import class_loss, number_loss
from hilboost.estimators.signatures import available_if, public_methods, public_prediction
from hilboost.losses.registry import gives_probabilities
from hilboost.model.codecs import ClassCodec, NumberCodec, TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.model.scores import explained
from hilboost.validation.weights import check_weights


@public_methods
class NumberPredictions(PredictionIntervals):
    """Mixin for numeric targets, with one or several targets per row."""

    _kind = "numbers"
    classifier: str
    fitted_: FittedModel
    predict_raw: Any
    _staged_raw: Any
    _takes_missing_targets: Any
    loss: Any
    get_params: Any

    def _learn_codec(self, y: Any, n: int) -> tuple[TargetCodec, Floats]:
        advice = f"use {self.classifier} for classes"
        return NumberCodec.learn(y, n, self._takes_missing_targets(), advice)

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return number_loss(self.loss, self.get_params(deep=False))

    @public_prediction
    def predict(self, X: Any, offset: Any = None) -> Floats:
        """Predict the target.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n,) float64, or (n, c) with several targets or quantile levels
        """
        raw = self.predict_raw(X, offset)
        return self.fitted_.numbers.shaped(self.fitted_.loss.inverse_link(raw))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Compute R², or D² of the pinball loss for quantiles.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,) or (n, c)
            With several targets, NaN marks missing ones, where ``fit`` accepts them; the score is
            the mean over the targets, each of the rows in which it is known.
        sample_weight : array-like (n,), optional
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        float
            At most 1.  With ``loss="quantile"``, ``1 - L / L0`` of the mean pinball loss ``L``,
            summed over the levels, and that of the quantiles of ``y``, ``L0``.

        Raises
        ------
        ValueError
            The targets or weights do not match ``X``.
        """
        raw = self.predict_raw(X, offset)
        loss = self.fitted_.loss
        predicted = loss.inverse_link(raw)
        if loss.link is None or not loss.link.levels:
            shaped = self.fitted_.numbers.shaped(predicted)
            if shaped.ndim == 2:
                return _r2_of_known(self.fitted_.encode_target(y, len(raw)), shaped, sample_weight)
            from sklearn.metrics import r2_score  # slow to import

            return float(r2_score(y, shaped, sample_weight=sample_weight))
        target = Target(self.fitted_.encode_target(y, len(raw)), check_weights(sample_weight, raw))
        return explained(loss, target, predicted)

    def staged_predict(self, X: Any, offset: Any = None) -> Iterator[Floats]:
        """Predict the target after each stage.

        Those of a sparse kernel machine are the nested models of ``path_``, the smallest first.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Yields
        ------
        (n,) float64, or (n, c)
        """
        for raw in self._staged_raw(X, offset):
            predicted = self.fitted_.loss.inverse_link(raw)
            yield self.fitted_.numbers.shaped(predicted).copy()


def _r2_of_known(y: Floats, predicted: Floats, sample_weight: Any) -> float:
    """Mean R² of the targets (n, c), each of the rows in which it is known."""
    from sklearn.metrics import r2_score

    weight = check_weights(sample_weight, y)
    found = []
    for true, guess in zip(y.T, predicted.T, strict=True):
        known = ~np.isnan(true)
        if known.any():
            own = None if weight is None else weight[known]
            found.append(r2_score(true[known], guess[known], sample_weight=own))
    return float(np.mean(found))


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
class ClassPredictions(PredictionSets):
    """Mixin for class labels, which are encoded as integer codes."""

    _kind = "classes"
    fitted_: FittedModel
    predict_raw: Any
    _staged_raw: Any
    loss: Any
    loss_: Any
    class_weight: Any

    def _learn_codec(self, y: Any, n: int) -> tuple[TargetCodec, Floats]:
        return ClassCodec.learn(y, n)

    def _weighted(self, target: Target, codec: TargetCodec) -> Target:
        return codec.of_classes().with_class_weights(target, self.class_weight)

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return class_loss(self.loss, codec.of_classes().n_classes)

    @property
    def classes_(self) -> NDArray[Any]:
        """Sorted class labels, (n_classes,)."""
        classes: NDArray[Any] = self.fitted_.classes
        return classes

    @available_if(has_probabilities)
    @public_prediction
    def predict_proba(self, X: Any, offset: Any = None) -> Floats:
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
        raw = self.predict_raw(X, offset)
        return self.loss_.inverse_link(raw)

    @available_if(has_probabilities)
    @public_prediction
    def predict_log_proba(self, X: Any, offset: Any = None) -> Floats:
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
    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
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
        return self._best(self.predict_raw(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
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

        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def decision_function(self, X: Any, offset: Any = None) -> Floats:
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
        return own_scores(self.predict_raw(X, offset))

    def staged_decision_function(self, X: Any, offset: Any = None) -> Iterator[Floats]:
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
    def staged_predict_proba(self, X: Any, offset: Any = None) -> Iterator[Floats]:
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

    def staged_predict(self, X: Any, offset: Any = None) -> Iterator[NDArray[Any]]:
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
