"""Mixins that calibrate prediction intervals and sets on rows that the fit has not seen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.estimators.signatures import public_methods
from hilboost.model.conformal import Calibration, check_coverage
from hilboost.model.distance_scale import DistanceScale
from hilboost.model.fitted import FittedModel
from hilboost.model.scores import (
    class_scores,
    interval_ends,
    interval_scores,
    levels_of,
    nearest_pair,
    positive_scale,
)
from hilboost.outputs.candidate_sets import labels_within
from hilboost.outputs.distances import to_points
from hilboost.training.out_of_fold import rows_counted
from hilboost.validation.groups import check_groups
from hilboost.validation.offsets import offset_of
from hilboost.validation.targets import as_sequence, check_length
from hilboost.validation.weights import check_weights


@public_methods
class ConformalPredictions:
    """Base class of the mixins: calibration of the fitted model."""

    fitted_: FittedModel
    loss_: Any
    n_jobs: int | None
    predict_raw: Any
    _checked: Any

    @abstractmethod
    def _scores(self, raw: Floats, X: Any, y: Any) -> Floats:
        """Scores (n, k) of labels, see :mod:`hilboost.model.scores`, for predictions (n, r)."""

    def calibrate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        offset: Any = None,
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
          regression).
        - **Classes**: the sum of the probabilities of all classes that are more probable than the
          true one (adaptive prediction sets); without probabilities, the difference between the
          highest score and that of the true class.
        - **Structured outputs**: the distance ``|φ(y) - F(x)|`` to the predicted point.  These
          models also keep the points of the rows, for ``predict(X, return_std=True)``.

        A new ``fit`` discards the calibration.
        """
        scores = self._scores(self.predict_raw(X, offset), X, y)
        weight = check_weights(sample_weight, scores)
        kept = np.ones(len(scores), dtype=bool) if weight is None else weight > 0
        if weight is not None:
            weight = rows_counted(weight[kept])
        labels, by_class = self._labels_of_groups(groups, y, len(scores))
        names = numbers = None
        if labels is not None:
            names, numbers = np.unique(labels[kept], return_inverse=True)
        calibration = Calibration(scores[kept], weight, None, numbers, names, by_class)
        calibration = self._with_scale(calibration, X, kept)
        self.fitted_ = replace(self.fitted_, calibration=calibration)
        return self

    def _with_scale(self, calibration: Calibration, X: Any, kept: NDArray[np.bool_]) -> Calibration:
        """Add the scale of the errors of each row, if the model learns it from the same rows."""
        return calibration

    def _labels_of_groups(self, groups: Any, y: Any, n: int) -> tuple[NDArray[Any] | None, bool]:
        """Groups (n,) of the calibration rows, if any, and whether they are the classes."""
        return (None if groups is None else check_groups(groups, n)), False

    def _calibration(self, what: str) -> Calibration:
        check_is_fitted(self)
        if self.fitted_.calibration is None:
            raise InvalidData(
                f"{what} needs rows the model was not fitted to: call "
                "calibrate(X_held_out, y_held_out) first."
            )
        return self.fitted_.calibration

    def _raws(self, X: Any, calibration: Calibration, offset: Any = None) -> list[Floats]:
        """Raw predictions of the model, or of the members of an ensemble calibrated by folds."""
        if calibration.folds is None:
            return [self.predict_raw(X, offset)]
        X = self._checked(X)
        n_entries = len(X) * self.fitted_.model.cost_per_row
        found = self.fitted_.raw_of_members(X, threads_for(self.n_jobs, n_entries))
        known = offset_of(offset, *found[0].shape)
        return found if known is None else [raw + known for raw in found]

    def _group_numbers(self, calibration: Calibration, groups: Any, n: int) -> NDArray[np.int64]:
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


@public_methods
class PredictionIntervals(ConformalPredictions):
    """Mixin of prediction intervals for numeric targets."""

    def _target_scale(self, X: Any) -> Floats | None:
        """Standard deviation (n,) of the target of each row, if the model has one."""
        return None

    def _scores(self, raw: Floats, X: Any, y: Any) -> Floats:
        target = self.fitted_.encode_target(y, len(raw))
        lower, upper = interval_ends(self.loss_, raw, target.shape[1])
        return interval_scores(target, lower, upper, self._target_scale(X))

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, groups: Any = None, offset: Any = None
    ) -> Floats:
        """Predict intervals that contain a new observation with at least the given probability.

        After :meth:`calibrate`, intervals are split-conformal: the probability is at least
        ``coverage`` if the calibration rows and the new rows are exchangeable.  Without it,
        cross-validated ensembles (``cv_folds`` of boosted trees) use the rows that each member did
        not learn from: the probability is at least about ``1 - 2 (1 - coverage)``, and about
        ``coverage`` in practice (CV+).

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
            With several quantile levels, the two whose difference is nearest to ``coverage`` are
            calibrated.
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added to the predictions in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, 2) float64, or (n, c, 2) with several targets
            Lower and upper bounds.

        Raises
        ------
        InvalidData
            The model is not calibrated, or with too few rows for this coverage.
        InvalidParameter
            ``coverage`` is not between 0 and 1.
        """
        calibration = self._calibration("predict_interval")
        coverage = check_coverage(coverage)
        codec, loss = self.fitted_.numbers, self.loss_
        raws = self._raws(X, calibration, offset)
        ends = [interval_ends(loss, raw, codec.n_targets) for raw in raws]
        lower, upper = (np.stack(part) for part in zip(*ends, strict=True))  # (members, n, k)
        n, k = lower.shape[1:]
        columns = [nearest_pair(loss, coverage)] if levels_of(loss) else list(range(k))
        if calibration.folds is None:
            numbers = self._group_numbers(calibration, groups, n)
            factors = _factors(calibration, coverage, columns, numbers)
            scale = self._target_scale(X)
            if scale is not None:
                factors = factors * positive_scale(scale)[:, None]
            low, high = lower[0][:, columns] - factors, upper[0][:, columns] + factors
        else:
            self._group_numbers(calibration, groups, n)
            found = [
                (
                    -calibration.upper_ends(-lower[:, :, j], coverage, j),
                    calibration.upper_ends(upper[:, :, j], coverage, j),
                )
                for j in columns
            ]
            low, high = (np.column_stack(part) for part in zip(*found, strict=True))
        both = np.stack([np.minimum(low, high), np.maximum(low, high)], axis=-1)
        return both[:, 0] if len(columns) == 1 and (codec.flat or levels_of(loss)) else both


def _factors(
    calibration: Calibration, coverage: float, columns: list[int], groups: NDArray[np.int64]
) -> Floats:
    """Thresholds (1, k) of all rows, or (n, k) of the groups of the rows."""
    if len(groups):
        return np.column_stack([calibration.thresholds(coverage, groups, j) for j in columns])
    return np.array([[calibration.threshold(coverage, j) for j in columns]])


@public_methods
class PredictionSets(ConformalPredictions):
    """Mixin of prediction sets for classes."""

    classes_: Any

    def _scores(self, raw: Floats, X: Any, y: Any) -> Floats:
        codes = self.fitted_.encode_target(y, len(raw)).astype(np.intp)
        scores = class_scores(self.loss_, raw, len(self.classes_))
        return np.take_along_axis(scores, codes, axis=1)

    def _labels_of_groups(self, groups: Any, y: Any, n: int) -> tuple[NDArray[Any] | None, bool]:
        if not (isinstance(groups, str) and groups == "class"):
            return super()._labels_of_groups(groups, y, n)
        return self.classes_[self.fitted_.encode_target(y, n)[:, 0].astype(np.intp)], True

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, groups: Any = None, offset: Any = None
    ) -> NDArray[np.bool_]:
        """Predict sets that contain the class of a new row with at least the given probability.

        After :meth:`calibrate`, sets are split-conformal: the probability is at least ``coverage``
        if the calibration rows and the new rows are exchangeable.  Without it, cross-validated
        ensembles (``cv_folds`` of boosted trees) use the rows that each member did not learn from:
        the probability is at least about ``1 - 2 (1 - coverage)``, and about ``coverage`` in
        practice.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added to the predictions in link space, by estimators whose ``fit`` has this parameter.

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
        calibration = self._calibration("predict_set")
        coverage = check_coverage(coverage)
        raws = self._raws(X, calibration, offset)
        n_classes = len(self.classes_)
        scores = [class_scores(self.loss_, raw, n_classes) for raw in raws]
        numbers = self._group_numbers(calibration, groups, len(raws[0]))
        if calibration.group_names is None:
            return calibration.accepted(scores, coverage)
        if not calibration.by_class:
            return scores[0] <= calibration.thresholds(coverage, numbers)[:, None]
        known = calibration.group_numbers(self.classes_)
        return scores[0] <= calibration.thresholds(coverage, known)[None]


@public_methods
class CandidateSets(ConformalPredictions):
    """Mixin of sets of candidate labels in an output space."""

    output_: Any
    _choice: Any

    def _scores(self, raw: Floats, X: Any, y: Any) -> Floats:
        y = as_sequence(y)
        check_length(y, len(raw))
        return np.sqrt(to_points(self.output_, y, raw))[:, None]

    def _with_scale(self, calibration: Calibration, X: Any, kept: NDArray[np.bool_]) -> Calibration:
        points, squares = self.predict_raw(X)[kept], calibration.scores[:, 0] ** 2
        return replace(calibration, scale=DistanceScale.of(points, squares, calibration.weight))

    def _std(self, raw: Floats) -> Floats:
        """Root (n,) of the expected squared distance of the labels from predicted points."""
        scale = self._calibration("return_std=True").scale
        if scale is None:
            raise InvalidData(
                "the file of the model has no scale of its errors, because an earlier version "
                "wrote it; call calibrate(X_held_out, y_held_out) again for return_std=True."
            )
        return np.sqrt(scale(raw))

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        candidates: Any = None,
        allowed: Sequence[Sequence[int]] | None = None,
        groups: Any = None,
    ) -> list[Any]:
        """Predict sets of candidates, which contain the label with at least the given probability.

        The set of a row holds all candidates whose embeddings lie within the calibrated distance
        of its predicted point.  If the calibration rows and the new rows are exchangeable, the
        label itself lies within this distance with probability ``coverage`` or more.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9
        candidates : sequence of labels, optional
            Labels to choose from; the training labels by default.
        allowed : sequence of n sequences of int, optional
            Indices of the candidates that are allowed for each row.
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.

        Returns
        -------
        list of n arrays or lists
            The candidates within the distance, the nearest first.  A set may be empty.

        Raises
        ------
        InvalidData
            The model is not calibrated, or with too few rows for this coverage; or there are no
            candidates.
        InvalidParameter
            ``coverage`` is not between 0 and 1.

        Notes
        -----
        The cost is O(n c r) for ``c`` candidates.
        """
        calibration = self._calibration("predict_set")
        coverage = check_coverage(coverage)
        raw = self.predict_raw(X)
        numbers = self._group_numbers(calibration, groups, len(raw))
        if len(numbers):
            radius = calibration.thresholds(coverage, numbers)
        else:
            radius = np.full(len(raw), calibration.threshold(coverage))
        return labels_within(self.output_, raw, radius, self._choice(candidates, allowed))
