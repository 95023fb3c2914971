"""The parts of a fitted model as attributes of its estimator."""

from __future__ import annotations

from typing import Any

from hilboost.core.callback import History
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.signatures import public_methods
from hilboost.model.fitted import FittedModel
from hilboost.model.summary import summary


@public_methods
class FittedProperties:
    """Mixin for the parts of the fitted model."""

    fitted_: FittedModel

    def __str__(self) -> str:
        """Return the parameters and, after a fit by boosting, one line about the model."""
        fitted = self.__dict__.get("fitted_")
        if fitted is None or fitted.history is None:
            return repr(self)
        return f"{self!r}\n{summary(fitted)}"

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

        With several numeric targets, trees measure each in its own unit: squared error, for
        example, is divided by the variance of the target.

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
