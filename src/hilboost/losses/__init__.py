"""Losses, one module for each family.  Custom losses implement the same interface, :class:`Loss`.

Each built-in loss declares its names in its own class, and :mod:`hilboost.losses.registry` finds
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilboost.core.discovery import class_in, names_of
from hilboost.core.loss import Loss
from hilboost.core.loss_kinds import AdaptiveLoss, LeafLoss

if TYPE_CHECKING:  # imported on first use: a fit needs its own loss
    from hilboost.losses.absolute_error import AbsoluteError
    from hilboost.losses.aft import AFT
    from hilboost.losses.beta import Beta
    from hilboost.losses.cox import Cox
    from hilboost.losses.discrete_hazard import DiscreteHazard
    from hilboost.losses.distribution_loss import DistributionLoss
    from hilboost.losses.exponential import Exponential, MultinomialExponential
    from hilboost.losses.gamma_shape import GammaShape
    from hilboost.losses.hinge import Hinge, SquaredHinge
    from hilboost.losses.huber import Huber
    from hilboost.losses.lambda_rank import LambdaMAP, LambdaMRR, LambdaRank
    from hilboost.losses.laplace import Laplace
    from hilboost.losses.listwise import CrossEntropyNDCG, PairwiseLogistic, QueryRMSE
    from hilboost.losses.log_link import Gamma, Poisson, Tweedie
    from hilboost.losses.log_loss import BinomialLogLoss, MultinomialLogLoss
    from hilboost.losses.lognormal import LogNormal
    from hilboost.losses.mixture_of_normals import MixtureOfNormals
    from hilboost.losses.negative_binomial import NegativeBinomial
    from hilboost.losses.normal import Normal
    from hilboost.losses.quantile import Quantile
    from hilboost.losses.squared_error import OneHotSquaredError, SquaredError
    from hilboost.losses.student_t import StudentT
    from hilboost.losses.weibull import Weibull
    from hilboost.losses.yeti_rank import YetiRank
    from hilboost.losses.zero_inflated_poisson import ZeroInflatedPoisson

__all__ = [
    "AFT",
    "AbsoluteError",
    "AdaptiveLoss",
    "Beta",
    "BinomialLogLoss",
    "Cox",
    "CrossEntropyNDCG",
    "DiscreteHazard",
    "DistributionLoss",
    "Exponential",
    "Gamma",
    "GammaShape",
    "Hinge",
    "Huber",
    "LambdaMAP",
    "LambdaMRR",
    "LambdaRank",
    "Laplace",
    "LeafLoss",
    "LogNormal",
    "Loss",
    "MixtureOfNormals",
    "MultinomialExponential",
    "MultinomialLogLoss",
    "NegativeBinomial",
    "Normal",
    "OneHotSquaredError",
    "PairwiseLogistic",
    "Poisson",
    "Quantile",
    "QueryRMSE",
    "SquaredError",
    "SquaredHinge",
    "StudentT",
    "Tweedie",
    "Weibull",
    "YetiRank",
    "ZeroInflatedPoisson",
]

__getattr__ = names_of(__name__, {"distribution_loss": "DistributionLoss"}, class_in(__name__))


def __dir__() -> list[str]:
    return sorted(__all__)
