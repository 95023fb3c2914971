"""Distributions that are calibrated on rows the model has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats
from hilboost.distributions.tabulated import interpolated

_MOST_STEPS = 50
_LEAST_JUMP = _LEAST_STEP = 1e-12
_BELOW_ONE = np.nextafter(1.0, 0.0)


def knots_of(levels: Floats, weight: Floats | None) -> Floats:
    """Levels that equal parts of the calibration rows do not exceed, (m,), from 0 to 1.

    ``levels`` (k,) belong to the targets of calibration rows.  There are as many steps as the
    root of the number of rows, up to 50, and one row more, which lies anywhere.
    """
    order = np.argsort(levels)
    mass = np.cumsum(np.ones(len(levels)) if weight is None else weight[order])
    new = 1 / (mass[-1] + 1)
    grid = np.linspace(0, 1, int(np.clip(np.sqrt(mass[-1]), 2, _MOST_STEPS)) + 1)
    share, found = (1 - new) * mass, np.append(0.0, levels[order])
    share = np.append(0.0, share / mass[-1])
    knots = np.interp(grid, np.append(share, 1.0), np.append(found, 1.0))
    return (1 - _LEAST_STEP) * knots + _LEAST_STEP * grid  # without equal ones


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
    def _grid(self) -> Floats:
        return np.broadcast_to(np.linspace(0, 1, self.knots.shape[1]), self.knots.shape)

    def _cdf(self, y: Floats) -> Floats:
        return interpolated(self.base._cdf(y), self.knots, self._grid)

    def _quantile(self, levels: Floats) -> Floats:
        known = interpolated(levels, self._grid, self.knots)
        known = np.where(levels < 1, np.minimum(known, _BELOW_ONE), known)
        return self.base._quantile(known)

    def _density(self, y: Floats) -> Floats:
        """Density, or the jump of the distribution function where it jumps."""
        level, below = self.base._cdf(y), self.base._cdf(np.nextafter(y, -np.inf))
        place = (level[:, :, None] >= self.knots[:, None, 1:-1]).sum(axis=2)
        slope = 1 / np.diff(self.knots, axis=1) / (self.knots.shape[1] - 1)
        density = np.take_along_axis(slope, place, axis=1) * self.base._density(y)
        jump = self._cdf(y) - interpolated(below, self.knots, self._grid)
        return np.where(level - below > _LEAST_JUMP, jump, density)
