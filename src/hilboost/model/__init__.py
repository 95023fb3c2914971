"""The frozen additive model."""

from hilboost.model.additive import AdditiveModel

__all__ = ["AdditiveModel"]
