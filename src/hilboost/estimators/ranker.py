"""Gradient boosting for rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from hilboost.boosting import metric_value
from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.estimators import parameter_types as types
from hilboost.estimators.losses import loss_among
from hilboost.estimators.preparation import FitArguments
from hilboost.estimators.signatures import public_fit, public_prediction, with_parameters
from hilboost.estimators.table_boosting import TableBoosting
from hilboost.losses.registry import ranking_losses
from hilboost.metrics import NDCG
from hilboost.model.codecs import NumberCodec, TargetCodec
from hilboost.training.data import in_order_of_groups
from hilboost.validation.groups import (
    check_positions,
    number_groups,
    require_groups,
    warn_of_mistaken_groups,
    warn_without_order,
)
from hilboost.validation.weights import check_weights


@with_parameters
class BoostingRanker(TableBoosting):
    """Gradient boosting for rankings of the rows of groups, such as the documents of a query.

    Parameters
    ----------
    loss : str, Loss or Loss class, default="lambdarank"
        ``"lambdarank"`` (NDCG@k by pairs), ``"yetirank"`` (NDCG@k by neighbors in random orders),
        ``"lambdamap"`` (MAP@k), ``"lambdamrr"`` (MRR@k), ``"xendcg"`` (cross-entropy of gains and
        scores), ``"pairwise_logistic"``, ``"query_rmse"`` (squared error without the mean of the
        group), or a custom :class:`hilboost.GroupLoss`.
    learner, learning_rate, n_estimators, max_leaf_nodes, max_depth, growth, min_samples_leaf, \
min_hessian, l2_regularization, min_gain, max_features, max_features_per_tree, max_bins, \
subsample, bootstrap, monotonic_cst, interaction_cst, categorical_features, line_search, \
early_stopping, cv_folds, validation_fraction, validation, validation_gap, n_iter_no_change, tol, \
time_budget, eval_metric, warm_start, device, random_state, n_jobs, verbose, \
target_encoding : optional
        See :class:`BoostingRegressor`.  Samples, folds and held-out parts consist of whole groups.
        The metrics are ``"ndcg"``, ``"map"`` and ``"mrr"``, also with a number of positions as in
        ``"ndcg@10"``.
    k : int, default=10
        Number of positions that count for ``score`` and for losses of the first positions.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a label ``y``, for ``"lambdarank"``, ``"yetirank"``, ``"xendcg"`` and ``score``:
        ``2 ** y - 1`` or ``y``.  Labels may be any numbers that are not negative.

    Attributes
    ----------
    model_, history_, n_estimators_, n_features_in_, feature_names_in_, feature_importances_
        See :class:`BoostingRegressor`.

    Notes
    -----
    The order of the groups, and of the rows within a group, has no effect on the gradients.  A
    group of m rows costs O(k m + m log m) per stage with ``"lambdarank"``.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART*, Microsoft Research, 2010.
    Gulin et al., *Winning the transfer learning track of Yahoo!'s learning to rank challenge with
    YetiRank*, 2011.
    Bruch, *An alternative cross entropy loss for learning-to-rank*, WWW 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from hilboost import BoostingRanker
    >>> rng = np.random.default_rng(0)
    >>> X, query = rng.normal(size=(600, 5)), np.repeat(np.arange(60), 10)
    >>> y = np.clip(np.round(X[:, 0] + X[:, 1]), 0, 3)
    >>> model = BoostingRanker(random_state=0).fit(X, y, groups=query)
    >>> bool(model.score(X, y, groups=query) > 0.9)
    True
    """

    ranks_groups = True
    _kind = "numbers"
    loss: str | Loss | type[Loss] = "lambdarank"
    _: KW_ONLY
    learner: str | Learner | Any = "tree"
    target_encoding: types.FlagOrAuto = "auto"
    k: types.Count = 10
    gain: Annotated[str, StrOptions({"exponential", "linear"})] = "exponential"

    @public_fit
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        time: object = None,
        positions: object = None,
        offset: PerRow = None,
        X_val: object = None,
        y_val: object = None,
        groups_val: object = None,
        sample_weight_val: PerRow = None,
        offset_val: PerRow = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Inputs; see :meth:`BoostingRegressor.fit`.
        y : array-like (n,)
            Relevance of each row: larger is better.
        sample_weight : array-like (n,), optional
            The same for all rows of a group: a group of weight 2 is equivalent to two groups.
        groups : array-like (n,)
            Label of the group of each row, numbers or text.  The rows may be in any order.
        time : array-like (n,), optional
            Time of each row; the groups with the latest rows are held out.
        positions : array-like (n,), optional
            Position at which each row was shown when its label was observed, such as a click: whole
            numbers, counted from 0 or 1 on.  The built-in losses then estimate the effect of the
            position on the label, and the scores are those without it.
        offset : array-like (n,), optional
            Known part of the scores; see :meth:`BoostingRegressor.fit`.
        X_val, y_val, groups_val, sample_weight_val, offset_val : array-like or dict, optional
            Validation data for early stopping, used instead of held-out groups.  Dicts are several
            validation sets; see :meth:`BoostingRegressor.fit`.
        callbacks : sequence of callables
            See :meth:`BoostingRegressor.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the problem and suggests a fix.
        KeyboardInterrupt
            See :meth:`BoostingRegressor.fit`.
        """
        if sample_weight is not None:  # which may be groups, passed by position
            require_groups(groups)
        held_out = FitArguments(X_val, y_val, sample_weight_val, groups_val, offset_val)
        rows = FitArguments(X, y, sample_weight, groups, offset, positions=positions, time=time)
        return self._fit(rows, held_out, callbacks)

    def _arranged(self, X: Floats, target: Target, rows: FitArguments) -> tuple[Floats, Target]:
        target = replace(target, positions=check_positions(rows.positions, len(X)))
        numbers = number_groups(rows.groups, target.weight, len(X))
        warn_of_mistaken_groups(rows.groups, target.y[:, 0])
        X, target = in_order_of_groups(X, target, numbers)
        warn_without_order(target)
        return X, target

    def _learn_codec(self, y: object, n: int) -> tuple[TargetCodec, Floats]:
        advice = "pass relevance labels, such as 0 to 4 or y.cat.codes of ordered categories"
        return NumberCodec.learn(y, n, False, advice)

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return loss_among(ranking_losses(), self.loss, self.get_params(deep=False))

    def _takes_missing_targets(self) -> bool:
        return False

    @public_prediction
    def predict(self, X: object, offset: PerRow = None) -> Floats:
        """Predict scores, by which the rows of a group are ranked: larger comes first.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,), optional
            Added to the scores.

        Returns
        -------
        (n,) float64
        """
        return self._raw_beside(X, offset)[:, 0]

    @public_prediction
    def staged_predict(self, X: object, offset: PerRow = None) -> Iterator[Floats]:
        """Predict scores after each stage.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,), optional
            Added to the scores.

        Yields
        ------
        (n,) float64
        """
        for raw in self._staged_raw(X, offset):
            yield raw[:, 0].copy()

    @public_prediction
    def score(
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        offset: PerRow = None,
    ) -> float:
        """Compute the mean NDCG@k of the groups; ties have the mean over all of their orders.

        ``k`` is the parameter of this name, also with an ``eval_metric`` such as ``"ndcg@5"``.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,)
            Relevance, not negative.
        sample_weight : array-like (n,), optional
            The same for all rows of a group.
        groups : array-like (n,)
            Label of the group of each row.
        offset : array-like (n,), optional
            As in ``fit``.

        Returns
        -------
        float
        """
        raw = self._raw_beside(X, offset)
        if sample_weight is not None:
            require_groups(groups)
        encoded = self.fitted_.codec.encode(y, len(raw))
        weight = check_weights(sample_weight, raw)
        numbers = number_groups(groups, weight, len(raw))
        raw, target = in_order_of_groups(raw, Target(encoded, weight), numbers)
        if target.n_units > 1:  # the score of one query may be that of one row
            warn_without_order(target)
        metric = NDCG(self.k, self.gain)
        return metric_value(metric, self.loss_, None, [(target, np.ascontiguousarray(raw))])
