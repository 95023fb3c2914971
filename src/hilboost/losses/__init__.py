"""Losses, one short file each.  A user's own loss keeps the same contract, :class:`Loss`."""

from hilboost.core.loss import AdaptiveLoss, LeafLoss, Loss
from hilboost.losses.absolute_error import AbsoluteError
from hilboost.losses.exponential import Exponential
from hilboost.losses.gamma import Gamma
from hilboost.losses.huber import Huber
from hilboost.losses.log_loss import BinomialLogLoss, MultinomialLogLoss
from hilboost.losses.one_hot import OneHotSquaredError
from hilboost.losses.poisson import Poisson
from hilboost.losses.quantile import Quantile
from hilboost.losses.squared_error import SquaredError
from hilboost.losses.tweedie import Tweedie

__all__ = [
    "AbsoluteError",
    "AdaptiveLoss",
    "BinomialLogLoss",
    "Exponential",
    "Gamma",
    "Huber",
    "LeafLoss",
    "Loss",
    "MultinomialLogLoss",
    "OneHotSquaredError",
    "Poisson",
    "Quantile",
    "SquaredError",
    "Tweedie",
]
