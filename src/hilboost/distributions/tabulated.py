"""Distributions that are given by points of their distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

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
