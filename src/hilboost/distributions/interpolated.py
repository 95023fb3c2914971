"""Distributions by interpolation between points: given by a table, or with calibrated levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats

_TINY = 1e-290
_LEAST_WIDTH = 1e-6  # between two points, as a fraction of the range of all


@dataclass(frozen=True)
class TabulatedDistribution(Distribution):
    """Distribution functions with straight lines between points, and exponential tails.

    Attributes
    ----------
    values : (n, m) float64
        Targets, ascending in each row.
    levels : (n, m) float64
        Probabilities of at most these targets, ascending.
    tails : (n, 2) float64
        Means of the distances from the first and the last value beyond them.
    """

    values: Floats
    levels: Floats
    tails: Floats

    @classmethod
    def of(cls, values: Floats, levels: Floats, tails: Floats | None = None) -> Self:
        """Create it from values and levels, (n, m) or (m,), and scales of the tails, (n, 2).

        By default, tails continue the densities of the outermost intervals.  Equal values are moved
        apart by a millionth of their range.
        """
        values, levels = np.broadcast_arrays(np.atleast_2d(values), np.atleast_2d(levels))
        span = np.maximum(values[:, -1:] - values[:, :1], _LEAST_WIDTH * np.abs(values[:, :1]))
        least = np.maximum(_LEAST_WIDTH * span, _TINY)
        apart = np.diff(values, axis=1)
        apart = np.where(apart > 0, apart, least)
        values = values[:, :1] + np.cumsum(np.column_stack([np.zeros(len(apart)), apart]), axis=1)
        if tails is None:
            chances = np.column_stack([levels[:, 0], 1 - levels[:, -1]])
            inside = np.maximum(np.diff(levels, axis=1)[:, [0, -1]], _LEAST_WIDTH)
            tails = chances * apart[:, [0, -1]] / inside
        return cls(values, levels, np.maximum(tails, least))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def _parts(self) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """First and last values, the probabilities beyond them, and scales of tails, (n, 1)."""
        values, levels, tails = self.values, self.levels, self.tails
        outside = levels[:, :1], 1 - levels[:, -1:]
        return values[:, :1], values[:, -1:], *outside, tails[:, :1], tails[:, 1:]

    def _cdf(self, y: Floats) -> Floats:
        first, last, below, above, low, high = self._parts()
        inside = interpolated(y, self.values, self.levels)
        lower = below * np.exp(np.minimum((y - first) / low, 0.0))
        upper = 1 - above * np.exp(np.minimum((last - y) / high, 0.0))
        return np.where(y < first, lower, np.where(y > last, upper, inside))

    def _quantile(self, levels: Floats) -> Floats:
        first, last, below, above, low, high = self._parts()
        inside = interpolated(levels, self.levels, self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = first + low * np.log(levels / below)
            upper = last - high * np.log((1 - levels) / above)
        return np.where(levels < below, lower, np.where(1 - levels < above, upper, inside))

    def _density(self, y: Floats) -> Floats:
        first, last, below, above, low, high = self._parts()
        slopes = np.diff(self.levels, axis=1) / np.diff(self.values, axis=1)
        place = [np.searchsorted(a, b, "right") for a, b in zip(self.values, y, strict=True)]
        place = np.clip(np.reshape(place, y.shape) - 1, 0, slopes.shape[1] - 1)
        lower = below / low * np.exp(np.minimum((y - first) / low, 0.0))
        upper = above / high * np.exp(np.minimum((last - y) / high, 0.0))
        inside = np.take_along_axis(slopes, place, axis=1)
        return np.where(y < first, lower, np.where(y > last, upper, inside))


def interpolated(x: Floats, places: Floats, values: Floats) -> Floats:
    """Interpolate in each row: ``values`` (n, m) at ``places`` (n, m), for ``x`` (n, k)."""
    rows = zip(x, places, values, strict=True)
    return np.array([np.interp(one, at, of) for one, at, of in rows]).reshape(x.shape)


_MOST_STEPS = 20
_BY_CHANCE = 1 / 6  # mean of the statistic of Cramér and von Mises for uniform levels
_LEAST_JUMP = _LEAST_STEP = 1e-12
_LITTLE = 1e-2
_BELOW_ONE = np.nextafter(1.0, 0.0)


def knots_of(levels: Floats, weight: Floats | None) -> Floats:
    """Levels that equal parts of the calibration rows do not exceed, (m,), from 0 to 1.

    ``levels`` (k,) belong to the targets of calibration rows.  There are as many steps as the
    root of the number of rows, up to 20, and one row more, which lies anywhere.  Deviations from
    uniform levels shrink by the share of them that chance explains.  Levels stay as they are
    if that would lower the density of the rows, such as that of equal targets.
    """
    order = np.argsort(levels)
    each = np.ones(len(levels)) if weight is None else weight[order]
    ordered, mass = levels[order], np.cumsum(each)
    new = 1 / (mass[-1] + 1)
    grid = np.linspace(0, 1, int(np.clip(np.sqrt(mass[-1]), 2, _MOST_STEPS)) + 1)
    deviation = float(each @ (ordered - (mass - 0.5 * each) / mass[-1]) ** 2)
    kept = max(0.0, 1 - _BY_CHANCE / max(deviation, _BY_CHANCE))
    share = np.append(0.0, (1 - new) * mass / mass[-1])
    found, share = np.append(0.0, [*ordered, 1.0]), np.append(share, 1.0)
    knots = np.interp(grid, kept * share + (1 - kept) * found, found)
    knots = (1 - _LEAST_STEP) * knots + _LEAST_STEP * grid  # without equal ones
    return knots if _least_gain(ordered, each, knots) >= 0 else grid


def _least_gain(levels: Floats, weight: Floats, knots: Floats) -> float:
    """Gain in log density of the calibration rows, with levels a little lower or higher."""
    slopes = -np.log(np.diff(knots) * (len(knots) - 1))
    sides = (levels * (1 + step * (1 - levels)) for step in (-_LITTLE, _LITTLE))  # of logits
    return min(float(weight @ slopes[np.searchsorted(knots[1:-1], one)]) for one in sides)


@dataclass(frozen=True)
class CalibratedDistribution(Distribution):
    """Distributions whose levels are replaced by the share of calibration rows below them.

    Attributes
    ----------
    base : Distribution
        Predictions of the model.
    knots : (n, m) float64
        Levels of ``base`` that become the levels ``0, 1 / (m - 1), …, 1``.
    """

    base: Distribution
    knots: Floats

    @classmethod
    def of(cls, base: Distribution, knots: list[Floats], groups: NDArray[np.int64]) -> Distribution:
        """Calibrate with the knots of each group; ``groups`` (n,) are empty if there are none."""
        numbers = groups if len(groups) else np.zeros(len(base), dtype=np.int64)
        grids = [np.linspace(0, 1, len(one)) for one in knots]
        steps = np.linspace(0, 1, max(map(len, knots)))
        each = [np.interp(steps, grid, one) for grid, one in zip(grids, knots, strict=True)]
        return cls(base, np.array(each)[numbers])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.base)

    @property
    def parameters(self) -> Mapping[str, Floats]:  # type: ignore[override]
        """Parameters of ``base``."""
        return self.base.parameters

    @property
    def has_counts(self) -> bool:  # type: ignore[override]
        """Whether the targets of ``base`` are counts."""
        return self.base.has_counts

    @property
    def _grid(self) -> Floats:
        return np.broadcast_to(np.linspace(0, 1, self.knots.shape[1]), self.knots.shape)

    def _cdf(self, y: Floats) -> Floats:
        return interpolated(self.base._cdf(y), self.knots, self._grid)

    def _quantile(self, levels: Floats) -> Floats:
        known = interpolated(levels, self._grid, self.knots)
        known = np.where(levels < 1, np.minimum(known, _BELOW_ONE), known)
        return self.base._quantile(known)

    def _density(self, y: Floats) -> Floats:
        return np.exp(self._log_density(y))

    def _log_density(self, y: Floats) -> Floats:
        """Logarithm of the density, or of the jump where the distribution function jumps."""
        level, below = self.base._cdf(y), self.base._cdf(np.nextafter(y, -np.inf))
        place = (level[:, :, None] >= self.knots[:, None, 1:-1]).sum(axis=2)
        slope = -np.log(np.diff(self.knots, axis=1) * (self.knots.shape[1] - 1))
        plain = self.base._log_density(y)
        density = np.take_along_axis(slope, place, axis=1) + plain
        jump = self._cdf(y) - interpolated(below, self.knots, self._grid)
        jumps = level - below > np.maximum(_LEAST_JUMP, 0.5 * np.exp(plain))  # no narrow peak
        return np.where(jumps & np.isfinite(plain), np.log(jump), density)
