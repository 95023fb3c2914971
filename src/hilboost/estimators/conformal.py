"""Mixins that calibrate prediction intervals and sets on rows that the fit has not seen."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import DataWarning, InvalidData, warn_caller
from hilboost.core.target import Target
from hilboost.estimators.fitted_properties import FittedProperties
from hilboost.estimators.signatures import public_methods, public_prediction
from hilboost.model.conformal import Calibration
from hilboost.model.fitted import FittedModel
from hilboost.training.out_of_fold import rows_counted
from hilboost.validation.dependence import ages_in_half_lives
from hilboost.validation.groups import check_groups
from hilboost.validation.offsets import offset_of, warn_without
from hilboost.validation.weights import check_weights


def warn_of_training_rows(fitted: FittedModel, X: Any) -> None:
    """Warn if a model is calibrated with checked rows ``X`` that it was fitted to."""
    share = 0.0 if fitted.marks is None else fitted.marks.leaked_share(X)
    if share:
        remedy = "calibrate with rows that the fit has not seen"
        if fitted.calibration is not None and fitted.calibration.folds is not None:
            remedy += ", or leave calibrate out: the folds of the fit have calibrated this model"
        warn_caller(
            f"{share:.0%} of the {len(X)} calibration rows are rows of the fit, so that prediction "
            f"intervals and sets cover less than requested; {remedy}.",
            DataWarning,
        )


@public_methods
class ConformalPredictions(FittedProperties):
    """Base class of the mixins: calibration of the fitted model."""

    @abstractmethod
    def _scores(self, raw: Floats, X: object, y: object) -> Floats:
        """Scores (n, k) of labels, see :mod:`hilboost.model.scores`, for predictions (n, r)."""

    @public_prediction
    def calibrate(
        self,
        X: object,
        y: object,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        offset: PerRow = None,
        half_life: Any = None,
        time: object = None,
    ) -> Self:
        """Calibrate prediction intervals or sets on held-out rows.

        Parameters
        ----------
        X : array-like (n, d)
            Rows that were not used to fit the model.
        y : array-like (n,) or (n, c), or sequence of n labels
            With several numeric targets, NaN marks missing ones, where ``fit`` accepts them.
        sample_weight : array-like (n,), optional
            Whole numbers count repeated rows.  Other weights count as
            ``(sum w)² / sum w²`` rows in all.  Rows with zero weight are ignored.
            ``class_weight`` plays no role.
        groups : array-like (n,) or "class", optional
            Labels of groups that are calibrated separately (Mondrian), so that the coverage holds
            in every group.  Predictions then need the groups of their rows.  ``"class"``, for
            classifiers, calibrates every class by the rows of this class.
        offset : array-like (n,) or (n, r), optional
            Known part of the predictions in link space, for estimators whose ``fit`` has this
            parameter.  Pass that of new rows to the prediction.
        half_life : float or timedelta, optional
            Age at which a row counts half as much, for data that drift: a number of rows, which are
            then in the order of time, or with ``time``, a number in its unit, or of days if it
            holds dates.
        time : array-like (n,), optional
            Time of each row, numbers or dates, for ``half_life``.

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
        The model keeps the score of each row:

        - **Numbers**: the absolute error; for a kernel machine with ``predict(X,
          return_std=True)``, in units of the standard deviation.  With several quantile levels, the
          distance to the interval between two of them, negative inside (conformalized quantile
          regression).  Of a loss of distributions, such as ``"normal"``, the distance of the
          probability integral transform from its middle, so that intervals end at quantiles.
          Predicted distributions are calibrated, too: a level becomes the share of the rows with a
          lower one.
        - **Classes**: the sum of the probabilities of all classes that are more probable than the
          true one (adaptive prediction sets); without probabilities, the difference between the
          highest score and that of the true class.
        - **Structured outputs**: the distance ``|φ(y) - F(x)|`` to the predicted point.  These
          models also keep the points of the rows, for ``predict(X, return_std=True)``.

        With ``half_life``, quantiles of scores are weighted: the coverage of new rows differs from
        that of exchangeable ones by at most the weighted mean change of the distribution of
        scores since each row (Barber et al. 2023).

        A new ``fit`` discards the calibration.  A warning says if more than a tenth of the rows
        are rows of the fit, for models that were not read from a file.
        """
        raw = self._raw_beside(X, offset)
        scores = self._scores(raw, X, y)
        weight = check_weights(sample_weight, scores)
        ages = ages_in_half_lives(half_life, time, len(scores))
        kept = np.arange(len(scores)) if ages is None else np.argsort(-ages, kind="stable")
        if weight is not None:
            kept = kept[weight[kept] > 0]
            weight = rows_counted(Target(scores[kept], weight[kept]))
        if ages is not None:
            weight = 0.5 ** ages[kept] * (1.0 if weight is None else weight)
            kept, weight = kept[weight > 0], weight[weight > 0]  # the oldest ones underflow
        labels, by_class = self._labels_of_groups(groups, y, len(scores))
        names = numbers = None
        if labels is not None:
            names, numbers = np.unique(labels[kept], return_inverse=True)
        calibration = Calibration(scores[kept], weight, None, numbers, names, by_class)
        calibration = self._with_scale(calibration, X, kept)
        levels = self._levels(raw, X, y)
        if levels is not None:
            calibration = replace(calibration, levels=levels[kept])
        rows = self._checked(X)
        warn_of_training_rows(self.fitted_, rows if len(kept) == len(scores) else rows[kept])
        self.fitted_ = replace(self.fitted_, calibration=calibration)
        return self

    def _with_scale(
        self, calibration: Calibration, X: object, kept: NDArray[np.intp]
    ) -> Calibration:
        """Add the scale of the errors of each row, if the model learns it from the same rows."""
        return calibration

    def _levels(self, raw: Floats, X: object, y: object) -> Floats | None:
        """Probability integral transform (n,) of labels, if the model predicts distributions."""
        return None

    def _labels_of_groups(
        self, groups: PerRow, y: object, n: int
    ) -> tuple[NDArray[Any] | None, bool]:
        """Groups (n,) of the calibration rows, if any, and whether they are the classes."""
        return (None if groups is None else check_groups(groups, n)), False

    def _calibration(self, what: str) -> Calibration:
        check_is_fitted(self)
        if self.fitted_.calibration is None:
            reason = remedy = ""
            history = self.fitted_.history
            if history is not None and history.validation is None:
                reason = ", and the fit held out none"
                if "cv_folds" in self.get_params(deep=False):
                    remedy = ", or fit with early_stopping=True and cv_folds=4"
            raise InvalidData(
                f"{what} needs rows the model was not fitted to{reason}: call "
                f"calibrate(X_held_out, y_held_out) first{remedy}."
            )
        return self.fitted_.calibration

    def _raws(self, X: Any, calibration: Calibration, offset: PerRow = None) -> list[Floats]:
        """Raw predictions of the model, or of the members of an ensemble calibrated by folds."""
        if calibration.folds is None:
            return [self._raw_beside(X, offset)]
        X = self._checked(X)
        n_entries = len(X) * self.fitted_.model.cost_per_row
        found = self.fitted_.raw_of_members(X, threads_for(self.n_jobs, n_entries))
        warn_without(offset, self.fitted_.beside_offsets)
        known = offset_of(offset, *found[0].shape)
        return found if known is None else [raw + known for raw in found]

    def _group_numbers(self, calibration: Calibration, groups: PerRow, n: int) -> NDArray[np.int64]:
        """Numbers of the groups of new rows, (n,); none if the calibration has no groups."""
        if calibration.group_names is None or calibration.by_class:
            if groups is not None:
                raise InvalidData(
                    "groups has no effect, because the model was calibrated without groups of "
                    "rows: call calibrate(X, y, groups=...), or leave groups out."
                )
            return np.empty(0, dtype=np.int64)
        if groups is None:
            raise InvalidData(
                "the model was calibrated by group; give groups, one for each row of X."
            )
        return calibration.group_numbers(check_groups(groups, n))
