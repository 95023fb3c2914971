"""Prediction intervals whose level follows their coverage of earlier rows."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hilboost.core.distribution import check_coverage
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, counted, shown
from hilboost.core.plain_values import real
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.model.conformal import Calibration
from hilboost.validation.dependence import check_half_life

_SMALLEST = 1e-12  # level, of the interval with the lowest score
_ROUNDING = 1e-6


class AdaptiveIntervals:
    """Prediction intervals for rows that arrive over time, whatever their distribution becomes.

    Predict intervals for the next rows, and :meth:`update` with their targets once these are known.
    After each update, the miss rate ``α`` of the next intervals increases by ``step`` times the
    difference between ``1 - coverage`` and the share of the rows that were missed (adaptive
    conformal inference).  The shares of rows missed in T updates then differ on average from
    ``1 - coverage`` by at most ``(max(coverage, 1 - coverage) + step) / (step T)``, even if the
    data drift, the model is wrong or an adversary chooses the targets.  The rows of the updates
    replace the oldest rows of the calibration.

    Parameters
    ----------
    model : estimator
        A fitted regressor with one target, calibrated by ``calibrate`` with rows in the order of
        time, or by a fit with ``time``.  It remains unchanged.
    coverage : float in (0, 1), default=0.9
    step : float, default=0.05
        Change of the level after an update; 0 keeps it.  A larger step reacts faster, and the
        width of the intervals varies more.
    half_life : float or None, default=None
        Number of rows after which a calibration row counts half as much; ``None`` for equal counts.

    Attributes
    ----------
    level : float
        Nominal coverage of the next intervals.  At 1 or above, they are infinite, and at 0 or
        below, they are points.

    Raises
    ------
    InvalidData
        The model is not calibrated, or by group or by folds, or has several targets.
    InvalidParameter
        ``coverage``, ``step`` or ``half_life`` are out of range.

    References
    ----------
    Gibbs & Candès, *Adaptive conformal inference under distribution shift*, NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from hilboost import AdaptiveIntervals, BoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(1000, 3)), np.arange(1000)
    >>> y = X[:, 0] + rng.normal(size=1000) * np.where(day < 600, 1, 3)
    >>> model = BoostingRegressor(random_state=0).fit(X[:500], y[:500], time=day[:500])
    >>> intervals, covered = AdaptiveIntervals(model), []
    >>> for rows in np.split(np.arange(500, 1000), 50):
    ...     low, high = intervals.predict_interval(X[rows]).T
    ...     covered += list((low <= y[rows]) & (y[rows] <= high))
    ...     intervals.update(X[rows], y[rows])
    >>> bool(np.mean(covered) > 0.85)
    True
    """

    def __init__(
        self,
        model: Any,
        coverage: float = 0.9,
        *,
        step: float = 0.05,
        half_life: float | None = None,
    ) -> None:
        self._calibration = _calibration_of(model)
        self._model = copy(model)
        self._alpha = 1 - check_coverage(coverage)
        self._target = self._alpha
        if not 0 <= real(step) < np.inf:
            raise InvalidParameter(
                f"step must be a positive number, or 0 for a fixed level; got {shown(step)}."
            )
        self._step: float = float(step)
        self._half_life: float | None = check_half_life(half_life)

    def __repr__(self) -> str:
        changed = {"step": (self._step, 0.05), "half_life": (self._half_life, None)}
        others = (f", {name}={one:g}" for name, (one, usual) in changed.items() if one != usual)
        coverage = f"coverage={1 - self._target:g}"
        return f"AdaptiveIntervals({shown(self._model)}, {coverage}{''.join(others)})"

    def __str__(self) -> str:
        """Add a line about the present state."""
        n = counted(len(self._calibration.scores), "calibration row")
        return f"{self!r}\nlevel {self.level:.4g}, {n}"

    @property
    def level(self) -> float:
        """Nominal coverage of the next intervals."""
        return 1 - self._alpha

    def predict_interval(self, X: object, *, offset: PerRow = None) -> Floats:
        """Predict intervals at the present level.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            See ``predict_interval`` of the model.

        Returns
        -------
        (n, 2) float64
            Lower and upper bounds.
        """
        model, weight = self._model, self._weight
        model.fitted_ = replace(
            model.fitted_, calibration=replace(self._calibration, weight=weight, _rankings={})
        )
        beside = {} if offset is None else {"offset": offset}
        total = float(weight.sum())
        largest = (1 - _ROUNDING) * total / (total + 1)
        found = model.predict_interval(X, min(max(self.level, _SMALLEST), largest), **beside)
        if self.level <= 0:
            return np.repeat(found.mean(axis=1, keepdims=True), 2, axis=1)
        if self.level > largest:
            link = model.loss_.link
            found[:] = [-np.inf if link is None else link.smallest, np.inf]
        return np.asarray(found)

    def update(self, X: object, y: object, *, offset: PerRow = None) -> Self:
        """Adapt the level to the rows that the present intervals miss, and add them to the others.

        Parameters
        ----------
        X : array-like (n, d)
            The next rows, such as all of a day; each call is one step.
        y : array-like (n,)
        offset : array-like (n,) or (n, r), optional
            See ``predict_interval`` of the model.

        Returns
        -------
        self
        """
        low, high = self.predict_interval(X, offset=offset).T
        model, known = self._model, self._calibration
        raw = model._raw_beside(X, offset)
        scores = model._scores(raw, X, y)
        target = model.fitted_.encode_target(y, len(raw))[:, 0]
        if not len(target):
            return self
        missed = float(np.mean((target < low) | (target > high)))
        self._alpha += self._step * (self._target - missed)
        n, old = len(known.scores), known.weight
        weight = np.concatenate([np.ones(n) if old is None else old, np.ones(len(scores))])
        rows = np.concatenate([known.scores, scores])[-n:]
        self._calibration = replace(known, scores=rows, weight=weight[-n:])
        return self

    @property
    def _weight(self) -> Floats:
        """Weight of each calibration row, (n,)."""
        known = self._calibration
        ages = np.arange(len(known.scores))[::-1]
        recent = np.ones(len(ages)) if self._half_life is None else 0.5 ** (ages / self._half_life)
        return recent if known.weight is None else recent * known.weight


def _calibration_of(model: Any) -> Calibration:
    """Return the calibration of a model, without its levels of distributions."""
    if getattr(type(model), "_kind", None) != NumberPredictions._kind:
        raise InvalidType(
            f"AdaptiveIntervals requires a regressor of hilboost with predict_interval; got "
            f"{shown(model)}."
        )
    check_is_fitted(model)
    calibration = model._calibration("AdaptiveIntervals")
    if model.fitted_.numbers.n_targets > 1:
        raise InvalidData(
            "AdaptiveIntervals follows the coverage of one target, but the model has "
            f"{model.fitted_.numbers.n_targets}; fit a model for each target."
        )
    if calibration.folds is not None:
        raise InvalidData(
            "AdaptiveIntervals requires scores of the whole model, but the folds of the fit "
            "calibrated its members; call calibrate(X_held_out, y_held_out), or pass time=... to "
            "fit."
        )
    if calibration.groups is not None:
        raise InvalidData(
            "AdaptiveIntervals has one level for all rows, but the model was calibrated by group; "
            "call calibrate without groups."
        )
    return replace(calibration, levels=None)
