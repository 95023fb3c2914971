"""Negative binomial distribution."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma
from scipy.stats import gamma, nbinom

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.sums import mean

_SMALLEST = 1e-6
_COUNTED = 1e9
_LARGE_SIZE, _COUNTS = 1.5, 64
_GRID = ((1e-4, 1e4, 93), (1e-3, _LARGE_SIZE, 37))  # of means and sizes
_RANGE = np.log(1e-6), np.log(1e3)


class NegativeBinomial(DistributionLoss):
    """Counts with the variance ``mean + dispersion mean²``; the limit 0 is Poisson's distribution.

    Cameron & Trivedi, *Regression analysis of count data*, 1998 (NB2).
    """

    regressor_name = "negative_binomial"
    divides_rows = True
    evaluates_both = True
    support = "counts"
    parameters: ClassVar = {"mean": "rate", "dispersion": "positive"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        mean, dispersion = p
        size = _size(dispersion)
        return nbinom(size, size / (size + mean))

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the probability."""
        mean, dispersion = p
        size = _size(dispersion)
        counted = -betaln(size, y + 1) - np.log(y + size)  # no difference of large numbers
        return counted - size * np.log1p(mean / size) - y * np.log1p(size / mean)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logarithms of the mean and of the dispersion."""
        mean, dispersion = p
        size = _size(dispersion)
        by_size = digamma(y + size) - digamma(size) - np.log1p(mean / size)
        by_size = by_size + (mean - y) / (size + mean)
        return (y - mean) * size / (size + mean), -size * by_size

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Orthogonal; that of the dispersion is accurate to 5 %."""
        mean, dispersion = p
        size = _size(dispersion)
        return mean * size / (size + mean), _of_dispersion(*np.broadcast_arrays(mean, size))

    def guess(self, target: Target) -> tuple[float, ...]:
        """By moments."""
        center = max(float(mean(target)[0]), _SMALLEST)
        variance = float(mean(target.with_y((target.y - center) ** 2))[0])
        return center, float(np.clip((variance - center) / center**2, 1e-3, 1e2))

    def bounds_of(self, target: Target) -> tuple[Floats, Floats]:
        """From Poisson's distribution to one with most of its mass at 0."""
        low, high = super().bounds_of(target)
        low[1], high[1] = _RANGE
        return low, high

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Quantiles; a gamma distribution of the same mean and variance gives the large ones."""
        mean, dispersion = p
        ratio = 1 + mean / _size(dispersion)  # of the variance to the mean
        smooth = gamma.ppf(levels, mean / ratio, scale=ratio)
        large = smooth > _COUNTED  # where SciPy counts to them
        exact = super().quantile(np.where(large, 0.0, levels), p)
        return np.where(large, np.rint(smooth), exact)

    def mean(self, p: Parameters) -> Floats:
        """The mean."""
        return p[0]


def _size(dispersion: Floats) -> Floats:
    return 1 / np.maximum(dispersion, 1e-9)


def _of_dispersion(mean: Floats, size: Floats) -> Floats:
    """Interpolated for small sizes, or else a formula that joins the limits of the means."""
    large = np.maximum(size, _LARGE_SIZE)
    of_gamma = 0.5 + (1 / 6 - (1 / 30 - 1 / (42 * large**2)) / large**2) / large
    ratio = size / mean
    found = 1 / (2 * ratio**2 * (1 + 1 / size) + 4 * ratio + 2 / mean + 1 / of_gamma)
    few = size < _LARGE_SIZE
    if few.any():
        found[few] = _interpolated(mean[few], size[few])
    return found


def _interpolated(mean: Floats, size: Floats) -> Floats:
    """Interpolate the logarithm of the sum, which is proportional to squares of small means."""
    places, cells = [], []
    for values, (low, high, n) in zip((mean, size), _GRID, strict=True):
        place = (np.log(np.clip(values, low, high)) - np.log(low)) * (n - 1) / np.log(high / low)
        cell = np.minimum(place.astype(np.intp), n - 2)
        places.append(place - cell)
        cells.append(cell)
    (a, b), (i, j), table = places, cells, _table()
    below = (1 - b) * table[i, j] + b * table[i, j + 1]
    above = (1 - b) * table[i + 1, j] + b * table[i + 1, j + 1]
    return np.exp((1 - a) * below + a * above) * np.minimum(mean / _GRID[0][0], 1.0) ** 2


@cache
def _table() -> Floats:
    """Logarithms of the sum on a grid of means and sizes."""
    mean, size = np.meshgrid(*(np.geomspace(*axis) for axis in _GRID), indexing="ij")
    return np.log(_summed(mean, size))


def _summed(mean: Floats, size: Floats) -> Floats:
    """``size² (Σ P(Y > j) / (size + j)² - mean / (size (size + mean)))``."""
    probability = np.exp(-size * np.log1p(mean / size))
    above = 1 - probability
    total, factor = above.copy(), mean / (size + mean)
    for j in range(1, _COUNTS):
        probability = probability * ((size + j - 1) / j * factor)
        above = np.maximum(above - probability, 0.0)
        total += above * (size / (size + j)) ** 2
    return np.maximum(total - size * factor, 1e-12)
