"""The fitted model: an additive model, how labels are encoded, and the record of the fit."""

from hilboost.model.additive import AdditiveModel, mean_of

__all__ = ["AdditiveModel", "mean_of"]
