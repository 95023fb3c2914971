"""The frozen additive model."""

from hilboost.model.additive import AdditiveModel, mean_of

__all__ = ["AdditiveModel", "mean_of"]
