"""Beta distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincc, betaln, digamma, logit, polygamma
from scipy.stats import beta

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.losses.distribution_loss import DistributionLoss, Parameters
from hilboost.reductions.sums import mean


class Beta(DistributionLoss):
    """Beta distribution of a target between 0 and 1, with variance ``m (1 - m) / (precision + 1)``.

    Ferrari & Cribari-Neto, *Beta regression for modelling rates and proportions*, 2004.
    """

    regressor_name = "beta"
    divides_rows = True
    evaluates_both = True
    support = "fractions"
    parameters: ClassVar = {"mean": "probability", "precision": "positive"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        return beta(a, b)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        return (a - 1) * np.log(y) + (b - 1) * np.log1p(-y) - betaln(a, b)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the logit of the mean and the logarithm of the precision."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        by_mean = precision * (digamma(b) - digamma(a) + logit(y))
        by_precision = digamma(a + b) + mean * (np.log(y) - digamma(a))
        by_precision = by_precision + (1 - mean) * (np.log1p(-y) - digamma(b))
        return mean * (1 - mean) * by_mean, precision * by_precision

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Its diagonal."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        of_a, of_b = polygamma(1, a), polygamma(1, b)
        of_precision = mean**2 * of_a + (1 - mean) ** 2 * of_b - polygamma(1, a + b)
        return (precision * mean * (1 - mean)) ** 2 * (of_a + of_b), precision**2 * of_precision

    def guess(self, target: Target) -> tuple[float, ...]:
        """By moments."""
        center = float(mean(target)[0])
        variance = float(mean(target.with_y((target.y - center) ** 2))[0])
        ratio = center * (1 - center) / max(variance, 1e-12)
        return center, max(ratio - 1, 0.1)

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        return np.log((betaincc if upper else betainc)(a, b, np.clip(y, 0.0, 1.0)))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Taillardat et al. (2016)."""
        mean, precision = p
        a, b = _shapes(mean, precision)
        spread = 2 * np.exp(betaln(2 * a, 2 * b) - 2 * betaln(a, b)) / a
        distance = 1 - 2 * betainc(a + 1, b, y) - spread
        return y * (2 * betainc(a, b, y) - 1) + mean * distance


def _shapes(mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """The two shapes, positive and not so large that their quantiles are inexact."""
    least, precision = np.float64(1e-9), np.minimum(precision, 1e9)
    return np.maximum(mean * precision, least), np.maximum((1 - mean) * precision, least)
