"""Fits beside known parts of the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from hilboost.core.callback import Callback
from hilboost.estimators.fit_arguments import FitArguments
from hilboost.estimators.signatures import public_fit, public_methods


@public_methods
class Offsets:
    """Mixin for fits with offsets, which are added to the model in link space."""

    takes_offsets = True
    _fit: Any

    @public_fit
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        offset_val: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix (n, d)
            Inputs.  NaN marks missing values; trees support them and infinity, kernel machines do
            not.  Text columns are categorical by default (see ``categorical_features``).  Trees
            accept sparse matrices.
        y : array-like (n,) or (n, c)
            Targets.  With several targets, some targets of a row may be NaN.  Trees support this
            if the loss is a sum over the targets (squared error, Poisson, gamma, Tweedie), and
            use the other targets of the row.
        sample_weight : array-like (n,), optional
            A row with weight 2 is equivalent to two rows.  Rows with zero weight are ignored.
        offset : array-like (n,) or (n, r), optional
            Known part of ``predict_raw``, such as the logarithm of an exposure with
            ``loss="poisson"``, or the predictions of another model.  The model learns the rest.
            Pass it to ``predict``, too.
        X_val, y_val, sample_weight_val, offset_val : array-like, optional
            Validation data for early stopping, used instead of held-out rows of ``X``.  Passing
            them enables early stopping unless ``early_stopping=False``.  Dicts with the same names
            are several validation sets; the first one decides; the losses and metrics of
            the others are in ``history_.metrics``.
        callbacks : sequence of callables
            Called with an :class:`~hilboost.core.callback.Event` after each stage.  A callback that
            returns ``True`` stops the fit.  See :mod:`hilboost.callbacks`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the problem and suggests a fix.
        KeyboardInterrupt
            The fit was interrupted.  If at least one stage is complete, the estimator is fitted
            with the completed stages, and a warning reports their number.
        """
        held_out = FitArguments(X_val, y_val, sample_weight_val, None, offset_val)
        rows = FitArguments(X, y, sample_weight, None, offset)
        fitted: Self = self._fit(rows, held_out, callbacks)
        return fitted
