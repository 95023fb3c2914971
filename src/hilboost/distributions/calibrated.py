"""Distributions that are calibrated on rows the model has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.distribution import Distribution
from hilboost.core.dtypes import Floats
from hilboost.distributions.tabulated import interpolated

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
