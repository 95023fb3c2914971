"""Losses of distributions for censored and truncated targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.gradients import Gradients
from hilboost.core.link import Link
from hilboost.core.loss import Loss
from hilboost.core.target import Target, TargetUnits
from hilboost.distributions.bounds import ENDS, log_chance_of_bounds, log_likelihood
from hilboost.losses._maximum_likelihood import best_raw, unbounded
from hilboost.losses._parameter_kinds import check_declared, damped
from hilboost.reductions.sums import count_rows, extremes, mean
from hilboost.tables.bounds import LOWER, UPPER, stand_ins

_STEP = 1e-4  # of differences, in units of the uncertainty of a parameter
_LEAST_INFORMATION = 0.05  # of a row, as a fraction of that of an exact target
_STEEPEST = 1e8
_FARTHEST = 10.0  # of a location from the targets of truncated rows, in units of their spread
_NEAR = 0.3  # where it starts if the likelihood rises up to there


class BoundedLoss(Loss):
    """Negative log likelihood of targets of which bounds are known, ``y`` (n, 4).

    An exact row counts by its density, another one by the probability between its bounds, and both
    are divided by the probability with which such a row is observed.  The information of a row is
    the curvature of its likelihood, but not more than that of an exact target, as in the EM
    algorithm, and not much less.
    """

    has_distribution = True

    def __init__(self, loss: Any, logarithm: float = 0.0) -> None:
        # a ``DistributionLoss``, and the logarithm of the unit, which densities have
        self.loss, self.logarithm = loss, logarithm
        self.divides_rows = loss.divides_rows

    @property
    def of_complete_targets(self) -> Loss:
        """The underlying loss."""
        return self.loss

    @property
    def link(self) -> Link:
        """That of the underlying loss."""
        return self.loss.link

    def inverse_link(self, raw: Floats) -> Floats:
        """Means, (n, 1)."""
        return self.loss.inverse_link(raw)

    def distribution_of(self, raw: Floats) -> Distribution:
        """Return the distributions with these outputs."""
        return self.loss.distribution_of(raw)

    def check_rows(self, y: Floats) -> None:
        """Reject bounds that no target of the support is between."""
        lower, upper = self._within(y)[:, [LOWER, UPPER]].T
        unknown = np.isinf(lower) & np.isinf(upper) & (y[:, LOWER] < y[:, UPPER])
        if unknown.any():
            row = int(np.argmax(unknown))
            raise InvalidData(
                f"row {row} of y has no bound inside of the range of loss={self.loss._name!r}, so "
                "that nothing is known about it; remove the row."
            )
        self.loss.check_rows(stand_ins(y)[:, None])

    def check(self, target: Target) -> None:
        """Check that the bounds are possible, and that some are above and some below a target."""
        if self.loss.support == "counts":
            raise InvalidData(
                f"loss={self.loss._name!r} requires exact counts as y; bounds require a continuous "
                "distribution, such as loss='lognormal'."
            )
        check_declared(self.loss)
        self.check_rows(target.y)
        y = self._within(target.y)
        for column, side, other in ((UPPER, "upper", "right"), (LOWER, "lower", "left")):
            if not count_rows(np.isfinite(y[:, column]), target):
                raise InvalidData(
                    f"all rows of y are {other}-censored: none has a finite {side} bound, so that "
                    f"the likelihood has no maximum; pass rows with events or {side} bounds."
                )

    def _within(self, y: Floats) -> Floats:
        """Bounds without those that the support implies, which are infinite then."""
        least, most = ENDS[self.loss.support]
        return np.where(y <= least, -np.inf, np.where(y >= most, np.inf, y))

    def _plain(self, target: Target) -> Target:
        """Numbers inside of the bounds, as if they were exact."""
        return target.with_y(stand_ins(target.y)[:, None])

    def units(self, target: Target) -> TargetUnits:
        """Units of numbers inside of the bounds; all parameters are fitted together."""
        found = self.loss.units(self._plain(target))
        own = BoundedLoss(found.loss, found.constant)
        truncated = np.isfinite(target.y[:, 2:]).any(axis=1)
        if own.loss.bounds is not None and count_rows(truncated, target):
            own.loss.bounds = own._near(target.with_y(target.y / found.size), _FARTHEST)
        return replace(found, plain=self, loss=own, constant=0.0, location=None)

    def initial_raw(self, target: Target) -> Floats:
        """Maximum likelihood, beside offsets if there are any.

        The tail of truncated rows may be so heavy that the likelihood rises until the location is
        infinitely far away, where it has no slope.  The start is near the targets then.
        """
        without = replace(target, offset=None)
        guess = self.loss.best_constant(self._plain(without))
        free = BoundedLoss(unbounded(self.loss), self.logarithm)
        start = best_raw(free, without, guess, self.loss.bounds)
        if self.loss.bounds is not None:
            low, high = self.loss.bounds
            at_end = (start - low < 0.01 * _FARTHEST) | (high - start < 0.01 * _FARTHEST)
            if (self._locations & at_end).any():
                start = best_raw(free, without, guess, self._near(without, _NEAR))
        if target.offset is None:
            return start
        start = start - mean(target.with_y(target.offset))
        return best_raw(free, target, start, self.loss.bounds)

    @property
    def _locations(self) -> NDArray[np.bool_]:
        """Which parameters are locations, (r,)."""
        return np.array([kind.has_unit and kind.link == "identity" for kind in self.loss.kinds])

    def _near(self, target: Target, distance: float) -> tuple[Floats, Floats]:
        """Bounds of a fit, with locations at most this far from all targets."""
        least, most = extremes(stand_ins(target.y), target)
        low, high = self.loss.bounds
        locations = self._locations
        return (
            np.where(locations, np.maximum(low, least - distance), low),
            np.where(locations, np.minimum(high, most + distance), high),
        )

    def value(self, target: Target, raw: Floats) -> Floats:
        """Negative log likelihood of every row in the original unit of the target, (n,)."""
        exact = target.y[:, LOWER] == target.y[:, UPPER]
        found = log_likelihood(self.loss, target.y, self.loss.values_of(raw))
        return self.logarithm * exact - found

    def gradients(self, target: Target, raw: Floats) -> Gradients:
        """Derivatives of the log likelihood, with bounded curvatures."""
        values, y = self.loss.values_of(raw), target.y
        complete = np.column_stack(np.broadcast_arrays(raw[:, 0], *self.loss.information(values)))
        complete = np.maximum(complete[:, 1:], 1e-12)
        exact = y[:, LOWER] == y[:, UPPER]
        slope, bend = np.zeros((2, *raw.shape))
        own = tuple(one[exact] for one in values)
        slope[exact] = np.column_stack(self.loss.score(y[exact, LOWER], own))
        bend[exact] = complete[exact]
        rows = ~exact | np.isfinite(y[:, 2:]).any(axis=1)
        more = self._differences(y[rows], raw[rows], complete[rows])
        slope[rows] += more[0]
        bend[rows] += more[1]
        steepest = _STEEPEST * np.sqrt(complete)
        slope = np.clip(slope, -steepest, steepest)
        hessian = np.clip(bend, _LEAST_INFORMATION * complete, complete)
        return damped(slope, hessian, raw, self.loss.kinds, self.loss.bounds)

    def _differences(self, y: Floats, raw: Floats, information: Floats) -> tuple[Floats, Floats]:
        """Slopes and curvatures (n, r) of the logarithms of the probabilities of bounds (n, 4)."""

        def chance(raw: Floats) -> Floats:
            return log_chance_of_bounds(self.loss, y, self.loss.values_of(raw))

        step, middle = _STEP / np.sqrt(information), chance(raw)
        slope, bend = np.empty((2, *raw.shape))
        for k in range(raw.shape[1]):
            moved = np.zeros_like(raw)
            moved[:, k] = step[:, k]
            above, below = chance(raw + moved), chance(raw - moved)
            slope[:, k] = (above - below) / (2 * step[:, k])
            bend[:, k] = (2 * middle - above - below) / step[:, k] ** 2
        return slope, bend
