"""Gradient boosting for classification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.predictions import ClassPredictions, has_probabilities, own_scores
from hilboost.estimators.signatures import available_if, public_prediction
from hilboost.estimators.table_boosting import TableBoosting


class BoostingClassifier(ClassifierMixin, ClassPredictions, TableBoosting):
    """Gradient boosting for binary and multiclass classification.

    Parameters
    ----------
    loss : str, Loss or Loss class, default="log_loss"
        ``"log_loss"`` (binomial or multinomial), ``"squared_error"`` (of the class indicators),
        ``"exponential"`` (AdaBoost; SAMME for more than two classes), ``"hinge"`` or
        ``"squared_hinge"`` (support vector machines; one-versus-rest for more than two classes,
        with scores but no probabilities), or a custom loss.  The target of a custom loss contains
        class codes 0 … n_classes - 1 in one column, and its ``inverse_link`` returns one
        probability per class.
    class_weight : dict, "balanced" or None, default=None
        Class weights, which multiply the sample weights.
    learner, learning_rate, n_estimators, max_leaf_nodes, max_depth, growth, min_samples_leaf, \
min_hessian, l2_regularization, min_gain, max_features, max_features_per_tree, max_bins, \
subsample, bootstrap, n_shards, multi_output, sketch, monotonic_cst, interaction_cst, \
categorical_features, target_encoding, line_search, early_stopping, cv_folds, \
validation_fraction, n_iter_no_change, tol, time_budget, eval_metric, \
warm_start, random_state, n_jobs, verbose : optional
        See :class:`BoostingRegressor`.  ``multi_output="shared"`` grows one tree with
        vector-valued leaves for all classes.  ``monotonic_cst`` requires two classes and
        constrains the probability of the second one.  The metrics are ``"log_loss"``,
        ``"accuracy"``, ``"balanced_accuracy"``, ``"auc"``, ``"average_precision"`` and
        ``"brier"``; with more than two classes, ``"auc"`` and ``"average_precision"`` are means
        over the classes against the rest.

    Attributes
    ----------
    classes_ : (n_classes,) ndarray
    model_, history_, n_estimators_, n_features_in_, feature_names_in_, feature_importances_, parts_
        See :class:`BoostingRegressor`.
    resolved_ : ResolvedParameters
        See :class:`BoostingRegressor`.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, Algorithms 5, 6.
    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface 2, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilboost import BoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostingClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    divides = "rows"

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "log_loss",
        *,
        class_weight: dict[Any, float] | str | None = None,
        learner: str | Learner | Any = "auto",
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        growth: str = "auto",
        min_samples_leaf: float | str = "auto",
        min_hessian: float = 1e-3,
        l2_regularization: float | str = "auto",
        min_gain: float = 0.0,
        max_features: float | str = "auto",
        max_features_per_tree: float = 1.0,
        max_bins: int = 255,
        subsample: float | str = "auto",
        bootstrap: bool = False,
        n_shards: int | str = 1,
        multi_output: str = "separate",
        sketch: int | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        categorical_features: Any = "from_dtype",
        target_encoding: bool | str = "auto",
        line_search: bool | str = "auto",
        early_stopping: bool | str = "auto",
        cv_folds: int | str = "auto",
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int | str = "auto",
        tol: float = 0.0,
        time_budget: float | None = None,
        eval_metric: Any = None,
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
            growth=growth,
            min_samples_leaf=min_samples_leaf,
            min_hessian=min_hessian,
            l2_regularization=l2_regularization,
            min_gain=min_gain,
            max_features=max_features,
            max_features_per_tree=max_features_per_tree,
            max_bins=max_bins,
            subsample=subsample,
            bootstrap=bootstrap,
            n_shards=n_shards,
            multi_output=multi_output,
            sketch=sketch,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
            categorical_features=categorical_features,
            target_encoding=target_encoding,
            line_search=line_search,
            early_stopping=early_stopping,
            cv_folds=cv_folds,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            time_budget=time_budget,
            eval_metric=eval_metric,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @public_prediction
    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Predict the most probable class; without probabilities, the one with the highest score.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

        Returns
        -------
        (n,) array of labels
        """
        return self._best(self.predict_raw(X, offset))

    @available_if(has_probabilities)
    @public_prediction
    def predict_proba(self, X: Any, offset: Any = None) -> Floats:
        """Predict class probabilities.  Not available with the losses of support vector machines.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``.
        """
        raw = self.predict_raw(X, offset)
        return self.loss_.inverse_link(raw)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Compute the fraction of rows that are classified correctly.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,)
        sample_weight : array-like (n,), optional
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

        Returns
        -------
        float
        """
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))

    @available_if(has_probabilities)
    @public_prediction
    def predict_log_proba(self, X: Any, offset: Any = None) -> Floats:
        """Predict the logarithms of class probabilities.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``; ``-inf`` where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

    def decision_function(self, X: Any, offset: Any = None) -> Floats:
        """Compute scores in link space.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

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
            Added to the scores.

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
            Added to the scores.

        Yields
        ------
        (n, n_classes) float64
        """
        yield from (self.loss_.inverse_link(raw).copy() for raw in self._staged_raw(X, offset))

    def staged_predict(self, X: Any, offset: Any = None) -> Iterator[NDArray[Any]]:
        """Predict classes after each stage.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

        Yields
        ------
        (n,) array of labels
        """
        yield from map(self._best, self._staged_raw(X, offset))

    def calibrate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
    ) -> Self:
        """Calibrate prediction sets on held-out rows.

        Parameters
        ----------
        X : array-like (n, d)
            Rows that were not used to fit the model.
        y : array-like (n,)
        sample_weight : array-like (n,), optional
            A row with weight 2 counts twice.  Rows with zero weight are ignored.
        groups : array-like (n,) or "class", optional
            Labels of groups that are calibrated separately (Mondrian), so that the coverage holds
            in every group.  Predictions then need the groups of their rows.
            ``"class"`` calibrates every class by the rows of this class.
        offset : array-like (n,) or (n, r), optional
            Added to the scores.  Pass that of new rows to the prediction.

        Returns
        -------
        self

        Raises
        ------
        InvalidData
            The labels, weights, groups or offsets do not match ``X``.
        IncompatibleParts
            A custom loss does not predict one number per target, or one per class.

        Notes
        -----
        The model keeps the sum of the probabilities of all classes that are more probable than the
        true one (adaptive prediction sets); without probabilities, the difference between the
        highest score and that of the true class.

        A new ``fit`` discards the calibration.
        """
        return self._calibrated(X, y, sample_weight, groups, offset)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, groups: Any = None, offset: Any = None
    ) -> NDArray[np.bool_]:
        """Predict sets that contain the class of a new row with at least the given probability.

        After :meth:`calibrate`, sets are split-conformal: the probability is at least ``coverage``
        if the calibration rows and the new rows are exchangeable.  Without it, cross-validated
        ensembles (``cv_folds``) use the rows that each member did not learn from: the probability
        is at least about ``1 - 2 (1 - coverage)``, and about ``coverage`` in practice.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added to the scores.

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
        return self._sets(X, coverage, groups, offset)
