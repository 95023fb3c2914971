"""Classification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from hilboost.core.contracts import Learner, Loss
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats, Target
from hilboost.estimators._base import BaseBoosting
from hilboost.estimators.checks import check_length
from hilboost.losses import BinomialLogLoss, Exponential, MultinomialLogLoss


class BoostingClassifier(ClassifierMixin, BaseBoosting):
    """Gradient boosting for two or more classes.

    Parameters
    ----------
    loss : str, Loss or Loss class, default="log_loss"
        ``"log_loss"`` (binomial or multinomial), ``"exponential"`` (two classes), or an object of
        your own; its target holds class codes 0 … n_classes - 1 in one column, and its
        ``inverse_link`` returns a probability for every class.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into the sample weights.
    learner, learning_rate, n_estimators, max_leaf_nodes, max_depth, min_samples_leaf, \
min_hessian, l2_regularization, min_gain, max_features, max_features_per_tree, max_bins, \
subsample, bootstrap, multi_output, sketch, line_search, early_stopping, cv_folds, \
validation_fraction, n_iter_no_change, tol, warm_start, random_state, n_jobs, verbose
        As in :class:`BoostingRegressor`.  ``multi_output="shared"`` grows one tree with vector
        leaves for all classes.

    Attributes
    ----------
    classes_ : (n_classes,) ndarray
    model_, history_, n_estimators_, n_features_in_, feature_names_in_, feature_importances_
        As in :class:`BoostingRegressor`.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, Algorithms 5, 6.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilboost import BoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostingClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    _loss_names: ClassVar[dict[str, Any]] = {"log_loss": None, "exponential": Exponential}

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "log_loss",
        *,
        class_weight: dict[Any, float] | str | None = None,
        learner: str | Learner | Any = "tree",
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float | str = "auto",
        min_hessian: float = 1e-3,
        l2_regularization: float | str = "auto",
        min_gain: float = 0.0,
        max_features: float | str = "auto",
        max_features_per_tree: float = 1.0,
        max_bins: int = 255,
        subsample: float | str = "auto",
        bootstrap: bool = False,
        multi_output: str = "separate",
        sketch: int | None = None,
        line_search: bool | str = "auto",
        early_stopping: bool | str = "auto",
        cv_folds: int | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | str = "auto",
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            loss,
            learner=learner,
            learning_rate=learning_rate,
            n_estimators=n_estimators,
            max_leaf_nodes=max_leaf_nodes,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            min_hessian=min_hessian,
            l2_regularization=l2_regularization,
            min_gain=min_gain,
            max_features=max_features,
            max_features_per_tree=max_features_per_tree,
            max_bins=max_bins,
            subsample=subsample,
            bootstrap=bootstrap,
            multi_output=multi_output,
            sketch=sketch,
            line_search=line_search,
            early_stopping=early_stopping,
            cv_folds=cv_folds,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def _encode(self, y: Any, n: int, *, reset: bool) -> Floats:
        y = column_or_1d(y, warn=True)
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

    def _named_loss(self, name: str) -> Loss:
        n_classes = len(self.classes_)
        if name == "exponential":
            if n_classes != 2:
                raise InvalidParameter(
                    f"loss='exponential' takes two classes; y holds {n_classes}. Use 'log_loss'."
                )
            return Exponential()
        return BinomialLogLoss() if n_classes == 2 else MultinomialLogLoss(n_classes)

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
        """The most probable class of every row.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n,) array of labels
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

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
        for probabilities in self.staged_predict_proba(X):
            yield self.classes_[probabilities.argmax(axis=1)]
