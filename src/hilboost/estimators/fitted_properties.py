"""The parts of a fitted model as attributes of its estimator."""

from __future__ import annotations

from typing import Any

from hilboost.core.callback import History
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.signatures import public_methods
from hilboost.model.fitted import FittedModel


@public_methods
class FittedProperties:
    """Mixin for the parts of the fitted model."""

    fitted_: FittedModel

    @property
    def model_(self) -> Any:
        """The fitted additive model."""
        return self.fitted_.model

    @property
    def loss_(self) -> Loss:
        """The loss of the fitted model."""
        return self.fitted_.loss

    @property
    def learner_(self) -> Learner:
        """The base learner of the fitted model."""
        return self.fitted_.learner

    @property
    def n_estimators_(self) -> int:
        """Number of stages in the model."""
        return self.fitted_.n_stages

    @property
    def history_(self) -> History:
        """Mean loss on the training and validation rows after each stage.

        Raises
        ------
        AttributeError
            The model was not fitted by boosting.
        """
        if self.fitted_.history is None:
            raise AttributeError(
                f"{type(self).__name__} has no history_, because it is not fitted by boosting."
            )
        return self.fitted_.history
