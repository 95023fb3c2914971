"""Gradient boosting for survival times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import Annotated, Any, Self

from sklearn.utils._param_validation import StrOptions

from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import is_name
from hilboost.core.target import Target
from hilboost.estimators import parameter_types as types
from hilboost.estimators.losses import loss_among
from hilboost.estimators.preparation import FitArguments, FitContext
from hilboost.estimators.signatures import public_fit, with_parameters
from hilboost.estimators.survival_predictions import SurvivalPredictions
from hilboost.estimators.table_boosting import TableBoosting
from hilboost.losses.registry import survival_losses
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.model.survival import SurvivalCodec, SurvivalCurves, baseline, event_times
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import check_rows
from hilboost.training.train import TrainingResult
from hilboost.validation.survival import SurvivalLabels


@with_parameters
class BoostingSurvival(SurvivalPredictions, TableBoosting):
    """Gradient boosting for times until an event, some of which are censored.

    Parameters
    ----------
    loss : str, Loss or Loss class, default="cox"
        ``"cox"`` (proportional hazards: partial likelihood), ``"aft"`` (accelerated failure
        times), ``"discrete_hazard"`` (hazards in intervals of time, which need not be proportional,
        for one or several competing causes), or a custom loss.
    learner, learning_rate, n_estimators, max_leaf_nodes, max_depth, growth, min_samples_leaf, \
min_hessian, l2_regularization, min_gain, max_features, max_features_per_tree, max_bins, \
subsample, bootstrap, monotonic_cst, interaction_cst, categorical_features, line_search, \
early_stopping, cv_folds, validation_fraction, validation, validation_gap, n_iter_no_change, tol, \
time_budget, eval_metric, warm_start, device, random_state, n_jobs, verbose : optional
        See :class:`BoostingRegressor`.  The metric is ``"concordance"`` (Harrell's C).
    ties : {"breslow", "efron"}, default="breslow"
        Approximation of ``"cox"`` for events at the same time.
    distribution : {"normal", "logistic", "extreme"}, default="normal"
        Distribution of the noise of ``"aft"``, whose scale is estimated.
    n_intervals : int, default=20
        Number of intervals of ``"discrete_hazard"``, which hold about equally many events.

    Attributes
    ----------
    event_times_ : (u,) ndarray
        Times of the events in the training rows, ascending.
    model_, history_, n_estimators_, n_features_in_, feature_names_in_, feature_importances_
        See :class:`BoostingRegressor`.

    References
    ----------
    Cox, *Regression models and life-tables*, Journal of the Royal Statistical Society B 34, 1972.
    Ridgeway, *The state of boosting*, Computing Science and Statistics 31, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from hilboost import BoostingSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, size=500)
    >>> y = np.array(list(zip(time <= end, np.minimum(time, end))), dtype="?,f8")
    >>> model = BoostingSurvival(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.7)
    True
    """

    _kind = "survival"
    loss: str | Loss | type[Loss] = "cox"
    _: KW_ONLY
    learner: str | Learner | Any = "tree"
    ties: Annotated[str, StrOptions({"breslow", "efron"})] = "breslow"
    distribution: Annotated[str, StrOptions({"normal", "logistic", "extreme"})] = "normal"
    n_intervals: types.Count = 20
    validation: types.HeldOutByGroups = "auto"
    validation_gap: Annotated[Any, None] = None

    @public_fit
    def fit(  # type: ignore[override]  # times are targets here
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        entry: PerRow = None,
        strata: PerRow = None,
        groups: PerRow = None,
        offset: PerRow = None,
        X_val: object = None,
        y_val: object = None,
        entry_val: object = None,
        strata_val: object = None,
        sample_weight_val: PerRow = None,
        offset_val: PerRow = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Inputs; see :meth:`BoostingRegressor.fit`.
        y : structured array (n,), data frame or array-like (n, 2)
            An event (bool) and a time, as in scikit-survival, in fields or columns of these
            names, or in an order that follows from their values; the time of a row without event is
            that of its censoring.  Or a lower and an upper bound of the time, in a data frame with
            the columns ``"lower"`` and ``"upper"``, or in an array: both are the same for an exact
            time, and the upper one is infinite or NaN for a censored row.  Bounds of intervals
            require ``loss="aft"``.  An array that looks like events and times holds these with the
            other losses, if some rows are censored, and is otherwise an error.  With
            ``loss="discrete_hazard"``, the event may be the number of its cause, from 1 on, and 0
            for censored rows.
        sample_weight : array-like (n,), optional
            A row with weight 2 is equivalent to two rows, except with ``ties="efron"``, and with
            categorical columns and ``loss="discrete_hazard"``, which are encoded in random folds.
        entry : array-like (n,), optional
            Time from which on a row is observed, for ``loss="cox"``.
        strata : array-like (n,), optional
            Label of the stratum of each row, for ``loss="cox"``: each has its own baseline hazard.
        groups : array-like (n,), optional
            Groups that are held out as a whole; see :meth:`BoostingRegressor.fit`.
        offset : array-like (n,) or (n, r), optional
            Known part of ``predict_raw``, such as a risk; see :meth:`BoostingRegressor.fit`.  With
            ``loss="discrete_hazard"``, there are as many columns for each cause as intervals; the
            first of them changes all hazards of the cause alike.
        X_val, y_val, entry_val, strata_val, sample_weight_val, offset_val : optional
            Validation data for early stopping, used instead of held-out rows.  Dicts are several
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
        held_out = FitArguments(
            X_val, y_val, sample_weight_val, None, offset_val, entry=entry_val, strata=strata_val
        )
        rows = FitArguments(X, y, sample_weight, groups, offset, entry=entry, strata=strata)
        return self._fit(rows, held_out, callbacks)

    def _labels_of(self, rows: FitArguments) -> Any:
        return SurvivalLabels(rows.y, rows.entry, rows.strata)

    def _train(self, data: TrainingData, context: FitContext) -> TrainingResult:
        """Train, and estimate what survival functions require.

        In cross-validated ensembles, each row has the risk that the model without it predicts:
        risks of rows that a model has learned from are too far apart.
        """
        result = super()._train(data, context)
        return replace(result, fitted=self._completed(result.fitted, data, result.out_of_fold))

    def refit_leaves(  # type: ignore[override]
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        entry: PerRow = None,
        strata: PerRow = None,
        offset: PerRow = None,
        keep: float = 0.5,
    ) -> Self:
        """Return a model with the same splits, and leaf values and hazards of other rows.

        Baseline hazards, and the scale of ``loss="aft"``, are estimated from the new rows alone, of
        which each stratum should have some with events.

        Parameters
        ----------
        X : array-like (n, d)
        y : structured array (n,), data frame or array-like (n, 2)
            As in ``fit``.
        sample_weight, entry, strata, offset : array-like (n,), optional
            As in ``fit``.
        keep : float, default=0.5
            Fraction of the old leaf values in the new ones.  Leaves without new rows keep theirs.

        Returns
        -------
        estimator
            Fitted; ``history_`` is that of the first fit.

        Raises
        ------
        NotFittedError
            The model is not fitted.
        IncompatibleParts
            The model contains other learners than trees, or monotonic constraints.
        InvalidParameter
            ``keep`` is not between 0 and 1.
        """
        rows = FitArguments(X, y, sample_weight, None, offset, entry=entry, strata=strata)
        return self._refitted(rows, keep)

    def _completed(
        self, fitted: FittedModel, data: TrainingData, raw: Floats | None = None
    ) -> FittedModel:
        if raw is None:
            raw = data.target.with_offset(fitted.predict_raw(data.X, 1))
        return replace(fitted, survival=self._curves(data, fitted.loss, raw))

    def _curves(self, data: TrainingData, loss: Any, raw: Floats) -> SurvivalCurves:
        if self._is_discrete():
            adapted = loss.adapted(data.target, raw)
            return SurvivalCurves(event_times(data.target), discrete=adapted)
        if loss.adaptive:
            shift, scale = loss.located(data.target, raw)
            times = event_times(data.target)
            return SurvivalCurves(times, None, loss.distribution, scale, -shift)
        labels = data.codec.of_survival().strata_labels
        return baseline(data.target, raw[:, 0], self.ties, 1 if labels is None else len(labels))

    def _learn_codec(self, y: Any, n: int) -> tuple[TargetCodec, Floats]:
        discrete = self._is_discrete()
        intervals = not (discrete or is_name(self.loss, "cox"))
        return SurvivalCodec.learn(y, n, self.n_intervals if discrete else None, intervals)

    def _is_discrete(self) -> bool:
        return is_name(self.loss, "discrete_hazard")

    def _own_parameters(self) -> dict[str, Any]:
        """Trees of discrete hazards are shared by the intervals, so that categories are encoded."""
        if not self._is_discrete():
            return {}
        return {"multi_output": "shared", "target_encoding": "auto"}

    def _make_loss(self, codec: TargetCodec) -> Loss:
        own = codec.of_survival()
        ends = (1.0,) if own.ends is None else own.ends
        parameters = {**self.get_params(deep=False), "ends": ends, "n_causes": own.n_causes}
        return loss_among(survival_losses(), self.loss, parameters)

    def _check_targets(self, target: Target, codec: TargetCodec) -> None:
        check_rows(self._make_loss(codec), codec, target)

    def _takes_missing_targets(self) -> bool:
        return False
