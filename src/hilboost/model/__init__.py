"""The fitted model: an additive model, the label encoding, and the record of the fit."""

from hilboost.model.additive import AdditiveModel, mean_of

__all__ = ["AdditiveModel", "mean_of"]
