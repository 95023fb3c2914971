"""Regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import RegressorMixin

from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.predictions import NumberPredictions
from hilboost.estimators.table_boosting import TableBoosting


class BoostingRegressor(RegressorMixin, NumberPredictions, TableBoosting):
    """Gradient boosting for regression, with one or several targets.

    Parameters
    ----------
    loss : str, Loss or Loss class, default="squared_error"
        ``"squared_error"``, ``"absolute_error"``, ``"huber"``, ``"quantile"``, ``"poisson"``,
        ``"gamma"``, ``"tweedie"``, or an object of your own that keeps the contract
        :class:`hilboost.Loss`.
    quantile : float or sequence of float, default=0.5
        Level, or levels, of ``loss="quantile"``.  Several levels are learned in one model and
        never cross; ``predict`` then returns a column for each.
    learner : str, scikit-learn regressor or Learner, default="tree"
        What is fitted to the gradients: histogram trees (``"tree"``), sparse kernel machines
        (``"kernel"``), or clones of a regressor.
    learning_rate : float or "auto", default="auto"
        Part of each stage that is added.
    n_estimators : int or "auto", default="auto"
        Number of stages, or the most there may be under early stopping.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Leaves of a tree; ``None`` for no limit.
    max_depth : int or None, default=None
        Splits from the root to a leaf.
    min_samples_leaf : float or "auto", default="auto"
        Smallest number of rows in a leaf; with weights, their smallest sum.
    min_hessian : float, default=0.001
        Smallest sum of hessians in a leaf, in which weights count as rows do.
    l2_regularization : float or "auto", default="auto"
        Added to the hessian of every leaf.  Under Poisson, gamma and Tweedie losses hessians and
        gains are those of a target of mean 1.
    min_gain : float, default=0
        Smallest gain of a split.
    max_features : float or "auto", default="auto"
        Part of the columns that each node may choose from.
    max_features_per_tree : float, default=1
        Part of the columns that each tree may choose from.
    max_bins : int, default=255
        Most bins of a column, one more for missing values.
    subsample : float or "auto", default="auto"
        Part of the rows that each stage learns from.
    bootstrap : bool, default=False
        Draw these rows with replacement.
    multi_output : {"separate", "shared"}, default="separate"
        One tree an output, or one tree with vector leaves for all outputs.
    sketch : int or None, default=None
        Grow shared trees on a random projection of the gradients to so many columns.
    monotonic_cst : array-like (d,) of int, dict of str to int, or None, default=None
        For every column, or for those named, 1 where predictions must not fall as it rises, -1
        where they must not rise, 0 for neither.  It holds for all outputs, between rows whose value
        is not missing.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int, or None, \
default=None
        Groups of columns that may interact: every path of a tree stays within one of them.  Columns
        that are in none form one more group.  "pairwise" is all pairs, "no_interactions" every
        column by itself.
    categorical_features : "from_dtype", sequence of names or column numbers, mask, or None, \
default="from_dtype"
        Columns of categories; by default those of text or of a dtype made for categories.  Levels
        not seen in ``fit`` follow the larger side of a split, or count as an average level.
    target_encoding : bool or "auto", default="auto"
        Which of these columns trees see by the mean targets of their levels, and of the levels of
        pairs of columns: "auto" those with more than 32 levels, and all of them where trees are
        shared.  Trees divide the levels of the others.
    line_search : bool or "auto", default="auto"
        Search the step length of every stage; "auto" does so for learners that are not trees.
    early_stopping : bool or "auto", default="auto"
        Stop when the loss on held-out rows no longer falls, and keep the best stage.
    cv_folds : int or "auto", default="auto"
        Under early stopping without ``X_val``: 1 holds out ``validation_fraction`` of the rows.  K
        fits K models side by side, each without its fold, stops them all where the loss on the
        left-out folds is lowest, and keeps their mean, so that every row is learned from.
    validation_fraction : float, default=0.1
        Part of the rows that is held out with ``cv_folds=1``.
    n_iter_no_change : int or "auto", default="auto"
        Stages without improvement before stopping.
    tol : float, default=0
        Improvement that counts, as a part of the loss at the start.
    warm_start : bool, default=False
        Let ``fit`` add stages to those already there.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Most threads to use; ``None`` and -1 for all cores.  Fewer are used on small data.  The
        model is the same bit for bit with any number.
    verbose : int, default=0
        1 prints every tenth stage, 2 every stage.

    Attributes
    ----------
    model_ : AdditiveModel
    history_ : History
        Mean loss on the training and validation rows after every stage, from the start value on.
    n_estimators_ : int
        Stages kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where ``X`` had column names.
    feature_importances_ : (d,) ndarray

    Notes
    -----
    Parameters that are ``"auto"`` follow the number of rows and columns; see the guide on
    defaults.  Cost of a stage with trees: O(n d log(leaves)) additions.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, Algorithms 1–4.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from hilboost import BoostingRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = BoostingRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.8)
    True
    """

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "squared_error",
        *,
        quantile: float | Sequence[float] = 0.5,
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
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        categorical_features: Any = "from_dtype",
        target_encoding: bool | str = "auto",
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
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.quantile = quantile
