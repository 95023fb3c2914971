"""Gradient boosting for classification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from sklearn.base import ClassifierMixin

from hilboost.core.loss import Loss
from hilboost.estimators import parameter_types as types
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.signatures import with_parameters
from hilboost.estimators.table_boosting import TableBoosting


@with_parameters
class BoostingClassifier(ClassPredictions, ClassifierMixin, TableBoosting):
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
    learner, learning_rate, n_estimators, max_leaf_nodes, max_depth, growth, min_samples_leaf, \
min_hessian, l2_regularization, min_gain, max_features, max_features_per_tree, max_bins, \
subsample, bootstrap, monotonic_cst, interaction_cst, categorical_features, line_search, \
early_stopping, cv_folds, validation_fraction, validation, validation_gap, n_iter_no_change, tol, \
time_budget, eval_metric, warm_start, device, random_state, n_jobs, verbose, n_shards, \
multi_output, sketch, target_encoding : optional
        See :class:`BoostingRegressor`.  ``multi_output="shared"`` grows one tree with
        vector-valued leaves for all classes.  ``monotonic_cst`` requires two classes and
        constrains the probability of the second one.  The metrics are ``"log_loss"``,
        ``"accuracy"``, ``"balanced_accuracy"``, ``"auc"``, ``"average_precision"`` and
        ``"brier"``; with more than two classes, ``"auc"`` and ``"average_precision"`` are means
        over the classes against the rest.
    class_weight : dict, "balanced" or None, default=None
        Class weights, which multiply the sample weights.

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

    loss: str | Loss | type[Loss] = "log_loss"
    _: KW_ONLY
    n_shards: types.CountOrAuto = 1
    multi_output: types.MultiOutput = "separate"
    sketch: types.CountOrNone = None
    target_encoding: types.FlagOrAuto = "auto"
    class_weight: dict[Any, float] | str | None = None
