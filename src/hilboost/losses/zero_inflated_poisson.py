"""Zero-inflated Poisson distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import gammaln, ive, ndtri, pdtr, pdtrik

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.sums import mean

_LARGE_RATE = 1e5  # where expansions are exact, and SciPy's functions take long or lose digits


class ZeroInflatedPoisson(DistributionLoss):
    """Counts that are 0 with the probability ``zeros``, and otherwise have Poisson's distribution.

    Lambert, *Zero-inflated Poisson regression*, 1992.
    """

    regressor_name = "zero_inflated_poisson"
    divides_rows = True
    evaluates_both = True
    support = "counts"
    parameters: ClassVar = {"rate": "rate", "zeros": "probability"}

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the probability."""
        rate, zeros = p
        others = np.log1p(-zeros) + _log_poisson(y, rate)
        return np.where(y > 0, others, np.log(_at_zero(rate, zeros)))

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logarithm of the rate and the logit of ``zeros``."""
        rate, zeros = p
        of_poisson = (1 - zeros) * np.exp(-rate) / _at_zero(rate, zeros)
        inflated = 1 - of_poisson  # probability that a zero is one of the inflation
        return np.where(y > 0, y - rate, -rate * of_poisson), np.where(y > 0, 0, inflated) - zeros

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Its diagonal."""
        rate, zeros = p
        at_zero, others = _at_zero(rate, zeros), (1 - zeros) * np.exp(-rate)
        of_rate = (rate * others) ** 2 / at_zero + (1 - zeros) * rate * (1 - rate * np.exp(-rate))
        of_zeros = (zeros * (1 - zeros) * -np.expm1(-rate)) ** 2 / at_zero
        return of_rate, of_zeros + zeros**2 * (1 - at_zero)

    def guess(self, target: Target) -> tuple[float, ...]:
        """By moments."""
        zeros = float(mean(target.with_y((target.y == 0).astype(float)))[0])
        center = max(float(mean(target)[0]), 1e-6)
        share = float(np.clip(zeros - np.exp(-center), 0.01, 0.99))
        return center / (1 - share), share

    def mean(self, p: Parameters) -> Floats:
        """Mean."""
        rate, zeros = p
        return (1 - zeros) * rate

    def std(self, p: Parameters) -> Floats:
        """Standard deviation."""
        rate, zeros = p
        return np.sqrt((1 - zeros) * rate * (1 + zeros * rate))

    def cdf(self, y: Floats, p: Parameters) -> Floats:
        """Probability of at most ``y``."""
        rate, zeros = p
        poisson = pdtr(np.floor(y), rate)
        return zeros + (1 - zeros) * poisson

    def quantile(self, levels: Floats, p: Parameters) -> Floats:
        """Smallest counts that the levels do not exceed."""
        rate, zeros = p
        of_poisson = np.clip((levels - zeros) / (1 - zeros), 0.0, 1.0)
        large = rate > _LARGE_RATE
        exact = np.nan_to_num(
            pdtrik(of_poisson, np.where(large, 1.0, rate)), nan=0.0, posinf=np.inf
        )
        found = np.ceil(np.where(large, _expanded(of_poisson, rate), exact))
        found = np.where(of_poisson <= np.exp(-rate), 0.0, found)
        lower = np.maximum(found - 1, 0.0)
        found = np.where(self.cdf(lower, p) >= levels, lower, found)
        return np.where(levels < 1, found, np.inf)

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """``E|Y - y| - E|Y - Y'| / 2``, in closed form (Jordan, Krüger & Lerch 2019)."""
        rate, zeros = p
        mass, others = np.exp(_log_poisson(np.floor(y), rate)), 1 - zeros
        distance = (y - rate) * (2 * pdtr(np.floor(y), rate) - 1) + 2 * rate * mass
        spread = rate * (ive(0, 2 * rate) + ive(1, 2 * rate))
        return zeros * y + others * (distance - zeros * rate - others * spread)


def _log_poisson(y: Floats, rate: Floats) -> Floats:
    """Logarithms of probabilities; of large counts, without a difference of large numbers."""
    exact = y * np.log(rate) - rate - gammaln(y + 1)
    large = np.maximum(y, _LARGE_RATE)
    gap = large - rate
    ratio = np.sign(gap) * np.log1p(np.abs(gap) / np.clip(rate, 1e-200, large))  # its logarithm
    deviance = large * ratio - gap
    stirling = 0.5 * np.log(2 * np.pi * large) + 1 / (12 * large)
    return np.where(y > _LARGE_RATE, -deviance - stirling, exact)


def _expanded(levels: Floats, rate: Floats) -> Floats:
    """Quantiles of Poisson's distribution by the expansion of Cornish and Fisher."""
    z = ndtri(np.maximum(levels, 1e-300))
    return rate + np.sqrt(rate) * z + (z**2 - 1) / 6 - 0.5


def _at_zero(rate: Floats, zeros: Floats) -> Floats:
    return np.maximum(zeros + (1 - zeros) * np.exp(-rate), 1e-300)
