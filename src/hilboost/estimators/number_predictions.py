"""Predictions of numbers, their scores and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost import losses
from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.distributions import Distribution, ParametricDistribution
from hilboost.estimators.conformal import ConformalPredictions
from hilboost.estimators.losses import number_loss
from hilboost.estimators.signatures import public_methods, public_prediction
from hilboost.model.codecs import NumberCodec, TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.scores import (
    explained,
    interval_ends,
    interval_scores,
    levels_of,
    nearest_pair,
    positive_scale,
    warn_of_one_level,
)
from hilboost.tables.arrays import frame_columns
from hilboost.tables.bounds import bounds_refused, holds_bounds
from hilboost.training.initial_state import check_rows
from hilboost.validation.weights import check_weights


@public_methods
class NumberPredictions(ConformalPredictions):
    """Mixin for numeric targets, with one or several targets per row."""

    _kind = "numbers"
    classifier: str
    _takes_missing_targets: Any

    def _learn_codec(self, y: object, n: int) -> tuple[TargetCodec, Floats]:
        advice = f"use {self.classifier} for classes"
        takes_bounds = holds_bounds(y) and self._takes_bounds(y)
        return NumberCodec.learn(y, n, self._takes_missing_targets(), advice, takes_bounds)

    def _takes_bounds(self, y: object) -> bool:
        """Whether columns of these names are bounds, as structured arrays always are."""
        loss = None if self.loss is None else self._make_loss(NumberCodec(1, True))
        if loss is None or not loss.has_distribution:
            if frame_columns(y) is None:
                raise bounds_refused(self.loss or type(self).__name__)
            return False
        return True

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return number_loss(self.loss, self.get_params(deep=False))

    def _check_targets(self, target: Target, codec: TargetCodec) -> None:
        check_rows(self._make_loss(codec), codec, target)

    @public_prediction
    def predict(self, X: object, offset: Any = None) -> Floats:
        """Predict the target.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n,) float64, or (n, c) with several targets or quantile levels
        """
        raw = self._raw_beside(X, offset)
        return self.fitted_.numbers.shaped(self.fitted_.loss.inverse_link(raw))

    @public_prediction
    def predict_distribution(
        self, X: object, *, groups: PerRow = None, offset: PerRow = None
    ) -> Distribution:
        """Predict the distribution of the target of each row.

        Of a loss such as ``"normal"``, of several quantiles with straight lines between them and
        exponential tails, or the normal distribution of a kernel machine with ``predict(X,
        return_std=True)``.  After :meth:`calibrate`, the levels of the targets of the calibration
        rows are uniform.

        Parameters
        ----------
        X : array-like (n, d)
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        hilboost.distributions.Distribution
            With ``mean``, ``std``, ``quantile``, ``cdf``, ``pdf``, ``interval``, ``sample``, and
            the scores ``crps``, ``log_score`` and ``interval_score``.

        Raises
        ------
        IncompatibleParts
            The model predicts no distributions.
        """
        raw, calibration = self._raw_beside(X, offset), self.fitted_.calibration
        found = self._distribution(raw, X)
        if calibration is None or calibration.levels is None:
            return found
        return calibration.calibrated(found, self._group_numbers(calibration, groups, len(raw)))

    def _distribution(self, raw: Floats, X: object) -> Distribution:
        """Distributions before calibration."""
        scale = self._target_scale(X)
        if scale is None or raw.shape[1] > 1:
            return self.fitted_.loss.distribution_of(raw)
        mean = self.fitted_.loss.inverse_link(raw)[:, 0]
        return ParametricDistribution(losses.Normal(), {"location": mean, "scale": scale})

    def _levels(self, raw: Floats, X: object, y: object) -> Floats | None:
        loss = self.loss_
        several = levels_of(loss) or (self._target_scale(X) is not None and raw.shape[1] == 1)
        if not several and not loss.has_distribution:
            return None
        return self._distribution(raw, X).pit(self.fitted_.encode_target(y, len(raw))[:, 0])

    @public_prediction
    def score(
        self, X: object, y: object, sample_weight: PerRow = None, offset: PerRow = None
    ) -> float:
        """Compute R², or D² of the pinball loss for quantiles.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,) or (n, c)
            With several targets, NaN marks missing ones, where ``fit`` accepts them; the score is
            the mean over the targets, each of the rows in which it is known.
        sample_weight : array-like (n,), optional
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        float
            At most 1.  With ``loss="quantile"``, ``1 - L / L0`` of the mean pinball loss ``L``,
            summed over the levels, and that of the quantiles of ``y``, ``L0``.

        Raises
        ------
        ValueError
            The targets or weights do not match ``X``.
        """
        raw = self._raw_beside(X, offset)
        loss = self.fitted_.loss
        predicted = loss.inverse_link(raw)
        target = Target(self.fitted_.encode_target(y, len(raw)), check_weights(sample_weight, raw))
        if loss.link is None or not loss.link.levels:
            return _r2_of_known(target, predicted)
        return explained(loss, target, predicted)

    @public_prediction
    def staged_predict(self, X: object, offset: PerRow = None) -> Iterator[Floats]:
        """Predict the target after each stage.

        Those of a sparse kernel machine are the nested models of ``path_``, the smallest first.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added in link space, by estimators whose ``fit`` has this parameter.

        Yields
        ------
        (n,) float64, or (n, c)
        """
        for raw in self._staged_raw(X, offset):
            predicted = self.fitted_.loss.inverse_link(raw)
            yield self.fitted_.numbers.shaped(predicted).copy()

    def _target_scale(self, X: object) -> Floats | None:
        """Standard deviation (n,) of the target of each row, if the model has one."""
        return None

    def _scores(self, raw: Floats, X: object, y: object) -> Floats:
        target = self.fitted_.encode_target(y, len(raw))
        if self.loss_.has_distribution:
            return np.abs(self._distribution(raw, X).pit(target) - 0.5)[:, None]
        lower, upper = interval_ends(self.loss_, raw, target.shape[1])
        return interval_scores(target, lower, upper, self._target_scale(X))

    @public_prediction
    def predict_interval(
        self, X: object, coverage: float = 0.9, *, groups: PerRow = None, offset: PerRow = None
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
            calibrated; a warning says if they are far from it, or if there is a single level other
            than the median.
        groups : array-like (n,), optional
            Groups of the rows, if the model was calibrated by group.
        offset : array-like (n,) or (n, r), optional
            Added to the predictions in link space, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, 2) float64, or (n, c, 2) with several targets
            Lower and upper bounds; 0 or more for losses with a log link, such as ``"poisson"``.

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
        warn_of_one_level(loss, coverage)
        raws = self._raws(X, calibration, offset)
        if calibration.folds is None and loss.has_distribution:
            numbers = self._group_numbers(calibration, groups, len(raws[0]))
            half = np.broadcast_to(_factors(calibration, coverage, [0], numbers), (len(raws[0]), 1))
            return loss.distribution_of(raws[0]).quantile(0.5 + half * [-1, 1])
        ends = np.array([interval_ends(loss, raw, codec.n_targets) for raw in raws])
        lower, upper = ends[:, 0], ends[:, 1]  # (members, n, k)
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
            of_member = calibration.upper_ends
            low = -np.column_stack([of_member(-lower[:, :, j], coverage, j) for j in columns])
            high = np.column_stack([of_member(upper[:, :, j], coverage, j) for j in columns])
        both = np.stack([np.minimum(low, high), np.maximum(low, high)], axis=-1)
        if loss.link is not None:
            both = np.maximum(both, loss.link.smallest)
        return both[:, 0] if len(columns) == 1 and (codec.flat or levels_of(loss)) else both


def _r2_of_known(target: Target, predicted: Floats) -> float:
    """Mean R² of the targets (n, c), each of the rows in which it is known."""
    from sklearn.metrics import r2_score  # slow to import

    found = []
    for true, guess in zip(target.y.T, predicted.T, strict=True):
        known = ~np.isnan(true)
        if known.any():
            own = None if target.weight is None else target.weight[known]
            found.append(r2_score(true[known], guess[known], sample_weight=own))
    return float(np.mean(found))


def _factors(
    calibration: Calibration, coverage: float, columns: list[int], groups: NDArray[np.int64]
) -> Floats:
    """Thresholds (1, k) of all rows, or (n, k) of the groups of the rows."""
    if len(groups):
        return np.column_stack([calibration.thresholds(coverage, groups, j) for j in columns])
    return np.array([[calibration.threshold(coverage, j) for j in columns]])
