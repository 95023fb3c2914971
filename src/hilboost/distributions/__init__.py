"""Predicted distributions: one for each row, with quantiles, intervals and scores."""

from hilboost.core.distribution import Distribution
from hilboost.distributions.calibrated import CalibratedDistribution
from hilboost.distributions.parametric import ParametricDistribution
from hilboost.distributions.tabulated import TabulatedDistribution

__all__ = [
    "CalibratedDistribution",
    "Distribution",
    "ParametricDistribution",
    "TabulatedDistribution",
]
