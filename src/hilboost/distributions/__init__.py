"""Predicted distributions: one for each row, with quantiles, intervals and scores."""

from hilboost.core.distribution import Distribution
from hilboost.distributions.interpolated import CalibratedDistribution, TabulatedDistribution
from hilboost.distributions.parametric import ParametricDistribution

__all__ = [
    "CalibratedDistribution",
    "Distribution",
    "ParametricDistribution",
    "TabulatedDistribution",
]
