"""Gradient boosting for classification."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import ClassifierMixin

from hilboost.core.dtypes import Seed
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.table_boosting import TableBoosting


@dataclass(eq=False, repr=False)
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

    loss: str | Loss | type[Loss] = "log_loss"
    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None
    learner: str | Learner | Any = "auto"
    learning_rate: float | str = "auto"
    n_estimators: int | str = "auto"
    max_leaf_nodes: int | str | None = "auto"
    max_depth: int | None = None
    growth: str = "auto"
    min_samples_leaf: float | str = "auto"
    min_hessian: float = 1e-3
    l2_regularization: float | str = "auto"
    min_gain: float = 0.0
    max_features: float | str = "auto"
    max_features_per_tree: float = 1.0
    max_bins: int = 255
    subsample: float | str = "auto"
    bootstrap: bool = False
    n_shards: int | str = 1
    multi_output: str = "separate"
    sketch: int | None = None
    monotonic_cst: Any = None
    interaction_cst: Any = None
    categorical_features: Any = "from_dtype"
    target_encoding: bool | str = "auto"
    line_search: bool | str = "auto"
    early_stopping: bool | str = "auto"
    cv_folds: int | str = "auto"
    validation_fraction: float | None = 0.1
    n_iter_no_change: int | str = "auto"
    tol: float = 0.0
    time_budget: float | None = None
    eval_metric: Any = None
    warm_start: bool = False
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: int | bool = 0
