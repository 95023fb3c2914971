"""Predicted distributions: one for each row, with quantiles, intervals and scores."""

from hilboost.distributions.distribution import Distribution
from hilboost.distributions.parametric import ParametricDistribution

__all__ = ["Distribution", "ParametricDistribution"]
