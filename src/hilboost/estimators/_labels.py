"""Labels in and out: numbers for regressors, classes for classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hilboost.core.contracts import Loss
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats, Target
from hilboost.estimators._shell import Shell
from hilboost.estimators.checks import check_labels, check_length, check_regression_target
from hilboost.losses import (
    AbsoluteError,
    BinomialLogLoss,
    Exponential,
    Gamma,
    Huber,
    MultinomialLogLoss,
    OneHotSquaredError,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)
from hilboost.tables import as_array


class Numbers(Shell):
    """Targets are numbers, one or several a row."""

    _n_targets: int
    _flat: bool
    quantile: Any

    _loss_names: ClassVar[dict[str, Any]] = {
        "squared_error": SquaredError,
        "absolute_error": AbsoluteError,
        "huber": Huber,
        "quantile": Quantile,
        "poisson": Poisson,
        "gamma": Gamma,
        "tweedie": Tweedie,
    }

    def _named_loss(self, name: str) -> Loss:
        return Quantile(self.quantile) if name == "quantile" else self._loss_names[name]()

    def _encode(self, y: Any, n: int, *, reset: bool) -> Floats:
        encoded, flat = check_regression_target(y, n, self._takes_gaps())
        if reset:
            self._n_targets, self._flat = encoded.shape[1], flat
        elif encoded.shape[1] != self._n_targets:
            raise InvalidData(
                f"y has {encoded.shape[1]} target columns; the model has {self._n_targets}."
            )
        return encoded

    def _with_class_weights(self, target: Target) -> Target:
        return target

    def _strata(self, target: Target) -> NDArray[Any] | None:
        return None

    def predict(self, X: Any) -> Floats:
        """Predict the target.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n,) float64, or (n, c) with several targets or quantile levels
        """
        raw = self._raw(X)
        return self._shaped(self.loss_.inverse_link(raw))

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Predictions after every stage, from the first.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n,) float64, or (n, c)
        """
        for raw in self._staged_raw(X):
            yield self._shaped(self.loss_.inverse_link(raw)).copy()

    def _shaped(self, predicted: Floats) -> Floats:
        return predicted[:, 0] if predicted.shape[1] == 1 and self._flat else predicted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


class Classes(Shell):
    """Targets are classes; ``y`` is their codes."""

    classes_: NDArray[Any]
    class_weight: Any

    _loss_names: ClassVar[dict[str, Any]] = {
        "log_loss": None,
        "exponential": Exponential,
        "squared_error": None,
    }

    def _named_loss(self, name: str) -> Loss:
        n_classes = len(self.classes_)
        if name == "exponential":
            if n_classes != 2:
                raise InvalidParameter(
                    f"loss='exponential' takes two classes; y holds {n_classes}. Use 'log_loss'."
                )
            return Exponential()
        if name == "squared_error":
            return OneHotSquaredError(n_classes)
        return BinomialLogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)

    def _encode(self, y: Any, n: int, *, reset: bool) -> Floats:
        y = column_or_1d(as_array(y), warn=True)
        check_labels(y)
        check_classification_targets(y)
        check_length(y, n)
        if reset:
            self.classes_ = np.unique(y)
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        unknown = self.classes_[codes] != y
        if unknown.any():
            raise InvalidData(
                f"y holds the class {y[unknown].tolist()[0]!r}, which is not among those of the "
                f"first fit: {self.classes_.tolist()}."
            )
        return codes.astype(np.float64)[:, None]

    def _check_target(self, target: Target) -> None:
        present = np.unique(target.y)
        if len(present) < 2:
            only = self.classes_.tolist()[int(present[0])]
            raise InvalidData(
                f"y holds only one class ({only!r}, among the rows of positive weight); a "
                "classifier needs at least two classes."
            )

    def _with_class_weights(self, target: Target) -> Target:
        if self.class_weight is None:
            return target
        codes = target.y[:, 0].astype(np.intp)
        weight = np.ones(len(codes)) if target.weight is None else target.weight
        if self.class_weight == "balanced":
            # Of the weighted frequencies, so that a weight of 2 is the row twice here too.
            mass = np.bincount(codes, weight)
            factor = (weight.sum() / (np.count_nonzero(mass) * np.maximum(mass, 1e-300)))[codes]
        else:
            factor = compute_sample_weight(self.class_weight, self.classes_[codes])
        return Target(target.y, weight * factor)

    def _strata(self, target: Target) -> NDArray[Any] | None:
        return target.y[:, 0]

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``.
        """
        raw = self._raw(X)
        return self.loss_.inverse_link(raw)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row; without probabilities, that of the highest score.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n,) array of labels
        """
        return self._best(self._raw(X))

    def decision_function(self, X: Any) -> Floats:
        """Scores in link space.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n,) float64 for two classes (positive: class 1), else (n, n_classes)
        """
        raw = self._raw(X)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Class probabilities after every stage, from the first.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n, n_classes) float64
        """
        for raw in self._staged_raw(X):
            yield self.loss_.inverse_link(raw).copy()

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Most probable classes after every stage, from the first.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n,) array of labels
        """
        for raw in self._staged_raw(X):
            yield self._best(raw)

    def _best(self, raw: Floats) -> NDArray[Any]:
        return self.classes_[self.loss_.inverse_link(raw).argmax(axis=1)]
