"""Student's t distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma, gammaln, stdtr
from scipy.stats import t

from hilboost.core.dtypes import Floats
from hilboost.losses.distribution_loss import DistributionLoss, Parameters

_TERMS = 10
_BOOLE = (19113.5, -1036.5, 77.5, -8.5, 1.5, -0.5, 0.5)
"""Coefficients of the powers 15, 13, … 3 of ``1 / x`` in the rest of an alternating sum."""


class StudentT(DistributionLoss):
    """Student's t, for noise with heavy tails; there are more than one degrees of freedom."""

    regressor_name = "student_t"
    divides_rows = True
    evaluates_both = True
    parameters: ClassVar = {"location": "location", "scale": "scale", "df": "above_one"}

    def scipy(self, p: Parameters) -> Any:
        """Distribution of SciPy."""
        location, scale, df = p
        return t(df, location, scale)

    def log_density(self, y: Floats, p: Parameters) -> Floats:
        """Logarithm of the density."""
        location, scale, df = p
        z = (y - location) / scale
        constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(np.pi * df)
        return constant - np.log(scale) - (df + 1) / 2 * np.log1p(z**2 / df)

    def score(self, y: Floats, p: Parameters) -> tuple[Floats, ...]:
        """Derivatives by the location and the logarithms of the scale and of ``df - 1``."""
        location, scale, df = p
        z = (y - location) / scale
        weight = (df + 1) / (df + z**2)
        by_df = digamma((df + 1) / 2) - digamma(df / 2) - 1 / df
        by_df = 0.5 * (by_df - np.log1p(z**2 / df) + weight * z**2 / df)
        return weight * z / scale, weight * z**2 - 1, (df - 1) * by_df

    def information(self, p: Parameters) -> tuple[Floats, ...]:
        """Its diagonal."""
        _, scale, df = p
        of_df = _alternating(df) - (df + 5) / (2 * df * (df + 1) * (df + 3))
        return (df + 1) / (df + 3) / scale**2, 2 * df / (df + 3), (df - 1) ** 2 * of_df

    def log_tail(self, y: Floats, p: Parameters, upper: bool) -> Floats:
        """Logarithm of the probability of more than ``y``, or of at most ``y``."""
        location, scale, df = p
        z = (y - location) / scale
        return np.log(stdtr(df, -z if upper else z))

    def mean(self, p: Parameters) -> Floats:
        """The location."""
        return p[0]

    def std(self, p: Parameters) -> Floats:
        """Infinite up to two degrees of freedom."""
        _, scale, df = p
        with np.errstate(divide="ignore", over="ignore"):
            return scale * np.sqrt(np.where(df > 2, df, np.inf) / np.maximum(df - 2, 1e-300))

    def crps(self, y: Floats, p: Parameters) -> Floats:
        """Closed form of Jordan, Krüger & Lerch (2019)."""
        location, scale, df = p
        z = (y - location) / scale
        spread = np.exp(betaln(0.5, df - 0.5) - 2 * betaln(0.5, df / 2))
        spread = 2 * np.sqrt(df) / (df - 1) * spread
        density = t.pdf(z, df) * (df + z**2) / (df - 1)
        return scale * (z * (2 * t.cdf(z, df) - 1) + 2 * density - spread)


def _alternating(x: Floats) -> Floats:
    """``Σ (-1)^k / (x + k)²``, the difference of two trigamma functions, by Boole's formula."""
    total = np.zeros_like(x)
    for k in range(0, _TERMS, 2):
        total += (2 * x + (2 * k + 1)) / ((x + k) * (x + (k + 1))) ** 2
    inverse = 1 / (x + _TERMS)
    rest, square = np.zeros_like(x), inverse * inverse
    for coefficient in _BOOLE:
        rest = square * (rest + coefficient)
    return total + 0.5 * square + inverse * rest
